#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/system/files.hpp"

namespace opmux::base {

/// The control bits of the calling thread's floating-point unit: rounding, flushing of denormal
/// numbers to zero, and masked exceptions. Reading them takes a few nanoseconds. The flags of
/// exceptions that occurred do not belong to them. Empty on processors that are not known.
class FloatControl {
 public:
  FloatControl() noexcept;
  /// Sets the control bits as they were. Returns whether they differed.
  bool restore() const noexcept;

 private:
  uint64_t bits_;
};

/// The states that a kernel must leave as it found them, as bits.
inline constexpr uint32_t kFloatingPoint = 1;  ///< see FloatControl
inline constexpr uint32_t kSignalMask = 2;     ///< the signals that the calling thread blocks
inline constexpr uint32_t kFolder = 4;         ///< the working folder of the process
inline constexpr uint32_t kAllStates = kFloatingPoint | kSignalMask | kFolder;

/// The names of these states, for messages: "the signal mask, the working folder".
std::string names_of_states(uint32_t states);

/// Remembers states before foreign code runs, and restores those that it changed.
class StateCheck {
 public:
  /// `states` are bits, as above. All but kFloatingPoint need system calls.
  explicit StateCheck(uint32_t states) noexcept : states_(states) {
    if ((states_ & ~kFloatingPoint) != 0) [[unlikely]]
      look();
  }
  StateCheck(const StateCheck&) = delete;
  StateCheck& operator=(const StateCheck&) = delete;

  /// Restores the states that have changed, and returns them. The folder of the process is restored
  /// although another thread may have changed it meanwhile.
  uint32_t restore() const noexcept;

 private:
  void look() noexcept;

  FloatControl control_;
  uint32_t states_;
  sigset_t signals_;
  Descriptor folder_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace opmux::base
