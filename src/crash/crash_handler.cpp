#include "crash/crash_handler.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/system/process.hpp"

namespace opmux::crash {
namespace {

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
/// Signals with which users and supervisors ask a process to end.
constexpr std::array kRequests{SIGTERM, SIGINT, SIGHUP};

/// The previous handler per signal. Written only while this handler is not installed.
struct Before {
  struct sigaction action{};
  bool taken = false;  ///< on_fault was installed over it and may still be called
};
std::array<Before, kFaults.size()> handlers_before;
std::atomic<const JournalFile*> fault_journal{nullptr};
base::ForkMutex installing;

size_t index_of(int signal) {
  size_t i = 0;
  while (i + 1 < kFaults.size() && kFaults[i] != signal) ++i;
  return i;
}

uint32_t thread_id() { return static_cast<uint32_t>(::syscall(SYS_gettid)); }

/// If the mapped journal file was truncated, maps anonymous memory over the lost page, so that
/// marks can still be written.
bool replace_lost_page(const siginfo_t& info) {
  const JournalFile* const file = fault_journal.load(std::memory_order_acquire);
  if (info.si_signo != SIGBUS || file == nullptr || !file->contains(info.si_addr)) return false;
  const auto page = reinterpret_cast<uintptr_t>(info.si_addr) & ~uintptr_t{4095};
  return ::mmap(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/// True for a fault, abort() or raise(); false for a signal that kill() sent from elsewhere.
bool own_fault(const siginfo_t& info) {
  return info.si_code > 0 || (info.si_code == SI_TKILL && info.si_pid == ::getpid());
}

/// The word of the code that the thread was in when it gave up its marks. Trivial, so that it
/// outlives the other thread-locals.
thread_local constinit uint32_t ended_inside __attribute__((tls_model("initial-exec"))) = 0;

uint32_t innermost() {
  const auto* const marks = static_cast<const HazardSlotPlaces*>(base::thread_marks);
  return marks != nullptr ? marks->innermost() : ended_inside;
}

/// Records `what` for the first thread that faults; returns false for all others.
bool note(uint32_t what) {
  const JournalFile* const file = fault_journal.load(std::memory_order_acquire);
  if (file == nullptr) return false;
  JournalHeader& header = file->header();
  uint32_t nobody = 0;
  if (!header.fault_claim.compare_exchange_strong(nobody, thread_id())) return false;
  header.fault_known.store(base::thread_marks != nullptr ? 1 : 0, std::memory_order_relaxed);
  const uint32_t word = innermost();
  header.fault_number.store(number_of(word), std::memory_order_relaxed);
  header.fault_phase.store(static_cast<uint32_t>(phase_of(word)), std::memory_order_relaxed);
  header.fault_signal.store(what, std::memory_order_release);
  return true;
}

/// Withdraws the record, because the previous handler handled the fault.
void forget() {
  const JournalFile* const file = fault_journal.load(std::memory_order_acquire);
  if (file == nullptr) return;
  file->header().fault_signal.store(0, std::memory_order_release);
  file->header().fault_claim.store(0, std::memory_order_release);
}

/// Calls the previous handler; returns true if it was a function and returned.
bool pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& action = handlers_before[index_of(signal)].action;
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
    return true;
  }
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    action.sa_handler(signal);
    return true;
  }
  const bool sent = info->si_code <= 0;
  if (sent && action.sa_handler == SIG_IGN) return false;
  // A hardware fault recurs as soon as the handler returns. A signal that was sent must be sent
  // again.
  ::sigaction(signal, &action, nullptr);
  if (sent) ::syscall(SYS_tgkill, ::getpid(), thread_id(), signal);
  return false;
}

/// Whether the process will still end after the previous handler returned: the signal is SIGABRT,
/// the handler reset the signal to its default action, or the signal is pending again and will be
/// delivered once it is unblocked.
bool ends_it(int signal) {
  struct sigaction now{};
  sigset_t pending;
  if (signal == SIGABRT || ::sigaction(signal, nullptr, &now) != 0) return true;
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) return true;
  return ::sigpending(&pending) != 0 || sigismember(&pending, signal) != 0;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  if (!replace_lost_page(*info)) {
    const bool noted = own_fault(*info) && note(static_cast<uint32_t>(signal));
    if (pass_on(signal, info, context) && noted && !ends_it(signal)) forget();
  }
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_fault;
}

