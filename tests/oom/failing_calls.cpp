#include "failing_calls.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

namespace {

using opmux::test::SystemCall;

constexpr SystemCall kCalls[] = {
    {"access", EIO},
    {"eventfd", EMFILE},
    {"fchmod", EPERM},
    {"fdopendir", ENOMEM},
    {"flock", ENOLCK},
    {"fstat", EIO},
    {"fsync", EIO},
    {"ftruncate", ENOSPC},
    {"getrandom", EAGAIN},
    {"inotify_add_watch", ENOSPC},
    {"inotify_init1", EMFILE},
    {"lstat", EIO},
    {"memfd_create", ENFILE},
    {"mkdir", ENOSPC},
    {"mmap", ENOMEM},
    {"mprotect", ENOMEM},
    {"open", EMFILE},
    {"openat", EMFILE},
    {"opendir", EMFILE},
    {"pipe2", EMFILE},
    {"poll", ENOMEM},
    {"posix_fallocate", ENOSPC},
    {"posix_spawn", EAGAIN},
    {"pread", EIO},
    {"pthread_create", EAGAIN},
    {"pwrite", ENOSPC},
    {"read", EIO},
    {"readlink", EIO},
    {"rename", EIO},
    {"stat", EIO},
    {"statfs", EIO},
    {"unlink", EIO},
    {"write", ENOSPC},
};

thread_local constinit const SystemCall* failing = nullptr;
thread_local constinit uint64_t left = 0;
thread_local constinit bool lasting = false, paused = false;
thread_local constinit uint64_t failed = 0;

/// Whether this call fails; sets errno.
bool fails(const char* name) {
  if (failing == nullptr || paused || left == 0 || strcmp(failing->name, name) != 0) return false;
  if (left > 1) {
    --left;
    return false;
  }
  if (!lasting) left = 0;
  ++failed;
  errno = failing->error;
  return true;
}

/// The function of the C library behind a replaced one.
template <class Function>
Function next(const char* name, Function) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list list) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
}

bool is_standard(int descriptor) { return descriptor <= STDERR_FILENO; }

}  // namespace

// The parameters have the types of the C library; definitions in the program override them.
#define OPMUX_NEXT(name)                         \
  static const auto real = next(#name, &::name); \
  if (fails(#name))

extern "C" {

int access(const char* path, int mode) noexcept {
  OPMUX_NEXT(access) return -1;
  return real(path, mode);
}
int eventfd(unsigned count, int flags) noexcept {
  OPMUX_NEXT(eventfd) return -1;
  return real(count, flags);
}
int fchmod(int file, mode_t mode) noexcept {
  OPMUX_NEXT(fchmod) return -1;
  return real(file, mode);
}
DIR* fdopendir(int file) {
  OPMUX_NEXT(fdopendir) return nullptr;
  return real(file);
}
int flock(int file, int operation) noexcept {
  OPMUX_NEXT(flock) return -1;
  return real(file, operation);
}
int fstat(int file, struct stat* to) noexcept {
  OPMUX_NEXT(fstat) return -1;
  return real(file, to);
}
int fsync(int file) {
  OPMUX_NEXT(fsync) return -1;
  return real(file);
}
int ftruncate(int file, off_t size) noexcept {
  OPMUX_NEXT(ftruncate) return -1;
  return real(file, size);
}
ssize_t getrandom(void* to, size_t size, unsigned flags) {
  OPMUX_NEXT(getrandom) return -1;
  return real(to, size, flags);
}
int inotify_add_watch(int file, const char* path, uint32_t mask) noexcept {
  OPMUX_NEXT(inotify_add_watch) return -1;
  return real(file, path, mask);
}
int inotify_init1(int flags) noexcept {
  OPMUX_NEXT(inotify_init1) return -1;
  return real(flags);
}
int lstat(const char* path, struct stat* to) noexcept {
  OPMUX_NEXT(lstat) return -1;
  return real(path, to);
}
int memfd_create(const char* name, unsigned flags) noexcept {
  OPMUX_NEXT(memfd_create) return -1;
  return real(name, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  OPMUX_NEXT(mkdir) return -1;
  return real(path, mode);
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  OPMUX_NEXT(mmap) return MAP_FAILED;
  return real(at, size, protection, flags, file, offset);
}
int mprotect(void* at, size_t size, int protection) noexcept {
  OPMUX_NEXT(mprotect) return -1;
  return real(at, size, protection);
}
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  OPMUX_NEXT(open) return -1;
  return real(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  OPMUX_NEXT(openat) return -1;
  return real(folder, path, flags, mode);
}
DIR* opendir(const char* path) {
  OPMUX_NEXT(opendir) return nullptr;
  return real(path);
}
int pipe2(int* ends, int flags) noexcept {
  OPMUX_NEXT(pipe2) return -1;
  return real(ends, flags);
}
int poll(struct pollfd* files, nfds_t count, int milliseconds) {
  OPMUX_NEXT(poll) return -1;
  return real(files, count, milliseconds);
}
int posix_fallocate(int file, off_t offset, off_t size) {
  OPMUX_NEXT(posix_fallocate) return ENOSPC;
  return real(file, offset, size);
}
int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
  OPMUX_NEXT(posix_spawn) return EAGAIN;
  return real(process, path, actions, attributes, arguments, environment);
}
ssize_t pread(int file, void* to, size_t size, off_t offset) {
  OPMUX_NEXT(pread) return -1;
  return real(file, to, size, offset);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  OPMUX_NEXT(pthread_create) return EAGAIN;
  return real(thread, attributes, run, argument);
}
ssize_t pwrite(int file, const void* from, size_t size, off_t offset) {
  OPMUX_NEXT(pwrite) return -1;
  return real(file, from, size, offset);
}
ssize_t read(int file, void* to, size_t size) {
  OPMUX_NEXT(read) return -1;
  return real(file, to, size);
}
ssize_t readlink(const char* path, char* to, size_t size) noexcept {
  OPMUX_NEXT(readlink) return -1;
  return real(path, to, size);
}
int rename(const char* from, const char* to) noexcept {
  OPMUX_NEXT(rename) return -1;
  return real(from, to);
}
int stat(const char* path, struct stat* to) noexcept {
  OPMUX_NEXT(stat) return -1;
  return real(path, to);
}
int statfs(const char* path, struct statfs* to) noexcept {
  OPMUX_NEXT(statfs) return -1;
  return real(path, to);
}
int unlink(const char* path) noexcept {
  OPMUX_NEXT(unlink) return -1;
  return real(path);
}
ssize_t write(int file, const void* from, size_t size) {
  static const auto real = next("write", &::write);
  if (!is_standard(file) && fails("write")) return -1;
  return real(file, from, size);
}

}  // extern "C"

namespace opmux::test {

std::span<const SystemCall> system_calls() { return kCalls; }

void fail_system_call(const SystemCall& call, uint64_t n, bool lasts) {
  failing = &call;
  lasting = lasts;
  failed = 0;
  left = n;
}

Undisturbed::Undisturbed() { paused = true; }
Undisturbed::~Undisturbed() { paused = false; }

uint64_t allow_system_calls() {
  failing = nullptr;
  left = 0;
  return failed;
}

}  // namespace opmux::test
