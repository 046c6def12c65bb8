// A program that defines an operator: one schema, two implementations, a policy for one block, and
// the reasons for each choice.
#include <cmath>
#include <iostream>
#include <vector>

#include <opmux/opmux.hpp>

namespace {

float swish(float x) { return x / (1 + std::exp(-x)); }

opmux::Outcome run_plain(opmux::CallFrame& call) {
  const opmux::TensorView y = call.tensor(0);
  for (int64_t i = 0; i < y.dim(0); ++i) {
    call.data<float>(0)[i * y.stride(0)] = swish(call.data<const float>(1)[i]);
  }
  return opmux::Outcome::ok;
}

// Processes four elements at a time, so it requires a multiple of 4 and contiguous tensors.
opmux::Outcome run_fours(opmux::CallFrame& call) {
  float* y = call.data<float>(0);
  const float* x = call.data<const float>(1);
  for (int64_t i = 0; i < call.tensor(0).dim(0); i += 4) {
    for (int64_t k = i; k < i + 4; ++k) y[k] = swish(x[k]);
  }
  return opmux::Outcome::ok;
}

void call(const opmux::Operator& op, int64_t size) {
  std::vector<float> x(static_cast<size_t>(size), 1.0F);
  std::vector<float> y(x.size());
  const opmux::TensorView in(x.data(), opmux::f32, {size});
  const opmux::TensorView out(y.data(), opmux::f32, {size});
  opmux::CallReport report;
  const opmux::Status status = op.with(report)(out, in);
  std::cout << "N = " << size << ": ";
  if (status.ok()) {
    std::cout << report.implementation << " returned " << y.back() << "\n";
  } else {
    std::cout << status.message() << "\n";
  }
}

}  // namespace

int main() {
  opmux::Runtime runtime = opmux::Runtime::create().value();
  const opmux::Status defined = runtime.define("swish(out Tensor y[N], Tensor x[N])");
  if (!defined.ok()) return std::cerr << defined.to_string() << "\n", 1;

  const opmux::Registration plain = runtime
                                        .implement({.id = "swish/plain.loop",
                                                    .kind = opmux::Kind::default_,
                                                    .caps = opmux::Caps{}.dtypes({opmux::f32}),
                                                    .run = run_plain})
                                        .value();
  const opmux::Registration fours =
      runtime
          .implement({.id = "swish/acme.fours",
                      .kind = opmux::Kind::vendor,
                      .vendor = "acme",
                      .priority = 200,
                      .caps = opmux::Caps{}.dtypes({opmux::f32}).multiple_of("N", 4).contiguous(),
                      .run = run_fours})
          .value();

  const opmux::Operator op = runtime.op("swish").value();
  call(op, 8);
  call(op, 6);
  {
    const opmux::PolicyScope scope(runtime, {.deny_vendors = {"acme"}});
    std::cout << "without acme, ";
    call(op, 8);
  }

  const float x[6] = {};
  std::cout << "\n" << op.explain(opmux::none, opmux::TensorView(x, opmux::f32, {6}));
  return 0;
}
