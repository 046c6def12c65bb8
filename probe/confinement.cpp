#include "probe/confinement.hpp"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "plugin/probe/probe.hpp"

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

struct Call {
  unsigned number;
  std::string_view name;
};

/// System calls that no plugin needs for being probed; each raises SIGSYS.
constexpr Call kForbidden[] = {
#ifdef SYS_fork
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_ioperm, "ioperm"},
    {SYS_iopl, "iopl"},
#endif
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_tkill, "tkill"},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo"},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo"},
    {SYS_pidfd_send_signal, "pidfd_send_signal"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount2"},
    {SYS_pivot_root, "pivot_root"},
    {SYS_chroot, "chroot"},
    {SYS_swapon, "swapon"},
    {SYS_swapoff, "swapoff"},
    {SYS_reboot, "reboot"},
    {SYS_sethostname, "sethostname"},
    {SYS_setdomainname, "setdomainname"},
    {SYS_settimeofday, "settimeofday"},
    {SYS_clock_settime, "clock_settime"},
    {SYS_init_module, "init_module"},
    {SYS_finit_module, "finit_module"},
    {SYS_delete_module, "delete_module"},
    {SYS_kexec_load, "kexec_load"},
    {SYS_bpf, "bpf"},
};
/// System calls that are allowed or forbidden depending on an argument.
constexpr Call kDepends[] = {
    {SYS_clone, "clone"}, {SYS_kill, "kill"}, {SYS_tgkill, "tgkill"}, {SYS_socket, "socket"}};

constexpr unsigned offset_of_argument(unsigned index) {
  // The low half of the argument.
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
    // The flags of clone3 are in memory that a filter cannot read. With ENOSYS the C library falls
    // back to clone.
    on(SYS_clone3, [&] { give(SECCOMP_RET_ERRNO | ENOSYS); });
    // Operations submitted through io_uring would bypass the filter.
    on(SYS_io_uring_setup, [&] { give(SECCOMP_RET_ERRNO | ENOSYS); });
    for (const Call& call : kForbidden) on(call.number, [&] { give(SECCOMP_RET_TRAP); });
    on(SYS_clone, [&] {
      load(offset_of_argument(0));
      add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
      give(SECCOMP_RET_TRAP);
      give(SECCOMP_RET_ALLOW);
    });
    for (const unsigned number : {unsigned{SYS_kill}, unsigned{SYS_tgkill}}) {
      on(number, [&] {
        load(offset_of_argument(0));
        unless_equal(self, SECCOMP_RET_TRAP);
        give(SECCOMP_RET_ALLOW);
      });
    }
    on(SYS_socket, [&] {
      load(offset_of_argument(0));
      for (const unsigned family : {unsigned{AF_INET}, unsigned{AF_INET6}, unsigned{AF_PACKET}}) {
        add(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 1);
        give(SECCOMP_RET_TRAP);
      }
      // The C library tries local sockets of system services and works without them.
      give(SECCOMP_RET_ERRNO | EACCES);
    });
    give(SECCOMP_RET_ALLOW);
    return std::move(code_);
  }

 private:
  void add(unsigned code, unsigned k, unsigned yes = 0, unsigned no = 0) {
    code_.push_back({static_cast<unsigned short>(code), static_cast<unsigned char>(yes),
                     static_cast<unsigned char>(no), k});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)); }
  void give(unsigned answer) { add(BPF_RET | BPF_K, answer); }
  void unless_equal(unsigned value, unsigned answer) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    give(answer);
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

bool filter_calls() {
  std::vector<sock_filter> code = Filter().build(static_cast<unsigned>(getpid()));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

bool limit(__rlimit_resource_t what, unsigned long most, unsigned long slack = 0) {
  const rlimit both{most, most + slack};
  return setrlimit(what, &both) == 0;
}

bool set_limits() {
  namespace protocol = plugin::protocol;
  bool set = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, protocol::kLargestFile) &&
             limit(RLIMIT_NOFILE, protocol::kMostFiles) &&
             limit(RLIMIT_CPU, protocol::kMostSeconds, 1);
#ifndef OPMUX_SANITIZED  // a sanitizer's shadow memory counts as data
  set = set && limit(RLIMIT_DATA, protocol::kMostData);
#endif
  return set;
}

}  // namespace

bool confine() {
  return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && set_limits() &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter_calls();
}

std::string_view forbidden_call(int number) {
  for (const Call& call : kForbidden) {
    if (call.number == static_cast<unsigned>(number)) return call.name;
  }
  for (const Call& call : kDepends) {
    if (call.number == static_cast<unsigned>(number)) return call.name;
  }
  return "unknown_system_call";
}

}  // namespace opmux::probe
