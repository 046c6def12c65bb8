#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/state_page.hpp>

namespace opmux::status_file {

/// Maximum size of a status file. Records that do not fit are counted.
inline constexpr size_t kMaxStatePage = size_t{4} << 20;

/// Identifies a process together with its pid, so that a later process with the same pid is not
/// mistaken for it.
struct ProcessMark {
  std::string pid_namespace;  ///< "pid:[4026531836]"
  uint64_t start_ticks = 0;   ///< start time in clock ticks since boot
};

/// The contents of one status file.
struct StatusPage {
  ProcessMark mark;
  ProcessState process;  ///< has exactly one runtime
};

/// Formats everything except the time of writing, so that callers can compare it with the last body
/// and skip unchanged updates.
std::string status_file_body(const StatusPage& page);
/// Formats the whole file from such a body.
std::string status_file_text(std::string_view body, int64_t written, uint64_t updates);

/// Fails with "state_page.damaged" or "state_page.version". Ignores unknown kinds of records.
Result<StatusPage> parse_status_file(std::string_view text);

}  // namespace opmux::status_file
