#include "health/journal_layout.hpp"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/checked_line.hpp"
#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace opmux::health {

uint64_t check_of(const JournalHeader& header) {
  uint64_t sum = 0xcbf29ce484222325u;  // FNV-1a
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  for (size_t i = 0; i < offsetof(JournalHeader, check); ++i) {
    sum = (sum ^ bytes[i]) * 0x100000001b3u;
  }
  return sum;
}

std::string boot_id() {
  const base::Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[sizeof(JournalHeader::boot) - 1];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : 0;
  std::string_view id(text, size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(base::take_until(id, '\n'));
}

std::string plain_build(std::string_view build) {
  std::string plain(build.empty() ? "-" : build.substr(0, 128));
  std::ranges::replace_if(
      plain, [](char c) { return c <= ' ' || c > '~' || c == ',' || c == '@'; }, '_');
  return plain;
}

std::string line_of(const JournalName& name) {
  return base::checked_line(base::concat(name.number, name.reference ? " reference " : " other ",
                                         plain_build(name.build), " ", name.id));
}

bool parse_name(std::string_view line, JournalName& name) {
  const auto text = base::text_of_checked(line);
  if (!text) return false;
  std::string_view rest = *text;
  const std::string_view number = base::take_until(rest, ' ');
  const auto read = std::from_chars(number.data(), number.data() + number.size(), name.number);
  name.reference = base::take_until(rest, ' ') == "reference";
  name.build = base::take_until(rest, ' ');
  name.id = rest;
  return read.ec == std::errc() && !name.build.empty() && !name.id.empty();
}

}  // namespace opmux::health
