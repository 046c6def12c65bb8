#include <chrono>
#include <cstring>

#include "figure_groups.hpp"
#include "figures.hpp"

namespace opmux::bench {
namespace {

constexpr std::chrono::microseconds kKernel{20};
constexpr int kEvery = 1024;
constexpr uint64_t kProven = 600;  ///< comparisons after which sampling uses the requested rate

/// Busy-waits on the clock. The time of a counting loop would vary by some percent with the
/// alignment of its stack, which differs between the two runtimes that are compared.
void take_time_of_kernel() {
  const auto end = std::chrono::steady_clock::now() + kKernel;
  while (std::chrono::steady_clock::now() < end) continue;
}

Outcome copy_rows(CallFrame& call) {
  const auto bytes = static_cast<size_t>(call.tensor(0).elements()) * sizeof(float);
  std::memcpy(call.data<float>(0), call.data<float>(1), bytes);
  return Outcome::ok;
}

/// A runtime with one operator that has a kernel of 20 us and a reference. `every` is the sampling
/// interval of the shadow check; 0 leaves it off.
struct Served {
  explicit Served(int every) {
    Options options{.environment = {{}}, .backends = false};
    if (every != 0) options.policy.shadow.every = every;
    runtime.emplace(Runtime::create(options).value());
    must(runtime->define("served(out Tensor y[..., H], Tensor x[..., H])"));
    runtime
        ->implement({.id = "served/slow.one",
                     .kind = Kind::default_,
                     .run =
                         [](CallFrame& call) {
                           take_time_of_kernel();
                           return copy_rows(call);
                         }})
        .value()
        .keep();
    runtime->implement({.id = "served/plain.one", .kind = Kind::reference, .run = copy_rows})
        .value()
        .keep();
    op.emplace(runtime->op("served").value());
  }
  void run(int count) {
    for (int i = 0; i < count; ++i) must((*op)(y, x));
  }
  uint64_t compared() const {
    const ShadowReport report = runtime->health().report().shadow;
    return report.implementations.empty() ? 0 : report.implementations[0].compared;
  }

  std::vector<float> in = std::vector<float>(32 * 128), out = std::vector<float>(32 * 128);
  TensorView y{out.data(), f32, {32, 128}}, x{in.data(), f32, {32, 128}};
  std::optional<Runtime> runtime;
  std::optional<Operator> op;
};

}  // namespace

Figure shadow_figure(int rounds) {
  Served without(0), with(kEvery);
  while (with.compared() < kProven) with.run(100);
  constexpr int kCalls = 2048;  // of which two are compared
  std::vector<Subject> subjects{{"without", [&](int count) { without.run(count); }, kCalls},
                                {"with", [&](int count) { with.run(count); }, kCalls}};
  measure(subjects, 3 * rounds);
  // Divides rounds that ran next to each other, because the machine's speed changes by more than
  // the measured difference over time.
  std::vector<double> ratios;
  for (size_t i = 0; i < subjects[0].rounds.size(); ++i)
    ratios.push_back(subjects[1].rounds[i] / subjects[0].rounds[i]);
  return {"shadow check of one call in 1024, 20 us kernels",
          100 * std::max(0.0, median(ratios) - 1), 1, "%"};
}

}  // namespace opmux::bench
