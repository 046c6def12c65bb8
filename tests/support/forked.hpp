#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

namespace opmux::test {

/// ThreadSanitizer does not let a forked child of a process with threads start a thread.
inline constexpr bool under_thread_sanitizer() {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  return false;
}

/// AddressSanitizer keeps freed memory, so a process grows.
inline constexpr bool under_address_sanitizer() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return false;
}

/// Whether `body` returned true in a forked child that exited normally. A child that hangs is
/// killed after 20 seconds and counts as false.
inline bool true_in_forked_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child;
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  // A child that was killed by SIGALRM had hung.
  if (ended) std::fprintf(stderr, "the child ended with the status 0x%x\n", status);
  return false;
}

}  // namespace opmux::test
