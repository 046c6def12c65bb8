#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/probe/verdict.hpp"

namespace opmux::plugin {

/// Digest of everything that a verdict depends on besides the file: this build of opmux, the
/// processor's features, the versions of the kernel and its drivers, and LD_LIBRARY_PATH.
std::string verdict_context();

/// The stored form of a verdict: digest of the file, context, time, and a checksum.
std::string to_entry(std::string_view digest, std::string_view context, int64_t time,
                     const ProbeResult& verdict);
/// Parses the output of to_entry() if it is for this file and context and not too old; otherwise
/// fails with "probe.verdict". Safe for untrusted bytes.
Result<ProbeResult> parse_entry(std::string_view text, std::string_view digest,
                                std::string_view context, int64_t now);

/// Caches verdicts in this process and, if possible, in a folder that processes may share.
/// Not thread-safe: the owner serialises calls.
class VerdictCache {
 public:
  /// Seconds since 1970.
  using Now = std::function<int64_t()>;

  /// If `folder` is empty, verdicts are cached for this process only.
  VerdictCache(std::string folder, std::string context, Now now = {});

  std::optional<ProbeResult> find(const std::string& digest);
  /// Verdicts that do not depend on the file alone are not stored.
  void keep(const std::string& digest, const ProbeResult& verdict);

  /// Why verdicts are not stored on disk; ok if they are.
  const Status& folder_state() const { return folder_state_; }
  /// Number of stored entries that could not be parsed; they are ignored.
  uint64_t corrupt() const { return corrupt_; }

 private:
  std::string path_of(const std::string& digest) const;

  std::string folder_, context_;
  Now now_;
  Status folder_state_;
  uint64_t corrupt_ = 0;
};

}  // namespace opmux::plugin
