#include "probe/namespaces.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/probe/probe.hpp"

namespace opmux::probe {
namespace {

constexpr char kSharedMemory[] = "/dev/shm";
constexpr unsigned kReadOnly = 1;              // MOUNT_ATTR_RDONLY
constexpr unsigned kWithMountsBelow = 0x8000;  // AT_RECURSIVE

/// As in linux/mount.h, which conflicts with sys/mount.h.
struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};

bool write_to(const char* path, std::string_view text) {
  const base::Descriptor file(open(path, O_WRONLY | O_CLOEXEC));
  return file && base::write_all(file.get(), text);
}

/// A namespace in which this user and group have the same numbers as outside, and others have none.
bool enter_user_namespace() {
  const unsigned user = geteuid(), group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  return write_to("/proc/self/setgroups", "deny") &&
         write_to("/proc/self/uid_map", base::concat(user, " ", user, " 1")) &&
         write_to("/proc/self/gid_map", base::concat(group, " ", group, " 1"));
}

bool mount_empty(const char* place, unsigned long size, std::string_view mode) {
  const std::string options = base::concat("size=", size, ",mode=", mode);
  return mount("opmux-probe", place, "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

/// Makes all mounts read-only and independent of those outside, then mounts the writable folder.
bool replace_mounts(const std::string& folder) {
  const MountAttributes attributes{kReadOnly, 0, MS_PRIVATE, 0};
  return syscall(SYS_mount_setattr, AT_FDCWD, "/", kWithMountsBelow, &attributes,
                 sizeof(attributes)) == 0 &&
         mount_empty(folder.c_str(), plugin::protocol::kMostWritten, "0700");
}

}  // namespace

Namespaces enter_namespaces(const std::string& folder, std::string_view plugin) {
  Namespaces result;
  bool mounts = unshare(CLONE_NEWNS) == 0;
  if (!mounts) mounts = enter_user_namespace() && unshare(CLONE_NEWNS) == 0;
  if (!mounts || !replace_mounts(folder)) {
    result.missing.emplace_back("mount_namespace");
  } else if (!plugin.starts_with(base::concat(kSharedMemory, "/"))) {
    result.shared_memory = mount_empty(kSharedMemory, plugin::protocol::kLargestFile, "1777");
  }
  if (unshare(CLONE_NEWIPC) != 0) result.missing.emplace_back("ipc_namespace");
  if (unshare(CLONE_NEWNET) != 0) result.missing.emplace_back("network_namespace");
  return result;
}

bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  constexpr unsigned kKept = 1u << CAP_DAC_READ_SEARCH | 1u << CAP_IPC_LOCK;
  for (__user_cap_data_struct& set : sets) {
    const unsigned kept = &set == sets.data() ? kKept : 0;
    set.permitted &= kept;
    set.effective = set.permitted;
    set.inheritable = 0;
  }
  // Older kernels have no ambient capabilities; without them there is nothing to clear.
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return syscall(SYS_capset, &header, sets.data()) == 0;
}

}  // namespace opmux::probe
