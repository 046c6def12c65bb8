#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "plugin/probe/probe.hpp"
#include "probe/confinement.hpp"
#include "probe/crash_report.hpp"
#include "probe/trial.hpp"

namespace {

namespace protocol = opmux::plugin::protocol;

/// Reads the order of the parent process to its end. Without an order its nonce is empty.
protocol::Order read_order() {
  std::array<char, 512> text{};
  size_t size = 0;
  ssize_t count = 0;
  do {
    count = read(protocol::kOrderDescriptor, text.data() + size, text.size() - size);
    if (count > 0) size += static_cast<size_t>(count);
  } while (count > 0 || (count < 0 && errno == EINTR));
  return protocol::parse_order({text.data(), size});
}

/// Closes the order and descriptors that the parent process had open without close-on-exec.
void close_others() {
  constexpr unsigned kFirst = protocol::kPluginDescriptor + 1;
  if (syscall(SYS_close_range, kFirst, ~0u, 0) == 0) return;
  for (int number = kFirst; number < 65536; ++number) close(number);
}

/// Confines this process, reports the layers that the system lacks, and ends the process if they
/// are needed.
void confine_as(const protocol::Order& order, const char* plugin) {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr) opmux::probe::leave(protocol::kMisused);
  const opmux::probe::Confined confined = opmux::probe::confine(folder, plugin);
  if (!confined.missing.empty()) {
    std::string line = "missing";
    for (const std::string_view layer : confined.missing) (line += '\t') += layer;
    opmux::probe::tell(line + "\n");
  }
  const bool enough = confined.missing.empty() || !order.require_every_layer;
  if (!confined.done || !enough) opmux::probe::leave(protocol::kUnconfined);
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
  const protocol::Order order = read_order();
  if (order.nonce.empty()) return protocol::kMisused;
  close_others();
  opmux::probe::enter("start");
  opmux::probe::report_crashes();
  confine_as(order, words[1]);
  const std::string verdict =
      report_on({words[1], protocol::kPluginDescriptor, {words + 2, words + count}});
  opmux::probe::tell("nonce\t" + order.nonce + "\n" + verdict);
  opmux::probe::leave(protocol::kReported);
}
