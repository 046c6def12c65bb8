#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/state_page.hpp>

namespace opmux::cli {

/// The options that select a running process, in place of a new runtime in this process.
struct ProcessOption {
  CLI::Option* pid_option = nullptr;
  std::string pid, page;

  /// Whether a process was selected.
  bool given() const { return !page.empty() || pid_option->count() > 0; }
  /// --pid without a number: all processes.
  bool all() const { return page.empty() && pid.empty(); }
};

/// --pid [PID] and --page FILE.
void add_process_option(CLI::App& command, ProcessOption& option);

/// The process that `pid` or `page` names.
Result<ProcessState> read_process(const ProcessOption& option);

/// The selected process; prints the error if there is none. With `op`, only that operator is kept.
std::optional<ProcessState> find_process(const ProcessOption& option, const std::string& op);

/// Prints one line for each process that writes a status file.
int print_processes(bool json);

}  // namespace opmux::cli
