#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

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

/// Closes the order and descriptors that the parent process had open without close-on-exec, except
/// those of the libraries.
void close_others(size_t libraries) {
  close(protocol::kOrderDescriptor);
  const int first = protocol::kLibraryDescriptor + static_cast<int>(libraries);
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0u, 0) == 0) return;
  for (int number = first; number < 65536; ++number) close(number);
}

/// The plugin and its libraries, which are passed as descriptors.
opmux::plugin::LibraryFile given_file(int count, char** words) {
  opmux::plugin::LibraryFile file{words[1], protocol::kPluginDescriptor};
  int number = protocol::kLibraryDescriptor;
  for (int i = 2; i + 1 < count; i += 2) {
    file.libraries.push_back({words[i], words[i + 1], number++});
  }
  return file;
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

/// opmux-probe PATH [NAME LIBRARY]...: probes the plugin that is passed as a descriptor. PATH is
/// its path, empty for a sealed copy. NAME and LIBRARY are the name and path of each library that
/// the plugin brings, in the order of their descriptors. Started by libopmux only.
int main(int count, char** words) {
  if (count < 2 || fcntl(protocol::kReportDescriptor, F_GETFD) < 0 ||
      fcntl(protocol::kPluginDescriptor, F_GETFD) < 0) {
    constexpr char kText[] = "opmux-probe probes plugins and is started by libopmux only\n";
    (void)!write(2, kText, sizeof(kText) - 1);
    return protocol::kMisused;
  }
  const protocol::Order order = read_order();
  if (order.nonce.empty()) return protocol::kMisused;
  opmux::plugin::LibraryFile file = given_file(count, words);
  close_others(file.libraries.size());
  opmux::probe::enter("start");
  opmux::probe::report_crashes();
  confine_as(order, words[1]);
  const std::string verdict = report_on(std::move(file));
  opmux::probe::tell("nonce\t" + order.nonce + "\n" + verdict);
  opmux::probe::leave(protocol::kReported);
}
