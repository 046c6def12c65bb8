#pragma once

#include "cli/command.hpp"

namespace opmux::cli {

/// Each adds its subcommand to `opmux plugin`; it sets `action` if it is given on the command line.
void add_plugin_check(CLI::App& group, Action& action);
void add_plugin_keygen(CLI::App& group, Action& action);
void add_plugin_list(CLI::App& group, Action& action);
void add_plugin_new(CLI::App& group, Action& action);
void add_plugin_sign(CLI::App& group, Action& action);
void add_plugin_verify(CLI::App& group, Action& action);

}  // namespace opmux::cli
