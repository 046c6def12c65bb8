// Calls an operator repeatedly, configured by its environment.
//
// usage: replay_server rms_norm|silu_and_mul|softmax ROWS WIDTH CALLS
#include <opmux/opmux.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

opmux::Status call(const opmux::Operator& op, std::string_view name, int64_t rows, int64_t width,
                   std::vector<float>& out, const std::vector<float>& in) {
  const bool gated = name == "silu_and_mul";
  const opmux::TensorView y(out.data(), opmux::f32, {rows, width});
  const opmux::TensorView x(in.data(), opmux::f32, {rows, gated ? 2 * width : width});
  return name == "rms_norm" ? op(y, x, opmux::none, 1e-6) : op(y, x);
}

int serve(std::string_view name, int64_t rows, int64_t width, int calls) {
  opmux::Options options;
  options.sources.own_thread = false;  // Sampled calls are compared explicitly below.
  auto runtime = opmux::Runtime::create(options);
  if (!runtime) return std::cerr << runtime.error().to_string() << "\n", 2;
  const opmux::Operator op = runtime->op(name).value();
  std::vector<float> in(static_cast<size_t>(2 * rows * width)), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 23) * 0.125F - 1.0F;
  for (int i = 0; i < calls; ++i) {
    const opmux::Status status = call(op, name, rows, width, out, in);
    if (!status.ok()) return std::cerr << status.to_string() << "\n", 1;
    runtime->tick(std::chrono::seconds(i));
    if (runtime->replay().recordings().written != 0) break;
  }
  for (const opmux::CallStats& stats : runtime->stats()) {
    std::cout << stats.implementation << " " << stats.calls << " " << stats.failed << "\n";
  }
  std::cout << opmux::to_json(runtime->replay().recordings()) << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return serve(argv[1], std::atoll(argv[2]), std::atoll(argv[3]), std::atoi(argv[4]));
}
