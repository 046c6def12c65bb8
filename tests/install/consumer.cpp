#include <iostream>

#include <opmux/opmux.hpp>

// Prints whether the installed backends and operators are found from a third-party program.
int main() {
  opmux::Runtime runtime = opmux::Runtime::create().value();
  const float x[] = {1, 2, 3};
  float y[3];
  const opmux::TensorView in(x, opmux::f32, {1, 3});
  const opmux::TensorView out(y, opmux::f32, {1, 3});
  opmux::CallReport report;
  const opmux::PolicyScope scope{runtime, {.require = {"reference"}}};
  const opmux::Operator softmax = runtime.op("softmax").value();
  if (!softmax.with(report)(out, in).ok()) return 1;
  std::cout << report.implementation << (report.fell_back ? " fell back" : "") << "\n";
  for (const opmux::PluginInfo& plugin : runtime.plugins().list()) {
    std::cout << plugin.name << (plugin.loaded ? " loaded" : " refused: " + plugin.reason) << "\n";
  }
  return 0;
}
