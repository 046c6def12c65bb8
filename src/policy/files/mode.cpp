#include "policy/files/mode.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "policy/rules/environment.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

Status does_not_fit(std::string_view mode, std::string_view why) {
  return {Code::invalid_argument, "mode.files", base::concat("mode ", mode, why)};
}

const std::string& first_of(const std::string& a, const std::string& b) {
  return a.empty() ? b : a;
}

/// Made absolute now, because the process may change its working directory while a file is watched.
std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path made = path.empty() ? fs::path() : fs::absolute(path, error);
  return error ? path : made.lexically_normal().native();
}

/// The configured lockfile, else opmux.lock beside the policy file.
std::string find_lockfile(const std::string& said, const std::string& config) {
  if (!said.empty() || config.empty()) return said;
  std::error_code error;
  const fs::path folder =
      fs::is_directory(config, error) ? fs::path(config) : fs::path(config).parent_path();
  const fs::path beside = folder / "opmux.lock";
  return fs::exists(beside, error) ? beside.native() : std::string();
}

Mode::Kind kind_of(std::string_view word, const Mode& mode) {
  if (word == "static") return Mode::Kind::locked;
  if (word == "config") return Mode::Kind::config;
  if (word == "hot_reload") return Mode::Kind::hot_reload;
  if (word == "dynamic") return Mode::Kind::dynamic;
  if (!mode.lockfile.empty()) return Mode::Kind::locked;
  return mode.config.empty() ? Mode::Kind::dynamic : Mode::Kind::hot_reload;
}

Status check(const Mode& mode) {
  const bool reads = mode.kind == Mode::Kind::config || mode.kind == Mode::Kind::hot_reload;
  if (reads && mode.config.empty()) {
    return does_not_fit(name_of(mode.kind),
                        " needs a policy file: set OPMUX_CONFIG or Options::sources.config");
  }
  if (mode.kind == Mode::Kind::dynamic && !mode.config.empty()) {
    return does_not_fit("dynamic", base::concat(" does not read a policy file, but ", mode.config,
                                                " is configured; unset the mode or the file"));
  }
  if (mode.kind != Mode::Kind::locked) {
    if (mode.lockfile_origin.empty()) return {};
    return does_not_fit(name_of(mode.kind),
                        base::concat(" does not use a lockfile, but ", mode.lockfile,
                                     " is configured; unset the mode or the lockfile"));
  }
  if (mode.lockfile.empty()) {
    return does_not_fit("static",
                        " needs a lockfile: set OPMUX_LOCKFILE or Options::sources.lockfile, or "
                        "put opmux.lock beside the policy file");
  }
  return {};
}

}  // namespace

std::string_view name_of(Mode::Kind kind) {
  switch (kind) {
    case Mode::Kind::dynamic: return "dynamic";
    case Mode::Kind::config: return "config";
    case Mode::Kind::hot_reload: return "hot_reload";
    case Mode::Kind::locked: return "static";
  }
  return "unknown";
}

Result<Mode> mode_of(const SourceOptions& options, const Environment& environment) {
  Mode mode;
  mode.config = absolute(first_of(options.config, environment.config));
  mode.platform = first_of(options.platform, environment.platform);
  mode.platform_origin = !options.platform.empty()       ? "Options (code)"
                         : !environment.platform.empty() ? "OPMUX_PLATFORM (environment)"
                                                         : "";
  mode.device_folder = options.device_folder.empty() ? "/dev" : options.device_folder;
  mode.state_dir = environment.state_dir;
  mode.lockfile_origin = !options.lockfile.empty()       ? "Options (code)"
                         : !environment.lockfile.empty() ? "OPMUX_LOCKFILE (environment)"
                                                         : "";
  mode.lockfile = find_lockfile(first_of(options.lockfile, environment.lockfile), mode.config);
  const std::string& word = first_of(options.mode, environment.mode);
  if (!word.empty() && std::ranges::find(kModes, word) == kModes.end()) {
    return Status(Code::invalid_argument, "mode.value",
                  base::concat("'", word, "' is not a mode; the modes are ",
                               base::join(kModes, ", "), base::suggestion(word, kModes)));
  }
  mode.kind = kind_of(word, mode);
  mode.origin = !options.mode.empty()       ? "Options (code)"
                : !environment.mode.empty() ? "OPMUX_MODE (environment)"
                                            : "built-in";
  if (word.empty() || word == "auto") {
    mode.origin += ", auto";
    mode.by_found_lockfile = mode.kind == Mode::Kind::locked && mode.lockfile_origin.empty();
    if (mode.by_found_lockfile) mode.origin += ", because of " + mode.lockfile;
  }
  if (Status status = check(mode); !status.ok()) return status;
  return mode;
}

}  // namespace opmux::policy
