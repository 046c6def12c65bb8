#include "cli/process_option.hpp"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/padded.hpp"
#include "cli/process_report.hpp"

namespace opmux::cli {

Result<ProcessState> read_process(const ProcessOption& option) {
  if (!option.page.empty()) return open_state_page(option.page);
  int64_t pid = 0;
  const char* const end = option.pid.data() + option.pid.size();
  const auto [at, error] = std::from_chars(option.pid.data(), end, pid);
  if (error != std::errc() || at != end) {
    return Status(Code::invalid_argument, "cli.pid",
                  "--pid takes a process id, not '" + option.pid + "'");
  }
  return process_state(pid);
}

namespace {

Status keep_only(ProcessState& process, const std::string& op) {
  std::vector<std::string> names;
  bool found = false;
  for (RuntimeState& runtime : process.runtimes) {
    for (const OperatorPageState& each : runtime.operators) names.push_back(each.name);
    std::erase_if(runtime.operators, [&](const auto& each) { return each.name != op; });
    std::erase_if(runtime.choices, [&](const auto& each) { return each.op != op; });
    std::erase_if(runtime.breakers,
                  [&](const auto& each) { return !each.implementation.starts_with(op + "/"); });
    found |= !runtime.operators.empty();
  }
  if (found) return {};
  return {Code::not_found, "cli.operator",
          base::concat("process ", process.pid, " has no operator '", op, "'",
                       base::suggestion(op, names))};
}

}  // namespace

void add_process_option(CLI::App& command, ProcessOption& option) {
  option.pid_option =
      command
          .add_option(
              "--pid", option.pid,
              "show this running process; without a number, list those that write a status file")
          ->type_name("[PID]")
          ->expected(0, 1);
  command.add_option("--page", option.page, "show a copy of a status file")
      ->type_name("FILE")
      ->excludes(option.pid_option);
}

std::optional<ProcessState> find_process(const ProcessOption& option, const std::string& op) {
  auto process = read_process(option);
  Status status = process ? Status() : process.error();
  if (status.ok() && !op.empty()) status = keep_only(*process, op);
  if (status.ok()) return *std::move(process);
  wrong_use(status.message());
  return {};
}

int print_processes(bool json) {
  const std::vector<ProcessState> all = process_states();
  if (json) {
    std::cout << to_json(all) << "\n";
    return kFine;
  }
  size_t width = 0;
  for (const ProcessState& process : all) width = std::max(width, process.name.size());
  for (const ProcessState& process : all) {
    uint64_t calls = 0;
    for (const RuntimeState& runtime : process.runtimes) {
      for (const OperatorPageState& op : runtime.operators) calls += op.calls();
    }
    std::cout << padded(std::to_string(process.pid), 9) << padded(process.name, width + 2)
              << "since " << moment(process.started) << ", " << calls << " calls"
              << (process.elsewhere ? ", in another pid namespace" : "") << "\n";
  }
  if (all.empty()) {
    std::cout << "no process writes a status file in " << state_page_folder()
              << "; enable it with OPMUX_STATE_PAGE=1\n";
  }
  return kFine;
}

}  // namespace opmux::cli
