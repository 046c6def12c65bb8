#include "plugin/probe/probe.hpp"

#include <dlfcn.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/probe/child.hpp"

namespace opmux::plugin {
namespace {

bool passes(std::string_view name) {
  if (name == "LD_LIBRARY_PATH" || name.ends_with("_VISIBLE_DEVICES")) return true;
  return name.starts_with("OCL_ICD_") || name.starts_with("POCL_") || name.starts_with("OMP_");
}

}  // namespace

std::vector<std::string> probe_environment(const char* const* block, const std::string& folder) {
  std::vector<std::string> kept{"HOME=" + folder, "TMPDIR=" + folder, "LANG=C"};
  for (; block != nullptr && *block != nullptr; ++block) {
    const std::string_view entry = *block;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name == "POCL_CACHE_DIR") {
      kept.push_back("POCL_CACHE_DIR=" + folder);
    } else if (passes(name)) {
      kept.emplace_back(entry);
    }
  }
  return kept;
}

namespace {

namespace fs = std::filesystem;

/// A private temporary folder that is removed with its contents.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code failed;
    const fs::path parent = fs::temp_directory_path(failed);
    std::string name = (failed ? fs::path("/tmp") : parent) / "opmux-probe-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

ProbeResult unusable(std::string_view code, std::string text) {
  return {std::string(code), std::move(text), {}, 0, 0, {}, {}};
}

/// 128 random bits in hexadecimal digits; empty if the system has none.
std::string random_digits() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != ssize_t{bytes.size()}) return {};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

constexpr std::string_view kEveryLayer = "every_layer", kAnyLayers = "any_layers";

}  // namespace

namespace protocol {

std::string to_text(const Order& order) {
  return base::concat(order.nonce, "\t", order.require_every_layer ? kEveryLayer : kAnyLayers);
}

Order parse_order(std::string_view text) {
  const size_t tab = text.find('\t');
  if (tab == std::string_view::npos) return {};
  const std::string_view layers = text.substr(tab + 1);
  if (layers != kEveryLayer && layers != kAnyLayers) return {};
  return {std::string(text.substr(0, tab)), layers == kEveryLayer};
}

}  // namespace protocol

std::string probe_program() {
  const std::string here = base::installation_folder();
  if (here.empty()) return {};
  // Libraries may be one folder deeper, in a folder named after the architecture.
  for (const char* up : {"..", "../.."}) {
    std::error_code unknown;
    const fs::path program = (fs::path(here) / up / "libexec/opmux/opmux-probe").lexically_normal();
    if (fs::is_regular_file(program, unknown)) return program.string();
  }
  return (fs::path(here) / "../libexec/opmux/opmux-probe").lexically_normal().string();
}

ProbeResult probe(const std::string& program, const LibraryFile& file, Confinement confinement) {
  if (access(program.c_str(), X_OK) != 0) {
    return unusable("probe.missing", base::concat("the plugin probe ", program,
                                                  " does not exist or is not executable"));
  }
  const PrivateFolder folder;
  if (folder.path().empty()) {
    return unusable("probe.spawn", "cannot create a temporary folder");
  }
  const protocol::Order order{random_digits(), confinement == Confinement::all};
  if (order.nonce.empty()) return unusable("probe.spawn", "the system has no random numbers");
  ChildCommand command;
  command.program = program;
  command.arguments = {file.path};
  for (const NeededLibrary& library : file.libraries) {
    command.arguments.push_back(library.name);
    command.arguments.push_back(library.path);
    command.libraries.push_back(library.descriptor);
  }
  command.environment = probe_environment(environ, folder.path());
  command.given = file.descriptor;
  command.limits = {protocol::kMostData, protocol::kMostShared, protocol::kMostThreads};
#ifdef OPMUX_SANITIZED  // a sanitizer's shadow memory counts as data
  command.limits.data = 0;
#endif
  command.order = to_text(order);
  const Result<ChildReport> report =
      run_child(command, std::chrono::seconds(protocol::kMostSeconds));
  if (!report) return unusable(report.error().reason(), std::string(report.error().message()));
  return judge(report->text, report->ending, order.nonce);
}

}  // namespace opmux::plugin
