/// Instances of an operator without constants: one table for each instance, which calls share;
/// calls of the operator itself run the reference.
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

namespace {

int failures = 0;

void expect(bool holds, const std::string& what, const std::string& found) {
  if (holds) return;
  std::cerr << "expected: " << what << "; found: " << found << "\n";
  ++failures;
}

}  // namespace

int main() {
  const opmux::Runtime runtime = opmux::Runtime::create().value();
  const opmux::Operator op = runtime.op("meadow.tabulated").value();
  std::vector<float> in(1000), out(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) / 100 - 5;
  const opmux::TensorView x(in.data(), opmux::f32, {1000}), y(out.data(), opmux::f32, {1000});

  opmux::CallReport report;
  expect(op.with(report)(y, x).ok(), "a call without an instance", report.reason);
  expect(report.implementation == "meadow.tabulated/meadow_plain.computed", "the reference",
         report.implementation);

  const opmux::Instance fine = op.instance({{"points", 4096}}).value();
  const opmux::Instance coarse = op.instance({{"points", 3}}).value();
  for (const opmux::Instance* instance : {&fine, &coarse, &fine}) {
    expect(instance->with(report)(y, x).ok(), "a call through an instance", report.reason);
    expect(report.implementation == "meadow.tabulated/meadow.table", "the table",
           report.implementation);
  }
  expect(std::abs(out[600] - std::tanh(1.0f)) < 1e-4, "tanh(1)", std::to_string(out[600]));
  const std::vector<opmux::InstanceState> states = fine.states();
  expect(states.size() == 1 && states[0].bytes == 4096 * sizeof(double), "one table of 4096 points",
         to_json(states));
  expect(runtime.packed_bytes() == (4096 + 3) * sizeof(double), "two tables",
         std::to_string(runtime.packed_bytes()));
  return failures == 0 ? 0 : 1;
}
