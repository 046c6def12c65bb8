// Calls an operator, prints the implementation that ran, and explains why the others were not
// chosen.
#include <iostream>

#include <opmux/opmux.hpp>

int main() {
  opmux::Runtime runtime = opmux::Runtime::create().value();
  const opmux::Operator rms_norm = runtime.op("rms_norm").value();

  const float x[] = {3, 4};
  float y[2];
  const opmux::TensorView in(x, opmux::f32, {1, 2});
  const opmux::TensorView out(y, opmux::f32, {1, 2});

  opmux::CallReport report;
  if (const opmux::Status status = rms_norm.with(report)(out, in); !status.ok()) {
    return std::cerr << status.to_string() << "\n", 1;
  }
  std::cout << y[0] << " " << y[1] << "\n";

  // The implementation that ran above depends on this machine. Requiring the reference makes the
  // output the same everywhere.
  const opmux::PolicyScope only_reference(runtime, {.require = {"reference"}});
  if (const opmux::Status status = rms_norm.with(report)(out, in); !status.ok()) {
    return std::cerr << status.to_string() << "\n", 1;
  }
  std::cout << report.implementation << " ran\n\n" << rms_norm.explain(out, in);
  return 0;
}
