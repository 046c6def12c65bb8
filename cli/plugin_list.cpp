#include <iostream>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "cli/plugin_command.hpp"

namespace opmux::cli {
namespace {

struct PluginListOptions {
  PluginOptions plugins;
  bool no_probe = false, json = false;
};

void print(const PluginInfo& plugin) {
  std::cout << (plugin.loaded ? "loaded   " : "refused  ") << plugin.path;
  if (!plugin.name.empty()) {
    std::cout << "  " << plugin.name << (plugin.version.empty() ? "" : " ") << plugin.version;
  }
  std::cout << "  (" << plugin.found_in << ")\n";
  if (!plugin.backends.empty()) {
    std::cout << "         " << plugin.implementations.size() << " implementations of "
              << base::join(plugin.backends, ", ") << "\n";
  }
  if (!plugin.signer.empty()) std::cout << "         signed by " << plugin.signer << "\n";
  if (!plugin.code.empty()) {
    std::cout << "         " << plugin.code << ": " << plugin.reason << "\n";
  }
  for (const std::string& warning : plugin.warnings) {
    std::cout << "         warning: " << warning << "\n";
  }
}

int list_plugins(PluginListOptions& options) {
  options.plugins.probe = !options.no_probe;
  Options wanted;
  wanted.plugins = options.plugins;
  const Result<Runtime> runtime = Runtime::create(wanted);
  if (!runtime) return wrong_use(runtime.error().message());
  const std::vector<PluginInfo> plugins = runtime->plugins().list();
  bool all = true;
  for (const PluginInfo& plugin : plugins) all = all && plugin.loaded;
  if (options.json) {
    std::cout << to_json(plugins) << "\n";
  } else {
    for (const PluginInfo& plugin : plugins) print(plugin);
  }
  return all ? kFine : kFound;
}

}  // namespace

void add_plugin_list(CLI::App& group, Action& action) {
  auto options = std::make_shared<PluginListOptions>();
  CLI::App* command = group.add_subcommand(
      "list", "List all plugins that were found, whether they were loaded, and why not");
  const std::map<std::string, Trust> words{
      {"any", Trust::any}, {"digest", Trust::digest}, {"signed", Trust::signed_only}};
  PluginOptions& plugins = options->plugins;
  command->add_option("--folder", plugins.folders, "also search this folder (may be repeated)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->add_option("--trust", plugins.trust, "any, digest or signed; default any")
      ->type_name("WORD")
      ->transform(CLI::Transformer(words));
  command->add_option("--keyring", plugins.keyring, "folder with public keys")->type_name("DIR");
  command->add_option("--digest", plugins.digests, "an allowed SHA-256 (may be repeated)")
      ->type_name("HEX")
      ->allow_extra_args(false);
  command->add_flag("--sealed", plugins.sealed, "load plugins from sealed copies in memory");
  command->add_flag("--no-probe", options->no_probe, "do not probe plugins in a child process");
  command->add_flag("--require-confinement", plugins.require_confinement,
                    "refuse plugins if the system lacks a layer of the probe's confinement");
  command->add_flag("--json", options->json,
                    "print JSON as described in docs/schemas/plugins.json");
  command->callback([options, &action] { action = [options] { return list_plugins(*options); }; });
}

}  // namespace opmux::cli
