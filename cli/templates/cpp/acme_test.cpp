/// Tests the plugin in a program: which implementation ran, its results, and what it refuses.
#include <cmath>
#include <iostream>
#include <string>

#include <opmux/opmux.hpp>

namespace {

int failures = 0;

void expect(bool holds, const std::string& what, const std::string& found) {
  if (holds) return;
  std::cerr << "expected: " << what << "; found: " << found << "\n";
  ++failures;
}

void computes_a_row(const opmux::Runtime& runtime) {
  float x[] = {3, 4}, y[2] = {};
  const opmux::TensorView in(x, opmux::f32, {1, 2}), out(y, opmux::f32, {1, 2});
  opmux::CallReport report;
  const opmux::Status status = runtime.op("rms_norm").value().with(report)(out, in);
  expect(report.implementation == "rms_norm/acme.scalar", "rms_norm/acme.scalar ran",
         report.implementation + status.to_string());
  expect(std::abs(y[0] - 0.848528F) < 1e-5F && std::abs(y[1] - 1.131371F) < 1e-5F,
         "0.848528 1.131371", std::to_string(y[0]) + " " + std::to_string(y[1]));
}

void refuses_eps_of_zero(const opmux::Runtime& runtime) {
  float x[] = {3, 4}, y[2] = {};
  const opmux::TensorView in(x, opmux::f32, {1, 2}), out(y, opmux::f32, {1, 2});
  const opmux::Status status = runtime.call("rms_norm", out, in, opmux::none, 0.0);
  expect(status.code() == opmux::Code::no_candidate &&
             status.to_string().find("acme.eps") != std::string::npos,
         "refused for acme.eps", status.to_string());
}

}  // namespace

int main() {
  opmux::Runtime runtime = opmux::Runtime::create().value();
  // Only this plugin may run, because results of another implementation would prove nothing.
  const opmux::PolicyScope scope(runtime, {.require = {"rms_norm/acme.*"}});
  computes_a_row(runtime);
  refuses_eps_of_zero(runtime);
  return failures == 0 ? 0 : 1;
}
