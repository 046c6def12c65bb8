#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "plugin/probe_protocol.hpp"
#include "probe/confinement.hpp"
#include "probe/crash_report.hpp"
#include "probe/trial.hpp"

namespace {

namespace protocol = opmux::plugin::protocol;

/// Whatever the process that started this one had open and did not mark to be closed.
void close_others() {
  constexpr unsigned kFirst = protocol::kPluginDescriptor + 1;
  if (syscall(SYS_close_range, kFirst, ~0u, 0) == 0) return;
  for (int number = kFirst; number < 65536; ++number) close(number);
}

void go_to_private_folder() {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || chdir(folder) != 0) opmux::probe::leave(protocol::kMisused);
}

/// The verdict as text. What our own code throws ends the process, and is told as a crash.
std::string report_on(opmux::plugin::LibraryFile file) noexcept {
  return to_text(opmux::probe::Trial(std::move(file)).run());
}

}  // namespace

/// opmux-probe PATH LIBRARY...: tries the plugin that was given as a descriptor; PATH is where it
/// lies, empty for a sealed copy, and each LIBRARY is one that it needs and that lies beside it.
/// Started by libopmux only.
int main(int count, char** words) {
  if (count < 2 || fcntl(protocol::kReportDescriptor, F_GETFD) < 0 ||
      fcntl(protocol::kPluginDescriptor, F_GETFD) < 0) {
    constexpr char kText[] = "opmux-probe is started by libopmux, to try plugins\n";
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
