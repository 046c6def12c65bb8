#include "base/system/thread_state.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

namespace opmux::base {
namespace {

#if defined(__x86_64__)
/// MXCSR without the flags of exceptions in its lower six bits, and the control word of the x87.
constexpr uint32_t kFlags = 0x3f;

uint64_t read_control() noexcept {
  uint16_t x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return uint64_t{x87} << 32 | (__builtin_ia32_stmxcsr() & ~kFlags);
}

void write_control(uint64_t bits) noexcept {
  const auto x87 = static_cast<uint16_t>(bits >> 32);
  __asm__ volatile("fldcw %0" : : "m"(x87));
  __builtin_ia32_ldmxcsr(static_cast<uint32_t>(bits) | (__builtin_ia32_stmxcsr() & kFlags));
}
#elif defined(__aarch64__)
uint64_t read_control() noexcept {
  uint64_t bits = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}

void write_control(uint64_t bits) noexcept { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }
#else
uint64_t read_control() noexcept { return 0; }
void write_control(uint64_t) noexcept {}
#endif

bool same_signals(const sigset_t& a, const sigset_t& b) {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&a, signal) != sigismember(&b, signal)) return false;
  }
  return true;
}

}  // namespace

FloatControl::FloatControl() noexcept : bits_(read_control()) {}

bool FloatControl::restore() const noexcept {
  if (read_control() == bits_) [[likely]]
    return false;
  write_control(bits_);
  return true;
}

std::string names_of_states(uint32_t states) {
  constexpr std::array<std::pair<uint32_t, std::string_view>, 3> kNames{
      {{kFloatingPoint, "the floating-point mode"},
       {kSignalMask, "the signal mask"},
       {kFolder, "the working folder"}}};
  std::string names;
  for (const auto& [state, name] : kNames) {
    if ((states & state) == 0) continue;
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

void StateCheck::look() noexcept {
  if ((states_ & kSignalMask) != 0 && pthread_sigmask(SIG_SETMASK, nullptr, &signals_) != 0)
    states_ &= ~kSignalMask;
  if ((states_ & kFolder) == 0) return;
  folder_.reset(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat found{};
  if (!folder_ || ::fstat(folder_.get(), &found) != 0) states_ &= ~kFolder;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

uint32_t StateCheck::restore() const noexcept {
  uint32_t changed = 0;
  if ((states_ & kFloatingPoint) != 0 && control_.restore()) changed |= kFloatingPoint;
  if ((states_ & ~kFloatingPoint) == 0) [[likely]]
    return changed;
  sigset_t now;
  if ((states_ & kSignalMask) != 0 && pthread_sigmask(SIG_SETMASK, nullptr, &now) == 0 &&
      !same_signals(now, signals_)) {
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    changed |= kSignalMask;
  }
  struct stat found{};
  if ((states_ & kFolder) != 0 && ::stat(".", &found) == 0 &&
      (found.st_dev != device_ || found.st_ino != inode_) && ::fchdir(folder_.get()) == 0) {
    changed |= kFolder;
  }
  return changed;
}

}  // namespace opmux::base
