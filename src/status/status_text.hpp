#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <opmux/state_page.hpp>

namespace opmux::status_file {

/// Escapes tabs, newlines and backslashes in the text of a field.
std::string escaped_field(std::string_view text);

inline std::string page_field(std::string_view text) { return escaped_field(text); }
inline std::string page_field(bool yes) { return yes ? "1" : "0"; }
template <std::integral T>
std::string page_field(T number) {
  return std::to_string(number);
}

/// One line of a status file: the kind of record and its fields, separated by tabs.
template <class... Fields>
std::string page_record(std::string_view kind, const Fields&... fields) {
  std::string line(kind);
  ((line += '\t', line += page_field(fields)), ...);
  return line + "\n";
}

/// Reads the fields of a line in order. Missing fields, as in a status file of an older version,
/// read as empty or 0.
class StatusFields {
 public:
  explicit StatusFields(std::string_view line, char separator = '\t')
      : rest_(line), separator_(separator) {}

  std::string text();
  int64_t number() { return integer<int64_t>(); }
  uint64_t count() { return integer<uint64_t>(); }
  /// False if a field was malformed or refuse() was called.
  bool good() const { return good_; }
  void refuse() { good_ = false; }

 private:
  std::string_view next();
  template <class T>
  T integer();

  std::string_view rest_;
  char separator_;
  bool good_ = true;
};

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
