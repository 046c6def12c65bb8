#include "plugin/probe/verdict_cache.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include <opmux/version.h>

#include "base/crypto.hpp"
#include "base/line_records.hpp"
#include "base/locks.hpp"
#include "base/system/cpu_features.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"

namespace opmux::plugin {
namespace {

constexpr std::string_view kEntryHead = "opmux-verdict-entry 1";
constexpr int64_t kDay = 24 * 60 * 60;
constexpr size_t kLongestEntry = kLongestVerdict + 4096;

/// Codes that may result from a busy machine, so they are cached for one day.
constexpr std::array<std::string_view, 2> kPassing{"probe.hang", "probe.memory"};
/// Codes that do not depend on the file alone, so they are not cached: a missing dependency may be
/// installed later.
constexpr std::array<std::string_view, 6> kMomentary{"probe.missing",    "probe.spawn",
                                                     "probe.unconfined", "probe.verdict",
                                                     "plugin.open",      "plugin.swapped"};

bool among(std::span<const std::string_view> codes, std::string_view code) {
  return std::ranges::find(codes, code) != codes.end();
}

std::string digest_of(std::string_view text) {
  return base::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

/// Versions of the kernel and of device drivers, on which crashes and results of plugins depend.
std::string driver_versions() {
  std::string all;
  for (const char* module : {"nvidia", "nvidia_uvm", "amdgpu", "i915", "xe", "habanalabs"}) {
    const std::string path = base::concat("/sys/module/", module, "/version");
    if (const auto version = base::read_whole(path, 4096)) {
      all += base::concat(module, "=", *version, ";");
    }
  }
  utsname system{};
  if (uname(&system) == 0) all += system.release;
  return all;
}

/// Identifies this build of opmux by the size and modification time of the library.
std::string own_build() {
  struct stat file{};
  const std::string path = base::own_library();
  if (stat(path.c_str(), &file) != 0) return OPMUX_VERSION;
  return base::concat(OPMUX_VERSION, ":", file.st_size, ":", file.st_mtim.tv_sec, ":",
                      file.st_mtim.tv_nsec);
}

/// Verdicts that this process knows, by context and digest.
using Known = std::map<std::pair<std::string, std::string>, ProbeResult>;
base::ForkGuarded<Known>& known() {
  static constinit base::Lazy<base::ForkGuarded<Known>> all;
  return all.get();
}

Status unreadable(std::string_view why) {
  return {Code::invalid_argument, "probe.verdict", base::concat("the cached verdict is ", why)};
}

}  // namespace

std::string verdict_context() {
  std::string all = base::concat(own_build(), "\n", driver_versions(), "\n");
  for (const std::string& feature : base::cpu_features()) all += feature + ",";
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  all += base::concat("\n", libraries != nullptr ? libraries : "");
  return digest_of(all);
}

std::string to_entry(std::string_view digest, std::string_view context, int64_t time,
                     const ProbeResult& verdict) {
  const std::string body = base::concat(digest, "\n", context, "\n", time, "\n", to_text(verdict));
  return base::sealed_text(kEntryHead, body);
}

Result<ProbeResult> parse_entry(std::string_view text, std::string_view digest,
                                std::string_view context, int64_t now) {
  if (text.size() > kLongestEntry) return unreadable("too long");
  const auto body = base::body_of_sealed(kEntryHead, text);
  if (!body) return unreadable("damaged or in another format");
  std::string_view rest = *body;
  if (base::take_until(rest, '\n') != digest || base::take_until(rest, '\n') != context)
    return unreadable("for another file or context");
  base::RecordFields when(base::take_until(rest, '\n'));
  const int64_t time = when.number();
  if (!when.good()) return unreadable("missing its time");
  Result<ProbeResult> verdict = parse_verdict(rest);
  if (verdict && among(kPassing, verdict->code) && (now - time > kDay || time > now)) {
    return unreadable("too old");
  }
  return verdict;
}

VerdictCache::VerdictCache(std::string folder, std::string context, Now now)
    : folder_(std::move(folder)), context_(std::move(context)), now_(std::move(now)) {
  if (!now_) {
    now_ = [] {
      const auto since = std::chrono::system_clock::now().time_since_epoch();
      return int64_t{std::chrono::duration_cast<std::chrono::seconds>(since).count()};
    };
  }
  if (folder_.empty()) {
    folder_state_ = {Code::failed, "store.folder", "no state folder is set"};
    return;
  }
  folder_ += "/verdicts";
  folder_state_ = base::make_private_folder(folder_);
}

std::string VerdictCache::path_of(const std::string& digest) const {
  return base::concat(folder_, "/", digest, "-", context_.substr(0, 16));
}

std::optional<ProbeResult> VerdictCache::find(const std::string& digest) {
  if (digest.empty()) return std::nullopt;
  const std::pair key(context_, digest);
  auto remembered = known().with([&](const Known& all) -> std::optional<ProbeResult> {
    const auto at = all.find(key);
    return at == all.end() ? std::nullopt : std::optional(at->second);
  });
  if (remembered || !folder_state_.ok()) return remembered;
  const Result<std::string> text = base::read_whole(path_of(digest), kLongestEntry);
  if (!text) return std::nullopt;
  Result<ProbeResult> verdict = parse_entry(*text, digest, context_, now_());
  if (!verdict) {
    ++corrupt_;
    return std::nullopt;
  }
  known().with([&](Known& all) { all[key] = *verdict; });
  return *std::move(verdict);
}

void VerdictCache::keep(const std::string& digest, const ProbeResult& verdict) {
  if (digest.empty() || among(kMomentary, verdict.code)) return;
  known().with([&](Known& all) { all[{context_, digest}] = verdict; });
  if (!folder_state_.ok()) return;
  const std::string path = path_of(digest);
  if (base::replace_file(path, to_entry(digest, context_, now_(), verdict), 0600)) return;
  folder_state_ = {Code::failed, "store.write",
                   base::concat("cannot write ", path, ": ", std::strerror(errno))};
}

}  // namespace opmux::plugin
