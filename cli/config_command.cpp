#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "cli/command.hpp"

namespace opmux::cli {
namespace {

int show(bool json) {
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  const std::vector<SettingInfo> settings = runtime->settings();
  if (json) {
    std::cout << to_json(settings) << "\n";
    return kFine;
  }
  size_t keys = 0;
  size_t values = 0;
  for (const SettingInfo& setting : settings) {
    keys = std::max(keys, setting.key.size());
    values = std::max(values, setting.value.size());
  }
  for (const SettingInfo& setting : settings) {
    std::cout << std::left << std::setw(static_cast<int>(keys + 2)) << setting.key
              << std::setw(static_cast<int>(values + 2)) << setting.value << setting.origin << "\n";
  }
  return kFine;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* config = app.add_subcommand("config", "Show settings");
  config->require_subcommand(1);
  CLI::App* command =
      config->add_subcommand("show", "Print every effective setting and its origin");
  command->add_flag("--json", *json, "print JSON as described in docs/schemas/config.json");
  command->callback([json, &action] { action = [json] { return show(*json); }; });
}

}  // namespace opmux::cli
