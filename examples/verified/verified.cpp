// Shows how authors test their kernels: runs the conformance suite against a correct softmax and
// one that forgets to subtract the largest value. Kernels of a plugin are verified in the same way:
// name its folder in Options::plugins and its backend in the suite's options.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>

#include <opmux/conformance.hpp>
#include <opmux/opmux.hpp>

namespace {

// Takes contiguous f32 only. The capabilities declare this, and the suite counts the calls that
// they refuse.
template <class Shift>
opmux::Outcome softmax(const opmux::CallFrame& call, Shift shift) {
  const opmux::TensorView y = call.tensor(0);
  const int64_t width = y.dim(y.rank() - 1);
  const auto scale = static_cast<float>(call.f64(2));
  for (int64_t at = 0; at < y.elements(); at += width) {
    const float* from = call.data<const float>(1) + at;
    float* to = call.data<float>(0) + at;
    for (int64_t i = 0; i < width; ++i) to[i] = scale * from[i];
    const float largest = shift(to, width);
    float sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += to[i] = std::exp(to[i] - largest);
    for (int64_t i = 0; i < width; ++i) to[i] = sum == 0 ? 0 : to[i] / sum;
  }
  return opmux::Outcome::ok;
}

// A row in which every element is -inf becomes zeros, as docs/operators.md specifies.
float largest_of(const float* row, int64_t count) {
  const float largest = *std::max_element(row, row + count);
  return largest == -std::numeric_limits<float>::infinity() ? 0 : largest;
}

opmux::Registration add(opmux::Runtime& runtime, const char* id,
                        std::function<opmux::Outcome(opmux::CallFrame&)> run) {
  return runtime
      .implement({.id = id,
                  .vendor = "acme",
                  .caps = opmux::Caps{}.dtypes({opmux::f32}).contiguous(),
                  .run = std::move(run),
                  .flags = OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT})
      .value();
}

}  // namespace

int main() {
  opmux::Runtime runtime = opmux::Runtime::create().value();
  const opmux::Registration right = add(runtime, "softmax/acme.right", [](opmux::CallFrame& call) {
    return softmax(call, largest_of);
  });
  const opmux::Registration wrong = add(runtime, "softmax/acme.wrong", [](opmux::CallFrame& call) {
    return softmax(call, [](const float*, int64_t) { return 0.0F; });
  });

  const auto report =
      opmux::conformance::verify(runtime, {.backends = {"acme"}, .cases = 300}).value();
  for (const auto& implementation : report.operators[0].implementations) {
    std::cout << implementation.id << ": ";
    if (implementation.passed()) {
      std::cout << "passed\n";
    } else {
      std::cout << "wrong (" << implementation.findings[0].kind << ")\n";
    }
  }
  std::cout << (report.passed() ? "all implementations passed\n"
                                : "report.to_string() has the details\n");
}
