#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <opmux/opmux.hpp>

namespace opmux::cli {

// What a command ends with.
inline constexpr int kFine = 0;
inline constexpr int kFound = 1;  ///< it found something that a person should look at
inline constexpr int kWrongUse = 2;

/// What a command does once its options are read.
using Action = std::function<int()>;

/// Prints "opmux: MESSAGE" to standard error.
int wrong_use(std::string_view message);

/// A runtime as a program in this environment would have it; prints why if there is none.
std::optional<Runtime> make_runtime(const Options& options = {});

/// A file as it is; nothing, and why it cannot be read printed, if it cannot be.
std::optional<std::string> read_text(const std::string& path);

/// Each adds its subcommand, which sets `action` when it is given.
void add_list(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_config(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_lock(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_plugin(CLI::App& app, Action& action);
void add_quarantine(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_health(CLI::App& app, Action& action);

}  // namespace opmux::cli
