#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "plugin/probe/probe.hpp"
#include "probe/confinement.hpp"
#include "probe/crash_report.hpp"
#include "probe/trial.hpp"

namespace {

namespace protocol = opmux::plugin::protocol;

/// Closes descriptors that the parent process had open without close-on-exec.
void close_others() {
  constexpr unsigned kFirst = protocol::kPluginDescriptor + 1;
  if (syscall(SYS_close_range, kFirst, ~0u, 0) == 0) return;
  for (int number = kFirst; number < 65536; ++number) close(number);
}

void go_to_private_folder() {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || chdir(folder) != 0) opmux::probe::leave(protocol::kMisused);
}

/// The verdict as text. An exception in this program's code ends the process, and the parent
/// reports a crash.
std::string report_on(opmux::plugin::LibraryFile file) noexcept {
  return to_text(opmux::probe::Trial(std::move(file)).run());
}

}  // namespace

/// opmux-probe PATH LIBRARY...: probes the plugin that is passed as a descriptor. PATH is its path,
/// empty for a sealed copy. Each LIBRARY is the path of a needed library in an $ORIGIN folder of
/// the plugin. Started by libopmux only.
int main(int count, char** words) {
  if (count < 2 || fcntl(protocol::kReportDescriptor, F_GETFD) < 0 ||
      fcntl(protocol::kPluginDescriptor, F_GETFD) < 0) {
    constexpr char kText[] = "opmux-probe probes plugins and is started by libopmux only\n";
    (void)!write(2, kText, sizeof(kText) - 1);
    return protocol::kMisused;
  }
  close_others();
  go_to_private_folder();
  opmux::probe::enter("start");
  opmux::probe::report_crashes();
  if (!opmux::probe::confine()) return protocol::kUnconfined;
  opmux::probe::tell(
      report_on({words[1], protocol::kPluginDescriptor, {words + 2, words + count}}));
  opmux::probe::leave(protocol::kReported);
}
