#include "telemetry/process_mark.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>

#include "base/checked_line.hpp"
#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "telemetry/page_record.hpp"

namespace opmux::telemetry {
namespace {

/// The first kilobyte of a file in /proc; empty if it cannot be read.
std::string kernel_text(const std::string& path) {
  const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
  return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

int64_t seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec;
}

}  // namespace

uint64_t start_ticks_of(int64_t pid) {
  const std::string text = kernel_text(base::concat("/proc/", pid, "/stat"));
  // The process name, in parentheses, may contain any character. The start time is the twentieth
  // field after it.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return 0;
  std::string_view rest = std::string_view(text).substr(name_end + 2);
  for (int i = 0; i < 19; ++i) base::take_until(rest, ' ');
  return PageFields(rest, ' ').count();
}

ProcessMark own_mark() {
  std::array<char, 64> name;
  const ssize_t size = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return {{name.data(), size > 0 ? static_cast<size_t>(size) : 0}, start_ticks_of(::getpid())};
}

std::string own_name() {
  const std::string text = kernel_text("/proc/self/comm");
  std::string_view line = text;
  return std::string(base::take_until(line, '\n'));
}

int64_t own_start(const ProcessMark& mark) {
  const auto since_boot = static_cast<int64_t>(mark.start_ticks) / ::sysconf(_SC_CLK_TCK);
  return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + since_boot;
}

}  // namespace opmux::telemetry
