#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "cli/command.hpp"

namespace opmux::cli {
namespace {

struct ShowOptions {
  PolicyTrust policy_trust = PolicyTrust::warn;
  bool json = false;
};

int show(const ShowOptions& asked) {
  Options options;
  options.policy_trust = asked.policy_trust;
  std::optional<Runtime> runtime = make_runtime(options);
  if (!runtime) return kWrongUse;
  const std::vector<SettingInfo> settings = runtime->settings();
  if (asked.json) {
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
  auto options = std::make_shared<ShowOptions>();
  CLI::App* config = app.add_subcommand("config", "Show settings");
  config->require_subcommand(1);
  CLI::App* command =
      config->add_subcommand("show", "Print every effective setting and its origin");
  const std::map<std::string, PolicyTrust> words{{"warn", PolicyTrust::warn},
                                                 {"refuse", PolicyTrust::refuse}};
  command
      ->add_option("--policy-trust", options->policy_trust,
                   "warn or refuse: what happens to policy files that other users can write; "
                   "default warn")
      ->type_name("WORD")
      ->transform(CLI::Transformer(words));
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/config.json");
  command->callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace opmux::cli
