#include "cli/plugin_command.hpp"

namespace opmux::cli {

void add_plugin(CLI::App& app, Action& action) {
  CLI::App* group = app.add_subcommand("plugin", "Create, check, list and sign plugins");
  group->require_subcommand(1);
  add_plugin_new(*group, action);
  add_plugin_check(*group, action);
  add_plugin_list(*group, action);
  add_plugin_keygen(*group, action);
  add_plugin_sign(*group, action);
  add_plugin_verify(*group, action);
}

}  // namespace opmux::cli
