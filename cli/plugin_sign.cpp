#include <filesystem>

#include "cli/plugin_command.hpp"
#include "cli/signing.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::cli {
namespace {

int sign_plugin(const std::string& path, const std::string& key) {
  plugin::TrustSettings settings;
  settings.paths = plugin::TrustSettings::Paths::reported;
  const auto file = plugin::check_file(std::filesystem::absolute(path), settings);
  if (!file) return wrong_use(file.error().to_string());
  return write_signature(key, file->path, file->digest);
}

}  // namespace

void add_plugin_sign(CLI::App& group, Action& action) {
  add_sign(group, action, "Sign a plugin: write FILE.sig next to it", "the plugin", sign_plugin);
}

}  // namespace opmux::cli
