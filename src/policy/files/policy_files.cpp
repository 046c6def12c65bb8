#include "policy/files/policy_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>
#include <span>

#include "base/crypto.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "policy/files/policy_reader.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

Status cannot(const std::string& path, std::string_view why) {
  return {Code::invalid_argument, "config.file", base::concat("cannot read ", path, ": ", why)};
}

Status changing(const std::string& path) {
  return {Code::unavailable, "config.changing", path + " changed while it was read"};
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

Status read_all(int descriptor, const std::string& path, std::string& text) {
  while (text.size() <= kMostBytes) {
    char part[16384];
    const ssize_t got = ::read(descriptor, part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot(path, std::strerror(errno));
    if (got == 0) return {};
    text.append(part, static_cast<size_t>(got));
  }
  return cannot(path, base::concat("it has more than ", kMostBytes, " bytes"));
}

/// In a folder with the sticky bit, users can replace only their files.
OtherWriters writers_of(const struct stat& found) {
  if (found.st_uid != ::geteuid() && found.st_uid != 0) return OtherWriters::any;
  if (S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0) return OtherWriters::none;
  if ((found.st_mode & S_IWOTH) != 0) return OtherWriters::any;
  return (found.st_mode & S_IWGRP) != 0 ? OtherWriters::group : OtherWriters::none;
}

/// Every folder that is searched when the path is opened, also for the targets of symbolic links.
std::set<fs::path> searched_folders(const fs::path& path) {
  constexpr int kLinkLimit = 40;  // the kernel's
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  std::deque<fs::path> rest(whole.begin(), whole.end());
  std::set<fs::path> folders;
  fs::path at;
  for (int links = 0; !rest.empty() && links <= kLinkLimit;) {
    const fs::path next = at / rest.front();
    rest.pop_front();
    if (!at.empty()) folders.insert(at);
    if (!fs::is_symlink(next, failed)) {
      at = next.lexically_normal();
      continue;
    }
    ++links;
    const fs::path target = fs::read_symlink(next, failed);
    if (target.is_absolute()) at.clear();
    rest.insert(rest.begin(), target.begin(), target.end());
  }
  return folders;
}

OtherWriters writers_of(const struct stat& file, const std::string& path) {
  OtherWriters most = writers_of(file);
  for (const fs::path& folder : searched_folders(path)) {
    struct stat found{};
    if (::stat(folder.c_str(), &found) != 0) return OtherWriters::any;
    most = std::max(most, writers_of(found));
  }
  return most;
}

}  // namespace

Result<FileText> read_policy_file(const std::string& path) {
  // Non-blocking, so that a pipe in place of the file does not block the caller.
  const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return cannot(path, std::strerror(errno));
  struct stat before{}, after{}, named{};
  if (::fstat(file.get(), &before) != 0) return cannot(path, std::strerror(errno));
  if (!S_ISREG(before.st_mode)) return cannot(path, "it is not a regular file");
  FileText read{path, {}, writers_of(before, path)};
  if (Status status = read_all(file.get(), path, read.text); !status.ok()) return status;
  if (::fstat(file.get(), &after) != 0 || ::stat(path.c_str(), &named) != 0) {
    return changing(path);
  }
  if (!same(before, after) || !same(after, named)) return changing(path);
  return read;
}

bool is_policy_name(std::string_view name) {
  return !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".json"));
}

std::vector<std::string> policy_paths(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> names, paths;
  base::read_names(path, names);
  for (const std::string& name : names) {
    if (is_policy_name(name)) paths.push_back(std::filesystem::path(path) / name);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::vector<FileText>> read_policy_files(const std::string& path) {
  const std::vector<std::string> paths = policy_paths(path);
  if (paths.empty()) return cannot(path, "the folder has no file that ends in .yaml or .json");
  if (paths.size() > kMostFiles) {
    return cannot(path, base::concat("the folder has more than ", kMostFiles, " files"));
  }
  std::vector<FileText> files;
  for (const std::string& each : paths) {
    auto file = read_policy_file(each);
    if (!file) return file.error();
    files.push_back(std::move(*file));
  }
  if (policy_paths(path) != paths) return changing(path);
  return files;
}

namespace {

std::string sha256_of(std::string_view text) {
  return base::sha256_hex(std::as_bytes(std::span(text)));
}

/// Moves a setting of one file to the merged policy; false if an earlier file has set it.
template <class T>
bool take(T& into, T& from) {
  if (from == T()) return true;
  if (into != T()) return false;
  into = std::move(from);
  return true;
}

Status join(Policy& whole, Policy part, const std::string& path) {
  const auto twice = [&](std::string_view key) {
    return Status(Code::invalid_argument, "policy.said_twice",
                  base::concat(path, ":1:1: ", key,
                               " is already set in an earlier file; only one file may set it"));
  };
  if (!take(whole.prefer, part.prefer)) return twice("defaults.prefer");
  if (!take(whole.allow, part.allow)) return twice("defaults.allow");
  if (!take(whole.strict, part.strict)) return twice("defaults.strict");
  if (!take(whole.transforms, part.transforms)) return twice("defaults.transforms");
  if (!take(whole.breaker, part.breaker)) return twice("breaker");
  if (!take(whole.shadow, part.shadow)) return twice("shadow");
  if (!take(whole.tuning, part.tuning)) return twice("tuning");
  whole.strict_names = whole.strict_names || part.strict_names;
  whole.allow_none = whole.allow_none || part.allow_none;
  for (Rule& rule : part.rules) whole.rules.push_back(std::move(rule));
  return {};
}

}  // namespace

Result<Policy> parse_files(const std::vector<FileText>& files,
                           const registry::RegistrySnapshot& registry) {
  if (files.size() == 1) return parse_policy(files[0].text, files[0].path, &registry);
  Policy whole;
  for (const FileText& file : files) {
    auto part = parse_policy(file.text, file.path, &registry);
    if (!part) return part;
    if (Status status = join(whole, std::move(*part), file.path); !status.ok()) return status;
  }
  return whole;
}

std::string digest_of(const std::vector<FileText>& files) {
  if (files.size() == 1) return sha256_of(files[0].text);
  std::string lines;
  for (const FileText& file : files) {
    const std::string name = std::filesystem::path(file.path).filename();
    lines += base::concat(sha256_of(file.text), "  ", name, "\n");
  }
  return sha256_of(lines);
}

}  // namespace opmux::policy
