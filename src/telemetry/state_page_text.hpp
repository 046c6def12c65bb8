#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/state_page.hpp>

namespace opmux::telemetry {

/// A page holds no more; what does not fit is counted.
inline constexpr size_t kMaxStatePage = size_t{4} << 20;

/// Which process a page is of, so that one that got the same number later is not taken for it.
struct ProcessMark {
  std::string pid_namespace;  ///< "pid:[4026531836]"
  uint64_t start_ticks = 0;   ///< since the boot
};

struct StatePage {
  ProcessMark mark;
  ProcessState process;  ///< with one runtime
};

/// Everything but when it was written: differs if there is something to tell.
std::string state_page_body(const StatePage& page);
/// The text of a page with such a body.
std::string state_page_text(std::string_view body, int64_t written, uint64_t updates);

/// Fails with "state_page.damaged" or "state_page.version". Records of a kind that is not known are
/// passed over.
Result<StatePage> parse_state_page(std::string_view text);

}  // namespace opmux::telemetry
