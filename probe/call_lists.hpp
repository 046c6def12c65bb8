#pragma once

#include <errno.h>
#include <sys/syscall.h>

#include <string_view>

/// System calls by the answer of the probe's filter. A call that is in none of the lists raises
/// SIGSYS. Calls that depend on their arguments are in call_filter.cpp.
namespace opmux::probe {

struct NamedCall {
  unsigned number;
  std::string_view name;
};
struct AnsweredCall {
  unsigned number;
  int error;  ///< returned without carrying out the call; 0: pretends success
};

/// Calls that affect this process and the files that Landlock and the mounts allow.
inline constexpr unsigned kAllowedCalls[] = {
#ifdef SYS_open  // calls that newer architectures lack
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_dup2, SYS_pipe, SYS_mkdir,
    SYS_rmdir, SYS_unlink, SYS_rename, SYS_link, SYS_symlink, SYS_poll, SYS_select, SYS_pause,
    SYS_alarm, SYS_time, SYS_getpgrp, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd,
    SYS_inotify_init, SYS_signalfd,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
    // Files.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
    SYS_preadv2, SYS_pwritev2, SYS_close, SYS_close_range, SYS_lseek, SYS_fstat, SYS_newfstatat,
    SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_chdir,
    SYS_fchdir, SYS_dup, SYS_dup3, SYS_pipe2, SYS_mkdirat, SYS_unlinkat, SYS_renameat2, SYS_linkat,
    SYS_symlinkat, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_fadvise64,
    SYS_readahead, SYS_flock, SYS_umask, SYS_statfs, SYS_fstatfs, SYS_sendfile, SYS_copy_file_range,
    SYS_splice, SYS_tee, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr,
    SYS_flistxattr, SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch,
#ifdef SYS_renameat
    SYS_renameat,
#endif
    // Memory.
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_msync, SYS_mincore,
    SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_membarrier,
    SYS_pkey_alloc, SYS_pkey_free, SYS_pkey_mprotect, SYS_get_mempolicy, SYS_set_mempolicy,
    SYS_mbind,
    // Threads and signals of this process.
    SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_set_tid_address, SYS_exit,
    SYS_exit_group, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
    SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_sigaltstack, SYS_signalfd4, SYS_restart_syscall,
    SYS_wait4, SYS_waitid, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam,
    SYS_sched_getscheduler, SYS_sched_getattr, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_sched_rr_get_interval, SYS_getpriority, SYS_getcpu,
#ifdef SYS_futex_waitv
    SYS_futex_waitv,
#endif
    // Times, timers and waiting.
    SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
    SYS_times, SYS_setitimer, SYS_getitimer, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime,
    SYS_timer_getoverrun, SYS_timer_delete, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_timerfd_gettime, SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
    SYS_eventfd2,
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
    // Facts about this process and the system.
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid,
    SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_capget, SYS_getrusage,
    SYS_getrlimit, SYS_setrlimit, SYS_sysinfo, SYS_uname, SYS_getrandom,
    // Pairs of connected sockets reach only this process, because the filter allows no others.
    SYS_socketpair, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown,
    SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername};

/// Calls that return an error, because libraries work without them.
inline constexpr AnsweredCall kAnsweredCalls[] = {
    // The flags of clone3 and openat2 are in memory that a filter cannot read. The C library falls
    // back to clone and openat.
    {SYS_clone3, ENOSYS},
    {SYS_openat2, ENOSYS},
    // Operations submitted through io_uring would bypass the filter.
    {SYS_io_uring_setup, ENOSYS},
    // Files in memory do not count towards the memory limit.
    {SYS_memfd_create, ENOSYS},
    // Landlock does not restrict changes to the attributes of files.
    {SYS_fchmod, EPERM},
    {SYS_fchmodat, EPERM},
    {SYS_fchown, EPERM},
    {SYS_fchownat, EPERM},
    {SYS_utimensat, EPERM},
    {SYS_setxattr, EPERM},
    {SYS_lsetxattr, EPERM},
    {SYS_fsetxattr, EPERM},
    {SYS_removexattr, EPERM},
    {SYS_lremovexattr, EPERM},
    {SYS_fremovexattr, EPERM},
    // Older versions of Landlock do not restrict it.
    {SYS_truncate, EPERM},
    {SYS_ioprio_set, EPERM},
#ifdef SYS_open
    {SYS_chmod, EPERM},
    {SYS_chown, EPERM},
    {SYS_lchown, EPERM},
    {SYS_utime, EPERM},
    {SYS_utimes, EPERM},
    {SYS_futimesat, EPERM},
#endif
};

/// Names for messages about refused calls.
inline constexpr NamedCall kRefusedCalls[] = {
#ifdef SYS_open
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_ioperm, "ioperm"},
    {SYS_iopl, "iopl"},
#endif
    {SYS_clone, "clone"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_kill, "kill"},
    {SYS_tkill, "tkill"},
    {SYS_tgkill, "tgkill"},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo"},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo"},
    {SYS_socket, "socket"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_setpriority, "setpriority"},
    {SYS_setpgid, "setpgid"},
    {SYS_setsid, "setsid"},
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_process_madvise, "process_madvise"},
    {SYS_pidfd_open, "pidfd_open"},
    {SYS_pidfd_getfd, "pidfd_getfd"},
    {SYS_pidfd_send_signal, "pidfd_send_signal"},
    {SYS_kcmp, "kcmp"},
    {SYS_shmget, "shmget"},
    {SYS_shmat, "shmat"},
    {SYS_shmctl, "shmctl"},
    {SYS_semget, "semget"},
    {SYS_semctl, "semctl"},
    {SYS_semop, "semop"},
    {SYS_msgget, "msgget"},
    {SYS_msgctl, "msgctl"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_mq_open, "mq_open"},
    {SYS_mq_unlink, "mq_unlink"},
    {SYS_setuid, "setuid"},
    {SYS_setgid, "setgid"},
    {SYS_setresuid, "setresuid"},
    {SYS_setresgid, "setresgid"},
    {SYS_setgroups, "setgroups"},
    {SYS_capset, "capset"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount2"},
    {SYS_fsopen, "fsopen"},
    {SYS_open_tree, "open_tree"},
    {SYS_move_mount, "move_mount"},
    {SYS_pivot_root, "pivot_root"},
    {SYS_chroot, "chroot"},
    {SYS_open_by_handle_at, "open_by_handle_at"},
    {SYS_fanotify_init, "fanotify_init"},
    {SYS_userfaultfd, "userfaultfd"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_bpf, "bpf"},
    {SYS_keyctl, "keyctl"},
    {SYS_add_key, "add_key"},
    {SYS_request_key, "request_key"},
    {SYS_swapon, "swapon"},
    {SYS_swapoff, "swapoff"},
    {SYS_sync, "sync"},
    {SYS_reboot, "reboot"},
    {SYS_sethostname, "sethostname"},
    {SYS_setdomainname, "setdomainname"},
    {SYS_settimeofday, "settimeofday"},
    {SYS_clock_settime, "clock_settime"},
    {SYS_adjtimex, "adjtimex"},
    {SYS_init_module, "init_module"},
    {SYS_finit_module, "finit_module"},
    {SYS_delete_module, "delete_module"},
    {SYS_kexec_load, "kexec_load"},
    {SYS_kexec_file_load, "kexec_file_load"},
};

}  // namespace opmux::probe
