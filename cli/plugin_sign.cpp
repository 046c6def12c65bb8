#include <filesystem>
#include <memory>

#include "cli/plugin_command.hpp"
#include "cli/signing.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::cli {
namespace {

struct SignOptions {
  std::string file, key;
};

int sign(const SignOptions& options) {
  plugin::TrustSettings settings;
  settings.paths = plugin::TrustSettings::Paths::reported;
  const auto file = plugin::check_file(std::filesystem::absolute(options.file), settings);
  if (!file) return wrong_use(file.error().to_string());
  return write_signature(options.key, file->path, file->digest);
}

}  // namespace

void add_plugin_sign(CLI::App& group, Action& action) {
  auto options = std::make_shared<SignOptions>();
  CLI::App* command = group.add_subcommand("sign", "Sign a plugin: write FILE.sig next to it");
  command->add_option("FILE", options->file, "the plugin")->required();
  command->add_option("--key", options->key, "the secret key, NAME.key of `opmux plugin keygen`")
      ->required()
      ->type_name("FILE");
  command->callback([options, &action] { action = [options] { return sign(*options); }; });
}

}  // namespace opmux::cli
