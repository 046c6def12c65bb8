#include "plugin/trust/trusted_path.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"

namespace opmux::plugin {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit

struct Folder {
  base::Descriptor descriptor;
  std::string name;
};

/// Whether a folder is sticky and world-writable, like /tmp: users may add files, but only change
/// theirs.
bool is_shared(const struct stat& info) {
  return info.st_uid == 0 && (info.st_mode & S_ISVTX) != 0 && (info.st_mode & S_IWOTH) != 0;
}

/// Walks one path from the root, component by component.
class PathWalk {
 public:
  explicit PathWalk(const PathRules& rules) : rules_(rules) {}

  Result<OpenedPath> open(const std::string& path, bool want_folder);

 private:
  Status start(const std::string& path);
  Status step(const std::string& name);
  Status follow(const base::Descriptor& link, const struct stat& info, const std::string& name);
  Status open_end(const std::string& name, const struct stat& seen, bool want_folder);
  void judge(const struct stat& info, const std::string& path);
  void judge_place(const struct stat& info, const std::string& path);
  void enter(base::Descriptor folder, std::string name, const struct stat& info);
  void push(std::string_view path);
  Status missing(const std::string& name) const;
  void problem(std::string_view reason, std::string message) {
    opened_.problems.emplace_back(Code::invalid_argument, base::concat("trust.", reason),
                                  std::move(message));
  }
  std::string here(std::string_view name = {}) const;
  bool of_own_way(const std::string& path) const;
  bool trusted(uid_t owner) const {
    return std::ranges::find(rules_.owners, owner) != rules_.owners.end();
  }

  const PathRules& rules_;
  std::string asked_;
  std::vector<Folder> folders_;    ///< from the root to the current folder
  std::vector<std::string> rest_;  ///< remaining components, the next one last
  bool shared_ = false;            ///< the current folder is sticky and world-writable
  int links_ = 0;
  OpenedPath opened_;
};

std::string PathWalk::here(std::string_view name) const {
  std::string path;
  for (size_t i = 1; i < folders_.size(); ++i) path += "/" + folders_[i].name;
  if (!name.empty()) return base::concat(path, "/", name);
  return path.empty() ? "/" : path;
}

/// Whether a path is the folder of libopmux or one of its parents.
bool PathWalk::of_own_way(const std::string& path) const {
  const std::string& own = rules_.own_folder;
  if (path == "/") return !own.empty();
  return own.starts_with(path) && (own.size() == path.size() || own[path.size()] == '/');
}

void PathWalk::judge(const struct stat& info, const std::string& path) {
  if (!trusted(info.st_uid)) {
    problem("owner", base::concat(path, " is owned by user ", info.st_uid,
                                  "; root and the user of this process are trusted"));
  } else if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    problem("mode", base::concat(path, " is writable by ",
                                 (info.st_mode & S_IWOTH) != 0 ? "everyone" : "its group",
                                 "; revoke that with chmod go-w"));
  }
}

void PathWalk::judge_place(const struct stat& info, const std::string& path) {
  if (shared_) {
    problem("shared", base::concat(path,
                                   " is in a folder that everyone may write to; move it "
                                   "to a private folder"));
  }
  judge(info, path);
}

void PathWalk::enter(base::Descriptor folder, std::string name, const struct stat& info) {
  folders_.push_back({std::move(folder), std::move(name)});
  const std::string path = here();
  shared_ = is_shared(info);
  if (!shared_ && !of_own_way(path)) judge(info, path);
}

void PathWalk::push(std::string_view path) {
  std::vector<std::string> names;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) names.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  rest_.insert(rest_.end(), names.rbegin(), names.rend());
}

Status PathWalk::missing(const std::string& name) const {
  if (shared_ && errno == ENOENT) {
    return {Code::not_found, "trust.shared",
            base::concat("nothing exists at ", here(name), ", and everyone may create it")};
  }
  return {Code::not_found, "plugin.path",
          base::concat("cannot open ", here(name), ": ", std::generic_category().message(errno))};
}

Status PathWalk::start(const std::string& path) {
  asked_ = path;
  const bool legal = path.starts_with('/') && path.find('\0') == path.npos;
  if (!legal) {
    return {Code::invalid_argument, "trust.relative",
            base::concat("'", path,
                         "' is not an absolute path; plugins are never loaded relative to the "
                         "working directory")};
  }
  base::Descriptor root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!root || fstat(root.get(), &info) != 0) return missing({});
  enter(std::move(root), {}, info);
  push(path);
  return {};
}

