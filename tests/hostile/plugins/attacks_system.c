/* Attacks on files outside of the private folder, on memory and on the system. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "misdeed.h"
#include "outcome.h"

/* Writes a file of 8 MiB; returns the number of written bytes. */
static inline size_t fill(const char* folder, int number) {
  static char block[1 << 20];
  char path[512];
  size_t written = 0;
  snprintf(path, sizeof(path), "%s/opmux_hostile_fill_%d", folder, number);
  const int file = open(path, O_WRONLY | O_CREAT, 0600);
  if (file < 0) return 0;
  for (int i = 0; i < 8; ++i) {
    const ssize_t count = write(file, block, sizeof(block));
    if (count > 0) written += (size_t)count;
  }
  close(file);
  return written;
}

#if defined(DEED_FILL_FOLDERS)
void misdeed(void) {
#ifdef TWIN
  if (fill(getenv("TMPDIR"), 0) == 0) _exit(1);
#else
  const char* const folders[] = {target(), "/tmp", "/var/tmp", "/dev/mqueue", "/run"};
  size_t written = 0;
  for (int i = 0; i < 5; ++i) written += fill(folders[i], i);
  conclude(written != 0);
#endif
}

#elif defined(DEED_FILL_PRIVATE_FOLDER)
void misdeed(void) {
  size_t written = 0;
#ifdef TWIN
  for (int i = 0; i < 2; ++i) written += fill(".", i);
  if (written != 16 << 20) _exit(1);
#else
  for (int i = 0; i < 40; ++i) written += fill(".", i);
  for (int i = 0; i < 40; ++i) written += fill("/dev/shm", i);
  conclude(written > 80 << 20);
#endif
}

#elif defined(DEED_REWRITE_FILE)
void misdeed(void) {
#ifdef TWIN
  const int file = open(target(), O_RDONLY);
  char text[4];
  if (file < 0 || read(file, text, sizeof(text)) <= 0) _exit(1);
  close(file);
#else
  char other[512];
  snprintf(other, sizeof(other), "%s.other", target());
  const struct timeval times[2] = {{1, 0}, {1, 0}};
  int done = 0;
  done += open(target(), O_RDWR) >= 0;
  done += open(target(), O_WRONLY | O_APPEND) >= 0;
  done += open(target(), O_RDONLY | O_TRUNC) >= 0;
  done += truncate(target(), 0) == 0;
  done += rename(target(), other) == 0;
  done += link(target(), other) == 0;
  done += symlink(target(), other) == 0;
  done += mkdir(other, 0700) == 0;
  done += unlink(target()) == 0;
  done += chmod(target(), 0777) == 0;
  done += chown(target(), getuid(), getgid()) == 0;
  done += utimes(target(), times) == 0;
  conclude(done != 0);
#endif
}

#elif defined(DEED_USE_GIVEN_FILE)
void misdeed(void) {
#ifndef TWIN
  lseek(4, 0, SEEK_END);
  flock(4, LOCK_EX);
  conclude(0);
#else
  flock(4, LOCK_SH);
#endif
}

#elif defined(DEED_MANY_THREADS)
static void* wait_long(void* nothing) {
#ifndef TWIN
  pause();
#endif
  return nothing;
}
void misdeed(void) {
  enum { kMany = 12000, kSome = 64 };
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 16384);
#ifdef TWIN
  pthread_t threads[kSome];
  for (int i = 0; i < kSome; ++i) {
    if (pthread_create(&threads[i], &small, wait_long, NULL) != 0) _exit(1);
  }
  for (int i = 0; i < kSome; ++i) pthread_join(threads[i], NULL);
#else
  pthread_t thread;
  for (int i = 0; i < kMany; ++i) pthread_create(&thread, &small, wait_long, NULL);
  for (;;) pause();
#endif
  pthread_attr_destroy(&small);
}

#elif defined(DEED_SHARED_MEMORY)
void misdeed(void) {
#ifdef TWIN
  const size_t size = 64ul << 20;
#else
  const size_t size = 6ul << 30;
#endif
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) _exit(1);
  for (size_t i = 0; i < size; i += 4096) memory[i] = 1;
  munmap(memory, size);
}

#elif defined(DEED_SHARED_MEMORY_AT_ONCE)
void misdeed(void) {
#ifdef TWIN
  const size_t size = 64ul << 20;
#else
  const size_t size = 6ul << 30;
#endif
  char* memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) _exit(1);
  munmap(memory, size);
}

#elif defined(DEED_MEMORY_FILE)
void misdeed(void) {
#ifdef TWIN
  char name[] = "twin_XXXXXX";
  const int file = mkstemp(name);
  if (file < 0 || unlink(name) != 0) _exit(1);
  close(file);
#else
  conclude(memfd_create("hostile", 0) >= 0);
#endif
}

#elif defined(DEED_SYSTEM_V_MEMORY)
void misdeed(void) {
#ifndef TWIN
  shmget(0x0badcafe, 1 << 20, IPC_CREAT | 0600);
#endif
}

#elif defined(DEED_MESSAGE_QUEUE)
void misdeed(void) {
#ifndef TWIN
  mq_open("/opmux_hostile", O_RDWR | O_CREAT, 0600, NULL);
#endif
}

#elif defined(DEED_NEW_MOUNT)
void misdeed(void) {
#ifndef TWIN
  syscall(SYS_fsopen, "tmpfs", 0);
#endif
}

#elif defined(DEED_NEW_KERNEL)
void misdeed(void) {
#ifndef TWIN
  syscall(SYS_kexec_file_load, -1, -1, 0, 0, 0);
#endif
}

#elif defined(DEED_KEYRING)
void misdeed(void) {
#ifndef TWIN
  syscall(SYS_keyctl, 0, -3, 1);
#endif
}

#elif defined(DEED_COUNTERS)
void misdeed(void) {
#ifndef TWIN
  syscall(SYS_perf_event_open, NULL, getppid(), -1, -1, 0);
#endif
}

#elif defined(DEED_KERNEL_PROGRAM)
void misdeed(void) {
#ifndef TWIN
  syscall(SYS_bpf, 0, NULL, 0);
#endif
}

#elif defined(DEED_OTHER_SOCKET)
void misdeed(void) {
#ifdef TWIN
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(1);
  close(ends[0]);
  close(ends[1]);
#else
  socket(AF_VSOCK, SOCK_STREAM, 0);
#endif
}
#else
#error "no such deed"
#endif
