#include "policy/files/path_watch.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <filesystem>

#include "policy/files/policy_files.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                             IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr int kMostLinks = 40;

/// File systems on which other hosts change files without inotify events here: NFS, SMB, CIFS,
/// FUSE, 9P, Ceph, Lustre, AFS.
constexpr std::array<uint32_t, 9> kRemote{0x6969,     0x517B,     0xFF534D42,
                                          0xFE534D42, 0x65735546, 0x01021997,
                                          0x00C36400, 0x0BD00BD0, 0x5346414F};

bool is_remote(const std::string& path) {
  struct statfs system{};
  fs::path at = path;
  while (::statfs(at.c_str(), &system) != 0 && at.has_relative_path()) at = at.parent_path();
  return std::ranges::find(kRemote, static_cast<uint32_t>(system.f_type)) != kRemote.end();
}

/// Every (folder, name) pair that resolving a path visits, including symbolic links. A change of
/// any of them may change the file that the path refers to.
class Steps {
 public:
  explicit Steps(const fs::path& path) { walk(fs::absolute(path).lexically_normal()); }
  const std::vector<std::pair<std::string, std::string>>& all() const { return steps_; }

 private:
  void walk(const fs::path& path) {
    fs::path at = "/";
    for (auto part = path.begin(); part != path.end(); ++part) {
      if (*part == "/" || part->empty() || *part == ".") continue;
      if (*part == "..") {
        at = at.parent_path();
        continue;
      }
      steps_.emplace_back(at.native(), part->native());
      std::error_code error;
      const fs::path target = fs::read_symlink(at / *part, error);
      if (error) {
        at /= *part;
        continue;
      }
      if (++links_ > kMostLinks) return;
      fs::path rest = target.is_absolute() ? target : at / target;
      for (++part; part != path.end(); ++part) rest /= *part;
      return walk(rest);
    }
  }

  std::vector<std::pair<std::string, std::string>> steps_;
  int links_ = 0;
};

}  // namespace

PathWatch::PathWatch(std::string path, Way wanted) : path_(std::move(path)) {
  if (wanted == Way::kernel && !is_remote(path_)) {
    descriptor_ = base::Descriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  }
  if (descriptor_) follow();
  if (!descriptor_) seen_ = look();
}

void PathWatch::watch_folder(const std::string& folder, const std::string& name) {
  const int number = ::inotify_add_watch(descriptor_.get(), folder.c_str(), kEvents);
  if (number >= 0) {
    folders_[number].path = folder;
    folders_[number].names.insert(name);
  } else if (errno == ENOSPC || errno == ENOMEM) {
    descriptor_ = {};  // out of watches: poll from now on
  }
}

/// Updates the watches to the folders that the path currently resolves through.
void PathWatch::follow() {
  std::map<int, Folder> before = std::move(folders_);
  folders_.clear();
  std::vector<std::string> ends{path_};
  std::error_code error;
  const bool folder = fs::is_directory(path_, error);
  for (const std::string& file : policy_paths(path_)) ends.push_back(file);
  for (const std::string& end : ends) {
    const Steps steps(end);
    for (const auto& [in, name] : steps.all()) {
      if (!descriptor_) return;
      watch_folder(in, name);
    }
  }
  if (folder && descriptor_) watch_folder(fs::absolute(path_), "*");
  for (const auto& [number, gone] : before) {
    if (!folders_.contains(number) && descriptor_) {
      ::inotify_rm_watch(descriptor_.get(), number);
    }
  }
}

bool PathWatch::concerns(int folder, const std::string& name) const {
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return false;
  const std::set<std::string>& names = found->second.names;
  return name.empty() || names.contains(name) || (names.contains("*") && is_policy_name(name));
}

bool PathWatch::read_events() {
  alignas(inotify_event) char bytes[16 * (sizeof(inotify_event) + NAME_MAX + 1)];
  bool any = false;
  for (;;) {
    const ssize_t got = ::read(descriptor_.get(), bytes, sizeof(bytes));
    if (got <= 0) return any;
    for (const char* at = bytes; at < bytes + got;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event.len;
      const std::string name = event.len > 0 ? event.name : "";
      if ((event.mask & IN_Q_OVERFLOW) != 0) any = true;
      if (!concerns(event.wd, name)) continue;
      any = true;
      const std::string file = folders_[event.wd].path + "/" + name;
      if ((event.mask & IN_MODIFY) != 0) written_.insert(file);
      if ((event.mask & ~(IN_MODIFY | IN_ATTRIB)) != 0) written_.erase(file);
    }
  }
}

bool PathWatch::changed() {
  if (descriptor_) {
    if (!read_events()) return false;
    follow();
    if (!descriptor_) seen_ = look();
    return true;
  }
  Looks now = look();
  if (now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

PathWatch::Looks PathWatch::look() const {
  Looks looks;
  std::vector<std::string> ends = policy_paths(path_);
  ends.push_back(path_);
  for (const std::string& end : ends) {
    struct stat file{};
    if (::stat(end.c_str(), &file) != 0) {
      looks[end] = {errno};
      continue;
    }
    if (S_ISDIR(file.st_mode)) continue;
    looks[end] = {static_cast<int64_t>(file.st_dev),
                  static_cast<int64_t>(file.st_ino),
                  file.st_size,
                  file.st_mtim.tv_sec,
                  file.st_mtim.tv_nsec,
                  file.st_ctim.tv_sec,
                  file.st_ctim.tv_nsec};
  }
  return looks;
}

}  // namespace opmux::policy
