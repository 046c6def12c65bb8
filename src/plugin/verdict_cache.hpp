#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// What a verdict depends on besides the file: this build of opmux, the processor's features, the
/// versions of the system and its drivers, where libraries are looked for.
std::string verdict_context();

/// A verdict as it is kept: for which file and context, since when, with a check of its bytes.
std::string to_entry(std::string_view digest, std::string_view context, int64_t time,
                     const Verdict& verdict);
/// Reads what to_entry wrote if it is for this file and context and not too old. Fails with
/// "probe.verdict" if it is anything else; for bytes from anywhere.
Result<Verdict> parse_entry(std::string_view text, std::string_view digest,
                            std::string_view context, int64_t now);

/// Remembers verdicts in this process and, if it can, in a folder. Thread-safe; processes may share
/// the folder.
class VerdictCache {
 public:
  /// Seconds since 1970.
  using Now = std::function<int64_t()>;

  /// `folder` empty: nothing outlives the process.
  VerdictCache(std::string folder, std::string context, Now now = {});

  std::optional<Verdict> find(const std::string& digest);
  /// Verdicts that say more of this moment than of the file are forgotten at once.
  void keep(const std::string& digest, const Verdict& verdict);

  /// Why nothing outlives the process; ok if it does.
  const Status& folder_state() const { return folder_state_; }
  /// How many entries could not be read; they count as not there.
  uint64_t corrupt() const { return corrupt_; }

 private:
  std::string path_of(const std::string& digest) const;

  std::string folder_, context_;
  Now now_;
  Status folder_state_;
  uint64_t corrupt_ = 0;
};

}  // namespace opmux::plugin
