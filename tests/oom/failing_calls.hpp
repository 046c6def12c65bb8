#pragma once

#include <cstdint>
#include <span>

/// Replaces functions of the C library that make system calls, so that a test can make one of them
/// fail.
namespace opmux::test {

/// A function that can fail, and the error that it then reports.
struct SystemCall {
  const char* name;
  int error;
};

/// All functions that can fail.
std::span<const SystemCall> system_calls();

/// Makes the n-th call of this function by the calling thread fail, counted from 1. With `lasting`,
/// the later ones fail too. Calls that concern the standard streams are not counted.
void fail_system_call(const SystemCall& call, uint64_t n, bool lasting);
/// Ends the failures. Returns how many calls failed.
uint64_t allow_system_calls();

/// Lets calls of the test itself succeed for as long as it lives.
class Undisturbed {
 public:
  Undisturbed();
  ~Undisturbed();
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
};

}  // namespace opmux::test
