#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <opmux/opmux.hpp>

namespace opmux::cli {

// Exit codes.
inline constexpr int kFine = 0;
inline constexpr int kFound = 1;  ///< a finding that a person should look at
inline constexpr int kWrongUse = 2;

/// The action of a command, run after its options were parsed.
using Action = std::function<int()>;

/// Prints "opmux: MESSAGE" to standard error.
int wrong_use(std::string_view message);

/// A runtime with the settings of this environment; prints the error if it cannot be created.
std::optional<Runtime> make_runtime(const Options& options = {});

/// The contents of a file or pipe that a person named. Does not wait for a pipe without a writer.
std::optional<std::string> contents_of(const std::string& path);
/// The same; prints the error if it cannot be read.
std::optional<std::string> read_text(const std::string& path);

/// Each adds its subcommand, which sets `action` if it is given on the command line.
void add_list(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_config(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_lock(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_plugin(CLI::App& app, Action& action);
void add_quarantine(CLI::App& app, Action& action);
void add_migrate(CLI::App& app, Action& action);
void add_points(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_health(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);

}  // namespace opmux::cli
