#include "hot_path_counting.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iterator>

#include "allocations.hpp"

// Definitions in the program override those of the C library, also for libopmux and libstdc++.
namespace {

std::atomic<uint64_t> locks, clocks;
std::atomic<uint64_t>* system_calls = nullptr;  // In a page shared with the parent.

void add(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  add(locks);
  static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  add(locks);
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  add(locks);
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  return real(lock);
}
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  add(clocks);
  static auto* const real = next<int(clockid_t, timespec*)>("clock_gettime");
  return real(clock, time);
}

}  // extern "C"

namespace opmux::test {
namespace {

void on_trap(int, siginfo_t*, void* context) {
  system_calls->fetch_add(1, std::memory_order_relaxed);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

/// From here on every system call is trapped, except those that end a signal handler or the
/// process.
bool trap_system_calls() {
  struct sigaction action{};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigreturn, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

struct Shared {
  std::atomic<uint64_t> system_calls;
  Counts counts;
  bool good;
};

void run_in_child(const std::function<bool()>& body, Shared& shared) {
  alarm(60);
  if (!body()) _exit(1);
  system_calls = &shared.system_calls;
  if (!trap_system_calls()) _exit(2);
  locks = clocks = 0;
  const uint64_t allocations = allocations_so_far(), frees = frees_so_far();
  const bool good = body();
  shared.counts = {allocations_so_far() - allocations, frees_so_far() - frees, locks, clocks,
                   shared.system_calls};
  shared.good = good;
  _exit(0);
}

}  // namespace

Counted count_second_run(const std::function<bool()>& body) {
  void* page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return {};
  auto& shared = *static_cast<Shared*>(page);
  const pid_t child = fork();
  if (child == 0) run_in_child(body, shared);
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                     WEXITSTATUS(status) == 0;
  const Counted counted{ended && shared.good, shared.counts};
  munmap(page, sizeof(Shared));
  return counted;
}

}  // namespace opmux::test
