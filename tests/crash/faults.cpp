#include "faults.hpp"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace opmux::test {
namespace {

void touch_what_is_not_there() {
  FILE* const file = ::tmpfile();
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(file), 0);
  *static_cast<volatile int*>(memory) = 1;
}

#if defined(__clang__)
[[clang::no_sanitize("undefined")]]
#endif
int divide_by_zero() {
  const volatile int one = 1, zero = 0;
  return one / zero;
}

int overflow(int depth) {  // NOLINT(misc-no-recursion): it is what is wanted
  if (depth < 0) return 0;
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return overflow(depth + 1) + room[0];
}

}  // namespace

void fault(std::string_view how) {
  // Volatile, so that the compiler cannot see that the address is invalid.
  static volatile uintptr_t nowhere = 8;
  if (how == "segv") *reinterpret_cast<volatile int*>(nowhere) = 1;
  if (how == "bus") touch_what_is_not_there();
#if defined(__x86_64__)
  if (how == "ill") asm volatile("ud2");
#else
  if (how == "ill") __builtin_trap();
#endif
  if (how == "fpe") (void)divide_by_zero();
  if (how == "overflow") (void)overflow(0);
  if (how == "exit") ::exit(1);
  std::abort();
}

}  // namespace opmux::test
