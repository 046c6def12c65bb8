#include "probe/crash_report.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "plugin/probe/probe.hpp"
#include "probe/call_filter.hpp"

namespace opmux::probe {
namespace {

namespace protocol = plugin::protocol;

constexpr size_t kStackSize = 64 * 1024;
alignas(16) char stack[kStackSize];

/// A line of fixed size, because a signal handler must not allocate.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const size_t count = text.size() < sizeof(text_) - size_ ? text.size() : sizeof(text_) - size_;
    std::memcpy(text_ + size_, text.data(), count);
    size_ += count;
    return *this;
  }
  Line& operator<<(unsigned long number) {
    const auto end = std::to_chars(text_ + size_, text_ + sizeof(text_), number).ptr;
    size_ = static_cast<size_t>(end - text_);
    return *this;
  }
  std::string_view view() const { return {text_, size_}; }

 private:
  char text_[128];
  size_t size_ = 0;
};

/// Whether the memory limit is reached, so that a failed allocation caused the crash.
bool memory_is_full() {
  constexpr size_t kPiece = 64 << 20;
  void* piece = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) return errno == ENOMEM;
  munmap(piece, kPiece);
  return false;
}

void on_signal(int number, siginfo_t* info, void*) {
  Line line;
  if (number == SIGSYS) {
    const std::string_view name = forbidden_call(info->si_syscall);
    line << "forbidden\t" << name;
    if (name.empty()) line << "system_call_" << static_cast<unsigned long>(info->si_syscall);
    line << "\n";
  } else if (memory_is_full()) {
    line << "memory\n";
  } else {
    line << "crash\t" << static_cast<unsigned long>(number) << "\t"
         << reinterpret_cast<unsigned long>(info->si_addr) << "\n";
  }
  tell(line.view());
  leave(protocol::kReported);
}

}  // namespace

void report_crashes() {
  const stack_t own{.ss_sp = stack, .ss_flags = 0, .ss_size = kStackSize};
  sigaltstack(&own, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU,
                           SIGXFSZ, SIGALRM, SIGVTALRM, SIGPROF}) {
    sigaction(number, &action, nullptr);
  }
}

void tell(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(protocol::kReportDescriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) leave(protocol::kReportLost);
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void enter(std::string_view stage) {
  Line line;
  line << "at\t" << stage << "\n";
  tell(line.view());
}

void leave(int status) { _exit(status); }

}  // namespace opmux::probe
