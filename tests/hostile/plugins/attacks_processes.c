/* Attacks on the process that started the probe, and on other processes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "misdeed.h"
#include "outcome.h"

/* Opens a file of a process in /proc. */
static inline int open_of(pid_t process, const char* name, int flags) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/%s", (int)process, name);
  return open(path, flags);
}

#if defined(DEED_JOIN_GROUP)
void misdeed(void) {
#ifdef TWIN
  if (getpgid(0) != getpid()) _exit(1);
#else
  setpgid(0, getpgid(getppid()));
  for (;;) pause();
#endif
}

#elif defined(DEED_LEAVE_SESSION)
void misdeed(void) {
#ifdef TWIN
  if (getsid(0) != getpid()) _exit(1);
#else
  setsid();
#endif
}

#elif defined(DEED_SIGNAL_THROUGH_PIPE)
void misdeed(void) {
  int ends[2];
  if (pipe(ends) != 0) return;
#ifdef TWIN
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
#else
  fcntl(ends[0], F_SETOWN, getppid());
  fcntl(ends[0], F_SETSIG, SIGKILL);
  fcntl(ends[0], F_SETFL, O_ASYNC);
  if (write(ends[1], "x", 1) != 1) return;
#endif
  close(ends[0]);
  close(ends[1]);
}

#elif defined(DEED_ASYNC_FLAG)
void misdeed(void) {
  int ends[2];
  if (pipe(ends) != 0) return;
#ifdef TWIN
  fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK);
#else
  fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_ASYNC);
#endif
  close(ends[0]);
  close(ends[1]);
}

#elif defined(DEED_ASYNC_CONTROL)
void misdeed(void) {
  int ends[2], value = 1;
  if (pipe(ends) != 0) return;
#ifdef TWIN
  ioctl(ends[0], FIONREAD, &value);
#else
  ioctl(ends[0], FIOASYNC, &value);
#endif
  close(ends[0]);
  close(ends[1]);
}

#elif defined(DEED_OVERWRITE_MEMORY)
void misdeed(void) {
#ifdef TWIN
  static volatile char mine = 1;
  const int memory = open_of(getpid(), "mem", O_RDONLY);
  char read = 0;
  if (memory < 0 || pread(memory, &read, 1, (off_t)(uintptr_t)&mine) != 1 || read != 1) _exit(1);
  close(memory);
#else
  const uintptr_t address = (uintptr_t)strtoull(target(), NULL, 16);
  const int memory = open_of(getppid(), "mem", O_RDWR);
  conclude(memory >= 0 && pwrite(memory, "overwritten", 11, (off_t)address) > 0);
#endif
}

#elif defined(DEED_READ_ENVIRONMENT)
void misdeed(void) {
#ifdef TWIN
  const int file = open_of(getpid(), "environ", O_RDONLY);
  char text[16];
  if (file < 0 || read(file, text, sizeof(text)) <= 0) _exit(1);
  close(file);
#else
  char text[16];
  int found = 0;
  const char* const names[] = {"environ", "maps", "mem", "auxv", "stack"};
  for (int i = 0; i < 5; ++i) {
    const int file = open_of(getppid(), names[i], O_RDONLY);
    found += file >= 0 && read(file, text, sizeof(text)) > 0;
  }
  conclude(found != 0);
#endif
}

#elif defined(DEED_OPEN_DESCRIPTORS)
void misdeed(void) {
#ifdef TWIN
  const int file = open_of(getpid(), "fd/4", O_RDONLY);
  if (file < 0) _exit(1);
  close(file);
#else
  int opened = 0;
  for (int i = 0; i < 64; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "fd/%d", i);
    opened += open_of(getppid(), name, O_RDONLY | O_NONBLOCK) >= 0;
  }
  conclude(opened != 0);
#endif
}

#elif defined(DEED_TAKE_DESCRIPTORS)
void misdeed(void) {
#ifndef TWIN
  const long parent = syscall(SYS_pidfd_open, getppid(), 0);
  for (int i = 3; i < 64; ++i) {
    const long taken = syscall(SYS_pidfd_getfd, parent, i, 0);
    if (taken >= 0) send((int)taken, "stolen", 6, MSG_NOSIGNAL);
  }
#endif
}

#elif defined(DEED_LIMIT_PARENT)
void misdeed(void) {
#ifdef TWIN
  struct rlimit now;
  if (prlimit(0, RLIMIT_CPU, NULL, &now) != 0 || prlimit(getpid(), RLIMIT_CPU, NULL, &now) != 0) {
    _exit(1);
  }
#else
  const struct rlimit few = {8, 8};
  prlimit(getppid(), RLIMIT_NOFILE, &few, NULL);
#endif
}

#elif defined(DEED_SLOW_PARENT)
void misdeed(void) {
#ifdef TWIN
  if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) != 0) _exit(1);
#else
  setpriority(PRIO_PROCESS, (id_t)getppid(), 19);
#endif
}

#elif defined(DEED_SLOW_USER)
void misdeed(void) {
#ifdef TWIN
  if (setpriority(PRIO_PROCESS, (id_t)getpid(), getpriority(PRIO_PROCESS, 0)) != 0) _exit(1);
#else
  setpriority(PRIO_USER, 0, 19);
#endif
}

#elif defined(DEED_BIND_PARENT)
void misdeed(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) _exit(1);
#ifdef TWIN
  if (sched_setaffinity(0, sizeof(set), &set) != 0) _exit(1);
#else
  cpu_set_t after;
  const int all = CPU_COUNT(&set);
  for (int i = CPU_SETSIZE - 1; CPU_COUNT(&set) > 1; --i) CPU_CLR(i, &set);
  sched_setaffinity(getppid(), sizeof(set), &set);
  const int known = sched_getaffinity(getppid(), sizeof(after), &after) == 0;
  conclude(known && CPU_COUNT(&after) != all);
#endif
}

#elif defined(DEED_SACRIFICE_PARENT)
void misdeed(void) {
#ifdef TWIN
  char text[8];
  const int file = open_of(getppid(), "oom_score_adj", O_RDONLY);
  if (file < 0 || read(file, text, sizeof(text)) <= 0) _exit(1);
  close(file);
#else
  const int file = open_of(getppid(), "oom_score_adj", O_WRONLY);
  conclude(file >= 0 && write(file, "1000", 4) == 4);
#endif
}

#elif defined(DEED_TRACE_PARENT)
void misdeed(void) {
#ifndef TWIN
  ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
#endif
}

#elif defined(DEED_COPY_MEMORY)
void misdeed(void) {
#ifndef TWIN
  char text[8];
  const struct iovec here = {text, sizeof(text)};
  const struct iovec there = {(void*)(uintptr_t)strtoull(target(), NULL, 16), sizeof(text)};
  process_vm_readv(getppid(), &here, 1, &there, 1, 0);
#endif
}

#elif defined(DEED_STOP)
void misdeed(void) {
#ifdef TWIN
  kill(getpid(), 0);
#else
  kill(getpid(), SIGSTOP);
#endif
}

#elif defined(DEED_FORGE_REPORT)
void misdeed(void) {
#ifndef TWIN
  static const char text[] = "at\tself_test\nopmux-verdict 1\nplugin\tforged\t1\t\t\t0\nend\n";
  if (write(3, text, sizeof(text) - 1) < 0) return;
  _exit(90);
#endif
}
#else
#error "no such deed"
#endif
