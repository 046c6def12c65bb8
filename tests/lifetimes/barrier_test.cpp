#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <thread>

#include "dispatch/call/thread_block.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// Makes the system refuse a system call with EPERM, for this process and for good.
bool refuse(std::initializer_list<uint32_t> calls) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const uint32_t number : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Runs `body` in a forked process and returns its exit code.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/// The litmus test "store buffering" with the barrier on one side only. Returns the number of
/// rounds in which neither thread saw the store of the other one, or -1 if there was no barrier.
int missed_stores(int rounds) {
  alignas(64) std::atomic<int> mark{0};
  alignas(64) std::atomic<int> epoch{0};
  alignas(64) std::atomic<int> round{0}, ready{0};
  std::atomic<int> seen{0};
  std::thread reader([&] {
    for (int i = 1; i <= rounds; ++i) {
      while (round.load() != i) {
      }
      mark.store(i, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      seen.store(epoch.load(std::memory_order_acquire), std::memory_order_relaxed);
      ready.store(i);
    }
  });
  int missed = 0;
  bool barrier = true;
  for (int i = 1; i <= rounds; ++i) {
    round.store(i);
    epoch.store(i, std::memory_order_release);
    barrier &= dispatch::synchronize_all_threads();
    const int marked = mark.load(std::memory_order_acquire);
    while (ready.load() != i) {
    }
    missed += marked != i && seen.load(std::memory_order_relaxed) != i ? 1 : 0;
  }
  reader.join();
  return barrier ? missed : -1;
}

TEST(BarrierLifetime, without_membarrier_the_thread_visits_every_processor) {
  const int code = in_child([] {
    if (!refuse({__NR_membarrier})) return 100;
    if (syscall(__NR_membarrier, 0, 0, 0) == 0) return 101;
    return missed_stores(2000) == 0 ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

TEST(BarrierLifetime, without_any_barrier_nothing_is_freed_and_withdraw_fails) {
  const int code = in_child([] {
    Stage stage;
    const Operator op = stage.define(kCopy);
    RecordingKernel& kernel = stage.add({.id = "copy/first.one", .kind = Kind::default_});
    stage.add({.id = "copy/plain.one", .kind = Kind::reference});
    const Rows t;
    if (!op(t.y, t.x).ok() || kernel.runs != 1) return 2;
    if (!refuse({__NR_membarrier, __NR_sched_setaffinity})) return 100;
    const Status status = kernel.registration.withdraw();
    if (status.reason() != "withdraw.barrier") return 3;
    // Calls go on, without the withdrawn implementation.
    return ran_by([&] { (void)op(t.y, t.x); }) == "copy/plain.one" ? 0 : 4;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace opmux::test
