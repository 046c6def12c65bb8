// A service that loads plugins, calls linear once and says what happened:
// loop_server STATE PLUGINS tried|at_once. Prints lines of words, separated by tabs.
#include <unistd.h>

#include <iostream>
#include <string>

#include <opmux/opmux.hpp>

namespace opmux::test {
namespace {

Options options_of(char** words) {
  Options options;
  options.backends = false;
  options.environment.emplace();
  options.state = {words[1], CrashJournal::with_handler};
  options.plugins.folders = {words[2]};
  // A plugin that is not tried is opened at once, as the backends of the installation are.
  options.plugins.probe = std::string(words[3]) == "tried";
  return options;
}

void call_linear(Runtime& runtime) {
  float x[2] = {1, 2}, w[4] = {1, 0, 0, 1}, y[2] = {};
  const TensorView in(x, f32, {1, 2}), weight(w, f32, {2, 2}), out(y, f32, {1, 2});
  const Constant constant = runtime.constant(weight).value();
  CallReport report;
  const Operator op = runtime.op("linear").value();
  const Status status = op.with(report)(out, in, constant);
  const bool right = status.ok() && y[0] == 1 && y[1] == 2;
  std::cout << "ran\t" << (right ? report.implementation : std::string(status.message())) << "\n";
  for (const Candidate& one : op.explain(out, in, constant).candidates) {
    std::cout << "candidate\t" << one.id << "\t" << one.code << "\t" << one.reason << "\n";
  }
}

int serve(char** words) {
  Runtime runtime = Runtime::create(options_of(words)).value();
  call_linear(runtime);
  for (const PluginInfo& plugin : runtime.plugins().list()) {
    std::cout << "plugin\t" << plugin.path.substr(plugin.path.rfind('/') + 1) << "\t" << plugin.code
              << "\t" << plugin.reason << "\n";
  }
  const Quarantine found = runtime.health().quarantine();
  for (const QuarantineEntry& entry : found.entries) {
    std::cout << "quarantined\t" << entry.implementation << "\t" << entry.how << "\t" << entry.phase
              << "\t" << (entry.here ? "here" : "elsewhere") << "\n";
  }
  std::cout << "suspected\t" << found.suspected.size() << std::endl;
  return 0;
}

}  // namespace
}  // namespace opmux::test

int main(int count, char** words) {
  ::alarm(60);
  return count == 4 ? opmux::test::serve(words) : 2;
}
