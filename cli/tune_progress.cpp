#include "cli/tune_progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::cli {
namespace {

constexpr size_t kBar = 20;

size_t width_of_terminal() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// "1:05"
std::string minutes(uint64_t nanoseconds) {
  const uint64_t seconds = nanoseconds / 1'000'000'000;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%llu:%02llu",
                static_cast<unsigned long long>(seconds / 60),
                static_cast<unsigned long long>(seconds % 60));
  return text.data();
}

}  // namespace

TuneProgress::TuneProgress()
    : terminal_(isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {}

void TuneProgress::show(const tuner::RunProgress& progress) {
  if (!terminal_) return;
  const size_t full = progress.cells == 0 ? 0 : kBar * progress.done / progress.cells;
  std::string line =
      base::concat("[", std::string(full, '#'), std::string(kBar - full, '-'), "] ", progress.done,
                   "/", progress.cells, " cells, ", minutes(progress.left_ns), " left: ");
  const size_t most = width_of_terminal() - 1;
  line = base::without_controls(line + progress.racing);
  if (line.size() > most) line.resize(most);
  // std::cerr would show the control characters as text.
  base::write_all(STDERR_FILENO, "\r\x1b[K" + line);
  shown_ = true;
}

void TuneProgress::finished(const tuner::MeasuredCell& cell) {
  if (terminal_) return;
  std::cout << name_of(cell) << ": " << cell.races << " races, " << cell.reused
            << " points from the workbench" << (cell.complete ? "" : "; not finished") << std::endl;
}

void TuneProgress::clear() {
  if (shown_) base::write_all(STDERR_FILENO, "\r\x1b[K");
  shown_ = false;
}

}  // namespace opmux::cli
