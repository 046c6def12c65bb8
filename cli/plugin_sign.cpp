#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "cli/plugin_command.hpp"
#include "plugin/trust/checked_file.hpp"
#include "plugin/trust/signature.hpp"

namespace opmux::cli {
namespace {

struct SignOptions {
  std::string file, key;
};

int sign(const SignOptions& options) {
  const std::optional<std::string> text = read_text(options.key);
  if (!text) return kWrongUse;
  const auto key = plugin::read_secret_key_file(*text, "trust.key");
  if (!key) return wrong_use(base::concat(options.key, ": ", key.error().message()));
  plugin::TrustSettings settings;
  settings.paths = plugin::TrustSettings::Paths::reported;
  const auto file = plugin::check_file(std::filesystem::absolute(options.file), settings);
  if (!file) return wrong_use(file.error().to_string());
  const auto signature = plugin::make_signature(*key, file->digest);
  if (!signature) return wrong_use(signature.error().message());
  const std::string path = file->path + ".sig";
  std::ofstream out(path);
  out << plugin::text_of(*signature) << std::flush;
  if (!out) return wrong_use(base::concat("cannot write ", path));
  std::cout << "wrote " << path << "\n";
  return kFine;
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