/// Records that the process was asked to end, so that the implementations in flight are not
/// suspected. Then lets the signal end the process.
void on_request(int signal) {
  const int saved = errno;
  if (const JournalFile* const file = fault_journal.load(std::memory_order_acquire))
    file->header().idle.store(1, std::memory_order_release);
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
  // The signal is blocked, so it is delivered when this function returns.
  ::syscall(SYS_tgkill, ::getpid(), thread_id(), signal);
  errno = saved;
}

bool has_handler(int signal, void (*handler)(int)) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == handler;
}

/// Replaces a handler of the requests to end, where it is installed.
void exchange_request_handler(void (*from)(int), void (*to)(int)) {
  for (const int signal : kRequests) {
    struct sigaction next{};
    next.sa_handler = to;
    next.sa_flags = to == SIG_DFL ? 0 : SA_ONSTACK | SA_RESTART;
    if (has_handler(signal, from)) ::sigaction(signal, &next, nullptr);
  }
}

// Size of the alternate signal stack of a thread. It also holds the saved wide registers (11 KB
// with AMX) and the frames of previous handlers.
constexpr size_t kSignalStackSize = 64 << 10;
/// The alternate signal stack that ensure_signal_stack() gave the thread; null: none.
thread_local constinit void* signal_stack __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

void install_crash_handler() {
  const std::lock_guard lock(installing);
  for (size_t i = 0; i < kFaults.size(); ++i) {
    if (handlers_before[i].taken) continue;
    if (::sigaction(kFaults[i], nullptr, &handlers_before[i].action) != 0) continue;
    struct sigaction ours{};
    ours.sa_sigaction = &on_fault;
    ours.sa_mask = handlers_before[i].action.sa_mask;
    ours.sa_flags =
        SA_SIGINFO | SA_ONSTACK | (handlers_before[i].action.sa_flags & (SA_NODEFER | SA_RESTART));
    handlers_before[i].taken = ::sigaction(kFaults[i], &ours, nullptr) == 0;
  }
  exchange_request_handler(SIG_DFL, &on_request);
}

void remove_crash_handler() {
  const std::lock_guard lock(installing);
  for (size_t i = 0; i < kFaults.size(); ++i) {
    struct sigaction now{};
    if (!handlers_before[i].taken || ::sigaction(kFaults[i], nullptr, &now) != 0) continue;
    // A handler installed later may call on_fault, so it stays installed and passes signals on.
    if (!is_ours(now)) continue;
    handlers_before[i].taken = ::sigaction(kFaults[i], &handlers_before[i].action, nullptr) != 0;
  }
  exchange_request_handler(&on_request, SIG_DFL);
}

void note_faults_in(const JournalFile* file) {
  fault_journal.store(file, std::memory_order_release);
}

void ensure_signal_stack() {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  void* const memory =
      ::mmap(nullptr, kSignalStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  const stack_t own{memory, 0, kSignalStackSize};
  if (::sigaltstack(&own, nullptr) == 0) {
    signal_stack = memory;
  } else {
    ::munmap(memory, kSignalStackSize);
  }
}

void free_signal_stack() {
  if (signal_stack == nullptr) return;
  const stack_t none{nullptr, SS_DISABLE, 0};
  ::sigaltstack(&none, nullptr);
  ::munmap(std::exchange(signal_stack, nullptr), kSignalStackSize);
}

void thread_ends_inside(uint32_t word) { ended_inside = word; }

bool note_exit() {
  if (innermost() == 0) return false;
  note(kEndedByExit);
  return true;
}

}  // namespace opmux::crash
