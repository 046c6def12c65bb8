#include "probe/landlock.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/system/files.hpp"

namespace opmux::probe {
namespace {

using base::Descriptor;

// As in linux/landlock.h, of which the build machine may have an older version.
enum Right : uint64_t {
  execute = 1 << 0,
  write_file = 1 << 1,
  remove_folder = 1 << 4,
  remove_file = 1 << 5,
  make_character_device = 1 << 6,
  make_folder = 1 << 7,
  make_file = 1 << 8,
  make_socket = 1 << 9,
  make_fifo = 1 << 10,
  make_block_device = 1 << 11,
  make_link = 1 << 12,
  move_between_folders = 1 << 13,
  truncate_file = 1 << 14,
  control_device = 1 << 15,
};
enum NetworkRight : uint64_t { bind_port = 1 << 0, connect_port = 1 << 1 };
enum Scope : uint64_t { local_sockets = 1 << 0, foreign_signals = 1 << 1 };

/// Rights that the first version of Landlock knows.
constexpr uint64_t kFirstRights = execute | write_file | remove_folder | remove_file |
                                  make_character_device | make_folder | make_file | make_socket |
                                  make_fifo | make_block_device | make_link;

struct Ruleset {
  uint64_t files, network, scoped;
};
struct __attribute__((packed)) FolderRule {
  uint64_t rights;
  int32_t folder;
};
constexpr unsigned kFolderRule = 1;     // LANDLOCK_RULE_PATH_BENEATH
constexpr unsigned kAskForVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION

/// The version of Landlock; at most 0 if the kernel has none.
long version() { return syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskForVersion); }

/// Restricts as much as this version can. A kernel refuses bits that it does not know.
Ruleset ruleset_of(long version) {
  Ruleset rules{kFirstRights, 0, 0};
  if (version >= 2) rules.files |= move_between_folders;
  if (version >= 3) rules.files |= truncate_file;
  if (version >= 4) rules.network = bind_port | connect_port;
  if (version >= 5) rules.files |= control_device;
  if (version >= 6) rules.scoped = local_sockets | foreign_signals;
  return rules;
}

/// Beginnings of names in /dev: files without contents, and devices of accelerators.
constexpr std::array<std::string_view, 18> kDevices{
    "null", "zero",    "full",      "random",   "urandom", "dri", "kfd",  "nvidia", "accel",
    "dxg",  "davinci", "devmm_svm", "hisi_hdc", "neuron",  "hl",  "mali", "kgsl",   "dma_heap"};

class Rules {
 public:
  explicit Rules(long version)
      : all_(ruleset_of(version)),
        made_(static_cast<int>(syscall(SYS_landlock_create_ruleset, &all_, size_of(version), 0))) {}

  bool made() const { return static_cast<bool>(made_); }
  /// A path that does not exist needs no rule.
  bool allow(const std::string& path, uint64_t rights) const {
    const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!place) return true;
    const FolderRule rule{rights & all_.files, place.get()};
    return syscall(SYS_landlock_add_rule, made_.get(), kFolderRule, &rule, 0) == 0;
  }
  bool enforce() const { return syscall(SYS_landlock_restrict_self, made_.get(), 0) == 0; }

 private:
  /// Kernels of the first versions accept only the fields that they know.
  static size_t size_of(long version) {
    if (version >= 6) return sizeof(Ruleset);
    return version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
  }

  Ruleset all_;
  Descriptor made_;
};

bool allow_devices(const Rules& rules) {
  const std::unique_ptr<DIR, int (*)(DIR*)> devices(opendir("/dev"), closedir);
  if (devices == nullptr) return true;
  while (const dirent* entry = readdir(devices.get())) {
    const std::string_view name = entry->d_name;
    if (!std::ranges::any_of(kDevices, [&](auto known) { return name.starts_with(known); })) {
      continue;
    }
    // truncate_file, because programs open /dev/null as if it were a file that they replace.
    if (!rules.allow("/dev/" + std::string(name), write_file | truncate_file | control_device)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool restrict_files(const std::string& folder, bool shared_memory) {
  const long found = version();
  if (found <= 0) return false;
  const Rules rules(found);
  constexpr uint64_t kInFolder = ~uint64_t{execute | make_character_device | make_block_device};
  return rules.made() && rules.allow(folder, kInFolder) &&
         (!shared_memory || rules.allow("/dev/shm", kInFolder)) && allow_devices(rules) &&
         rules.enforce();
}

}  // namespace opmux::probe
