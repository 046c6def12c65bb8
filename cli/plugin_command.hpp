#pragma once

#include "cli/command.hpp"

namespace opmux::cli {

/// Each adds its subcommand to `opmux plugin`, and sets `action` when it is given.
void add_plugin_check(CLI::App& group, Action& action);
void add_plugin_keygen(CLI::App& group, Action& action);
void add_plugin_list(CLI::App& group, Action& action);
void add_plugin_new(CLI::App& group, Action& action);
void add_plugin_sign(CLI::App& group, Action& action);
void add_plugin_verify(CLI::App& group, Action& action);

}  // namespace opmux::cli