Status PathWalk::follow(const base::Descriptor& link, const struct stat& info,
                        const std::string& name) {
  if (++links_ > kMostLinks) {
    return {Code::invalid_argument, "plugin.path",
            base::concat(asked_, " leads through more than ", kMostLinks, " symbolic links")};
  }
  if (shared_ || !trusted(info.st_uid)) {
    problem("link", base::concat(here(name), " is a symbolic link that ",
                                 shared_ ? "is in a folder that everyone may write to"
                                         : "is owned by another user"));
  }
  std::array<char, PATH_MAX> target{};
  const ssize_t size = readlinkat(link.get(), "", target.data(), target.size());
  if (size <= 0 || size == PATH_MAX) return missing(name);
  const std::string_view text(target.data(), static_cast<size_t>(size));
  if (text.starts_with('/')) {
    folders_.resize(1);
    shared_ = false;
  }
  push(text);
  return {};
}

/// Enters a folder or follows a symbolic link; files are left to open_end().
Status PathWalk::step(const std::string& name) {
  if (name == ".") return {};
  if (name == "..") {
    if (folders_.size() > 1) folders_.pop_back();
    struct stat info{};
    if (fstat(folders_.back().descriptor.get(), &info) != 0) return missing({});
    shared_ = is_shared(info);
    return {};
  }
  const int from = folders_.back().descriptor.get();
  base::Descriptor next(openat(from, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!next || fstat(next.get(), &info) != 0) return missing(name);
  if (S_ISLNK(info.st_mode)) return follow(next, info, name);
  if (S_ISDIR(info.st_mode)) {
    enter(std::move(next), name, info);
    return {};
  }
  if (!rest_.empty()) {
    errno = ENOTDIR;
    return missing(name);
  }
  return open_end(name, info, false);
}

Status PathWalk::open_end(const std::string& name, const struct stat& seen, bool want_folder) {
  const int from = folders_.back().descriptor.get();
  const std::string path = want_folder ? here() : here(name);
  const int kind = want_folder ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY;
  if (!want_folder && !S_ISREG(seen.st_mode)) {
    return {Code::invalid_argument, "trust.kind", base::concat(path, " is not a regular file")};
  }
  base::Descriptor file(
      openat(from, want_folder ? "." : name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  struct stat info{};
  if (!file || fstat(file.get(), &info) != 0) return missing(name);
  if (info.st_dev != seen.st_dev || info.st_ino != seen.st_ino) {
    return {Code::failed, "trust.changed", base::concat(path, " was replaced while it was opened")};
  }
  if (!want_folder) judge_place(info, path);
  opened_.descriptor = std::move(file);
  opened_.real_path = path;
  return {};
}

Result<OpenedPath> PathWalk::open(const std::string& path, bool want_folder) {
  Status status = start(path);
  while (status.ok() && !rest_.empty()) {
    const std::string name = std::move(rest_.back());
    rest_.pop_back();
    status = step(name);
  }
  if (!status.ok()) return opened_.problems.empty() ? status : opened_.problems.front();
  const bool at_file = static_cast<bool>(opened_.descriptor);
  if (at_file == want_folder) {
    return Status(Code::invalid_argument, "trust.kind",
                  base::concat(path, want_folder ? " is not a folder" : " is a folder"));
  }
  if (!want_folder) return std::move(opened_);
  struct stat info{};
  if (fstat(folders_.back().descriptor.get(), &info) != 0) return missing({});
  if (shared_) judge(info, here());
  if (status = open_end({}, info, true); !status.ok()) return status;
  return std::move(opened_);
}

}  // namespace

PathRules PathRules::of_process() {
  PathRules rules{{0, geteuid()}, {}};
  const std::string library = base::own_library();
  struct stat info{};
  if (library.empty() || stat(library.c_str(), &info) != 0) return rules;
  rules.owners.push_back(info.st_uid);
  rules.own_folder = std::filesystem::path(library).parent_path().string();
  return rules;
}

Result<OpenedPath> open_file(const std::string& path, const PathRules& rules) {
  return PathWalk(rules).open(path, false);
}

Result<OpenedPath> open_folder(const std::string& path, const PathRules& rules) {
  return PathWalk(rules).open(path, true);
}

}  // namespace opmux::plugin
