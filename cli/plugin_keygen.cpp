#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "base/crypto.hpp"
#include "base/system/clock.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "cli/plugin_command.hpp"
#include "plugin/trust/signature.hpp"

namespace opmux::cli {
namespace {

namespace fs = std::filesystem;

struct KeygenOptions {
  std::string name, folder = ".", expires;
};

/// Writes a file that must not exist yet; returns the error, or an empty text.
std::string write_new(const fs::path& path, const std::string& text, mode_t mode) {
  const base::Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  const bool written =
      file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written) return {};
  return base::concat("cannot write ", path.string(), ": ", std::generic_category().message(errno));
}

int keygen(const KeygenOptions& options) {
  if (!options.expires.empty() && !base::is_date(options.expires)) {
    return wrong_use(base::concat("'", options.expires, "' is not a date such as 2031-12-31"));
  }
  const auto key = base::make_signing_key();
  if (!key) return wrong_use("this opmux was built without signatures");
  const plugin::KeyFile open_key{options.name, key->public_key, options.expires};
  const plugin::SecretKeyFile secret{options.name, key->seed};
  if (const auto read = plugin::read_key_file(plugin::text_of(open_key), "trust.key"); !read) {
    return wrong_use(read.error().message());
  }
  const fs::path folder(options.folder), file(options.name);
  if (file.filename() != file)
    return wrong_use("the name of a key is also a file name and must not contain '/'");
  for (const auto& [path, text, mode] :
       {std::tuple{folder / (options.name + ".key"), plugin::text_of(secret), mode_t{0600}},
        std::tuple{folder / (options.name + ".pub"), plugin::text_of(open_key), mode_t{0644}}}) {
    const std::string problem = write_new(path, text, mode);
    if (!problem.empty()) return wrong_use(problem);
    std::cout << "wrote " << path.string() << "\n";
  }
  return kFine;
}

}  // namespace

void add_plugin_keygen(CLI::App& group, Action& action) {
  auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = group.add_subcommand(
      "keygen", "Create a key pair: NAME.key is secret and signs, NAME.pub goes into keyrings");
  command->add_option("NAME", options->name, "name of the key")->required();
  command
      ->add_option("--folder", options->folder,
                   "folder for both files, default the working directory")
      ->type_name("DIR");
  command->add_option("--expires", options->expires, "last day on which the key is valid, in UTC")
      ->type_name("YYYY-MM-DD");
  command->callback([options, &action] { action = [options] { return keygen(*options); }; });
}

}  // namespace opmux::cli
