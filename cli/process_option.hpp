#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/state_page.hpp>

namespace opmux::cli {

/// Whose state a command is asked to show instead of what a new process here would do.
struct ProcessOption {
  CLI::Option* pid_option = nullptr;
  std::string pid, page;

  /// Whether some process was asked for.
  bool given() const { return !page.empty() || pid_option->count() > 0; }
  /// Without a number: every one.
  bool all() const { return page.empty() && pid.empty(); }
};

/// --pid [PID] and --page FILE.
void add_process_option(CLI::App& command, ProcessOption& option);

/// The process that is asked for; nothing, and why printed, if there is none. With `op`, only that
/// operator is left of it.
std::optional<ProcessState> find_process(const ProcessOption& option, const std::string& op);

/// One line for each process that keeps a page.
int print_processes(bool json);

}  // namespace opmux::cli
