#include "conformance/crash.hpp"

#include <csetjmp>
#include <csignal>
#include <mutex>

namespace opmux::conformance {
namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kCount = sizeof kFaults / sizeof kFaults[0];

thread_local sigjmp_buf* volatile way_out = nullptr;

std::mutex mutex;
int guards = 0;
struct sigaction before[kCount];

void on_fault(int fault) {
  if (way_out != nullptr) siglongjmp(*way_out, 1);
  // The fault is not inside survives(): restore the previous handler and let the instruction fault
  // again.
  for (int i = 0; i < kCount; ++i) {
    if (kFaults[i] == fault) sigaction(fault, &before[i], nullptr);
  }
}

}  // namespace

CrashGuard::CrashGuard() {
  const std::lock_guard lock(mutex);
  if (guards++ > 0) return;
  struct sigaction action{};
  action.sa_handler = on_fault;
  action.sa_flags = SA_NODEFER | SA_ONSTACK;
  for (int i = 0; i < kCount; ++i) sigaction(kFaults[i], &action, &before[i]);
}

CrashGuard::~CrashGuard() {
  const std::lock_guard lock(mutex);
  if (--guards > 0) return;
  for (int i = 0; i < kCount; ++i) sigaction(kFaults[i], &before[i], nullptr);
}

bool survives(void (*fn)(void* context), void* context) {
  sigjmp_buf here;
  sigjmp_buf* const outer = way_out;
  if (sigsetjmp(here, 1) != 0) {
    way_out = outer;
    return false;
  }
  way_out = &here;
  fn(context);
  way_out = outer;
  return true;
}

}  // namespace opmux::conformance
