#include "probe/call_filter.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include "probe/call_lists.hpp"

namespace opmux::probe {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
// System call numbers from here on belong to the x32 ABI.
constexpr unsigned kLargestCall = 0x40000000;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
constexpr unsigned kLargestCall = 0xffffffff;
#else
#error "opmux-probe knows the system calls of x86-64 and AArch64"
#endif

// Libraries try calls that are newer than these lists and have to work without them.
constexpr unsigned kFirstUnknownCall = 451;

constexpr unsigned kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

/// fcntl commands that concern only the descriptor or locks on its file. Others choose a process
/// that gets signals.
constexpr unsigned kFileCommands[] = {F_DUPFD,      F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,
                                      F_GETFL,      F_GETLK,         F_SETLK,     F_SETLKW,
                                      F_GETOWN,     F_OFD_GETLK,     F_OFD_SETLK, F_OFD_SETLKW,
                                      F_GETPIPE_SZ, F_SETPIPE_SZ,    F_ADD_SEALS, F_GET_SEALS};

/// ioctl commands that send signals, take over a terminal or change attributes of files that were
/// opened for reading. Drivers of accelerators need the others.
constexpr unsigned kRefusedControls[] = {
    FIOASYNC, FIOSETOWN, SIOCSPGRP, TIOCSTI,         TIOCSCTTY,         TIOCSPGRP,
    TIOCSETD, TIOCLINUX, TIOCCONS,  FS_IOC_SETFLAGS, FS_IOC_SETVERSION, FS_IOC_FSSETXATTR};

/// prctl options that concern the calling thread or only read.
constexpr unsigned kProcessOptions[] = {PR_SET_NAME,
                                        PR_GET_NAME,
                                        PR_GET_DUMPABLE,
                                        PR_GET_PDEATHSIG,
                                        PR_GET_SECCOMP,
                                        PR_CAPBSET_READ,
                                        PR_SET_TIMERSLACK,
                                        PR_GET_TIMERSLACK,
                                        PR_SET_NO_NEW_PRIVS,
                                        PR_GET_NO_NEW_PRIVS,
                                        PR_GET_TID_ADDRESS,
                                        PR_SET_THP_DISABLE,
                                        PR_GET_THP_DISABLE,
                                        PR_GET_SPECULATION_CTRL,
                                        50 /* PR_SVE_SET_VL */,
                                        51 /* PR_SVE_GET_VL */,
                                        63 /* PR_SME_SET_VL */,
                                        64 /* PR_SME_GET_VL */,
                                        0x53564d41 /* PR_SET_VMA */};

constexpr unsigned offset_of_argument(unsigned index) {
  // The low half of the argument: the kernel, too, ignores the high half of the arguments that are
  // compared here.
  return static_cast<unsigned>(offsetof(seccomp_data, args)) + index * 8;
}

/// Builds the seccomp filter. Jumps only skip the instructions of one rule.
class Filter {
 public:
  std::vector<sock_filter> build(unsigned self) {
    load(offsetof(seccomp_data, arch));
    unless_equal(kArchitecture, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    add(BPF_JMP | BPF_JGE | BPF_K, kLargestCall, 0, 1);
    give(SECCOMP_RET_KILL_PROCESS);
    for (const unsigned number : kAllowedCalls) on(number, [&] { give(SECCOMP_RET_ALLOW); });
    for (const AnsweredCall& call : kAnsweredCalls) {
      on(call.number, [&] { give(answer(call.error)); });
    }
    add_process_rules(self);
    add_file_rules();
    add(BPF_JMP | BPF_JGE | BPF_K, kFirstUnknownCall, 0, 1);
    give(answer(ENOSYS));
    give(SECCOMP_RET_TRAP);
    return std::move(code_);
  }

 private:
  static unsigned answer(int error) { return SECCOMP_RET_ERRNO | static_cast<unsigned>(error); }

  void add_process_rules(unsigned self) {
    // A new thread in the namespaces of this process, not a new process.
    on(SYS_clone, [&] {
      load(offset_of_argument(0));
      add(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1);
      give(SECCOMP_RET_TRAP);
      add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
      give(SECCOMP_RET_TRAP);
      give(SECCOMP_RET_ALLOW);
    });
    for (const unsigned number : {unsigned{SYS_kill}, unsigned{SYS_tgkill}}) {
      only(number, 0, {self}, SECCOMP_RET_TRAP);
    }
    only(SYS_prlimit64, 0, {0, self}, SECCOMP_RET_TRAP);
    on(SYS_setpriority, [&] {
      load(offset_of_argument(0));
      unless_equal(PRIO_PROCESS, SECCOMP_RET_TRAP);
      load(offset_of_argument(1));
      give_if_among({0, self}, SECCOMP_RET_TRAP);
    });
    // The argument may be a thread of this process, which a filter cannot tell from a thread of
    // another process. Thread pools fail if they cannot bind a thread, so the call returns success
    // without an effect.
    only(SYS_sched_setaffinity, 0, {0, self}, answer(0));
    for (const unsigned number :
         {unsigned{SYS_sched_setscheduler}, unsigned{SYS_sched_setparam},
          unsigned{SYS_sched_setattr}, unsigned{SYS_move_pages}, unsigned{SYS_migrate_pages}}) {
      only(number, 0, {0, self}, answer(EPERM));
    }
    among(SYS_prctl, 0, kProcessOptions, answer(EPERM));
    only(SYS_personality, 0, {0xffffffff}, answer(EPERM));
    on(SYS_socket, [&] {
      load(offset_of_argument(0));
      // Libraries try local sockets of system services and of the kernel and work without them.
      for (const unsigned family : {unsigned{AF_UNIX}, unsigned{AF_NETLINK}}) {
        add(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 1);
        give(answer(EACCES));
      }
      give(SECCOMP_RET_TRAP);
    });
  }

  void add_file_rules() {
    on(SYS_fcntl, [&] {
      load(offset_of_argument(1));
      // Flags of a file, except the one that sends signals.
      add(BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 4);
      load(offset_of_argument(2));
      add(BPF_JMP | BPF_JSET | BPF_K, O_ASYNC, 0, 1);
      give(SECCOMP_RET_TRAP);
      give(SECCOMP_RET_ALLOW);
      give_if_among(kFileCommands, SECCOMP_RET_TRAP);
    });
    on(SYS_ioctl, [&] {
      load(offset_of_argument(1));
      for (const unsigned control : kRefusedControls) {
        add(BPF_JMP | BPF_JEQ | BPF_K, control, 0, 1);
        give(SECCOMP_RET_TRAP);
      }
      give(SECCOMP_RET_ALLOW);
    });
#ifdef SYS_open
    add_open_rule(SYS_open, 1);
#endif
    add_open_rule(SYS_openat, 2);
  }

  /// Opening for reading with O_TRUNC empties the file, and older versions of Landlock allow it.
  void add_open_rule(unsigned number, unsigned flags) {
    on(number, [&] {
      load(offset_of_argument(flags));
      add(BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE);
      add(BPF_JMP | BPF_JEQ | BPF_K, O_TRUNC | O_RDONLY, 0, 1);
      give(answer(EACCES));
      give(SECCOMP_RET_ALLOW);
    });
  }

  void add(unsigned code, unsigned k, unsigned yes = 0, unsigned no = 0) {
    code_.push_back({static_cast<unsigned short>(code), static_cast<unsigned char>(yes),
                     static_cast<unsigned char>(no), k});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)); }
  void give(unsigned value) { add(BPF_RET | BPF_K, value); }
  void unless_equal(unsigned value, unsigned otherwise) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    give(otherwise);
  }
  /// Allows the call if the loaded argument is one of the values.
  template <class Values>
  void give_if_among(const Values& values, unsigned otherwise) {
    for (const unsigned value : values) {
      add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
      give(SECCOMP_RET_ALLOW);
    }
    give(otherwise);
  }
  void give_if_among(std::initializer_list<unsigned> values, unsigned otherwise) {
    give_if_among<std::initializer_list<unsigned>>(values, otherwise);
  }
  /// Allows the call if the argument is one of the values.
  template <class Values>
  void among(unsigned number, unsigned argument, const Values& values, unsigned otherwise) {
    on(number, [&] {
      load(offset_of_argument(argument));
      give_if_among(values, otherwise);
    });
  }
  void only(unsigned number, unsigned argument, std::initializer_list<unsigned> values,
            unsigned otherwise) {
    among(number, argument, values, otherwise);
  }
  /// The rule must end with a return.
  template <class Rule>
  void on(unsigned number, Rule&& rule) {
    const size_t jump = code_.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 0);
    rule();
    code_[jump].jf = static_cast<unsigned char>(code_.size() - jump - 1);
  }

  std::vector<sock_filter> code_;
};

}  // namespace

bool filter_calls() {
  std::vector<sock_filter> code = Filter().build(static_cast<unsigned>(getpid()));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

std::string_view forbidden_call(int number) {
  for (const NamedCall& call : kRefusedCalls) {
    if (call.number == static_cast<unsigned>(number)) return call.name;
  }
  return {};
}

}  // namespace opmux::probe
