/// Lifetime of packed weights: packed at first use, shared by calls, dropped when the data change
/// and when the constant is destroyed; a weight that is not a Constant leaves no copy behind.
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

namespace {

constexpr int64_t kRows = 5, kInputs = 7, kOutputs = 11;
// Two panels of eight outputs, seven inputs, four bytes each.
constexpr uint64_t kPackedBytes = 2 * 8 * 7 * 4;

int failures = 0;

void expect(bool holds, const std::string& what, const std::string& found) {
  if (holds) return;
  std::cerr << "expected: " << what << "; found: " << found << "\n";
  ++failures;
}

std::vector<float> numbers(int64_t count) {
  std::vector<float> made(static_cast<size_t>(count));
  for (size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(i % 13) - 6;
  return made;
}

struct Tensors {
  std::vector<float> x = numbers(kRows * kInputs), weight = numbers(kOutputs * kInputs),
                     bias = numbers(kOutputs), y = std::vector<float>(kRows * kOutputs);
  opmux::TensorView in{x.data(), opmux::f32, {kRows, kInputs}},
      w{weight.data(), opmux::f32, {kOutputs, kInputs}}, b{bias.data(), opmux::f32, {kOutputs}},
      out{y.data(), opmux::f32, {kRows, kOutputs}};

  /// Compares exactly, because small integers are exact in f32.
  bool right() const {
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t n = 0; n < kOutputs; ++n) {
        float sum = bias[size_t(n)];
        for (int64_t k = 0; k < kInputs; ++k) {
          sum += x[size_t(r * kInputs + k)] * weight[size_t(n * kInputs + k)];
        }
        if (y[size_t(r * kOutputs + n)] != sum) return false;
      }
    }
    return true;
  }
};

template <class Weight>
std::string ran_with(const opmux::Runtime& runtime, Tensors& t, const Weight& weight) {
  opmux::CallReport report;
  const opmux::Status status = runtime.op("linear").value().with(report)(t.out, t.in, weight, t.b);
  expect(status.ok() && t.right(), "the product", status.to_string());
  return report.implementation;
}

}  // namespace

int main() {
  opmux::Runtime runtime =
      opmux::Runtime::create({.policy = {.prefer = {"linear/quarry.*"}}}).value();
  Tensors t;
  {
    opmux::Constant weight = runtime.constant(t.w).value();
    for (int call = 0; call < 3; ++call) {
      const std::string ran = ran_with(runtime, t, weight);
      expect(ran == "linear/quarry.panels", "linear/quarry.panels", ran);
      expect(weight.packed_bytes() == kPackedBytes, "one packed copy",
             std::to_string(weight.packed_bytes()) + " bytes");
    }
    t.weight[3] += 1;
    weight.changed();
    ran_with(runtime, t, weight);  // Correct only if the weight was packed again.
    expect(runtime.packed_bytes() == kPackedBytes, "only the new copy", "both copies");
  }
  expect(runtime.packed_bytes() == 0, "0 bytes after the constant was destroyed",
         std::to_string(runtime.packed_bytes()));

  const std::string ran = ran_with(runtime, t, t.w);  // A weight that is not a Constant.
  expect(ran == "linear/quarry.panels", "linear/quarry.panels", ran);
  expect(runtime.packed_bytes() == 0, "0 bytes kept without a Constant",
         std::to_string(runtime.packed_bytes()));
  return failures == 0 ? 0 : 1;
}
