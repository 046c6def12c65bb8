#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/plugin_command.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::cli {
namespace {

struct PluginVerifyOptions {
  std::string file, keyring;
};

/// Runs all checks that do not run the plugin's code. Problems with the permissions of its path are
/// only warnings.
int verify_plugin(const PluginVerifyOptions& options) {
  PluginOptions wanted;
  wanted.trust = Trust::signed_only;
  wanted.keyring = std::filesystem::absolute(options.keyring);
  plugin::TrustSettings settings = plugin::trust_settings(wanted);
  settings.paths = plugin::TrustSettings::Paths::reported;
  const auto file = plugin::check_file(std::filesystem::absolute(options.file), settings);
  if (!file) {
    std::cout << "refused: " << file.error().reason() << ": " << file.error().message() << "\n";
    return kFound;
  }
  std::cout << file->path << ": signed by " << file->signer << "\nsha256 " << file->digest << "\n";
  for (const Status& warning : file->warnings) {
    std::cout << "warning: " << warning.reason() << ": " << warning.message() << "\n";
  }
  return kFine;
}

}  // namespace

void add_plugin_verify(CLI::App& group, Action& action) {
  auto options = std::make_shared<PluginVerifyOptions>();
  CLI::App* command =
      group.add_subcommand("verify", "Verify the signature of a plugin with the keys of a keyring");
  command->add_option("FILE", options->file, "the plugin")->required();
  command->add_option("--keyring", options->keyring, "folder with public keys")
      ->required()
      ->type_name("DIR");
  command->callback([options, &action] { action = [options] { return verify_plugin(*options); }; });
}

}  // namespace opmux::cli
