#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "base/whole_file.hpp"
#include "telemetry/state_page_file.hpp"
#include "telemetry/state_page_text.hpp"

namespace opmux::telemetry {
namespace {

/// Maximum number of retries if the file is replaced while it is being read; practically never
/// reached.
constexpr int kMostReplacements = 16;
constexpr time_t kOldSeconds = 60;

bool same_file(int descriptor, const std::string& path) {
  struct stat opened{}, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// True if a process holds the lock of a status file. Nullopt if the file was replaced since it was
/// opened: then no process holds this file, although its process may be alive.
std::optional<bool> held(int descriptor, const std::string& path, int lock) {
  if (::flock(descriptor, lock | LOCK_NB) != 0) return true;
  if (!same_file(descriptor, path)) return {};
  return false;
}

/// True for a new file that is being written. Such a file is not locked yet for a moment after its
/// creation; one that is older than kOldSeconds was abandoned.
bool on_its_way(int descriptor, std::string_view name) {
  struct stat file{};
  return name.ends_with(kNewStatePage) && ::fstat(descriptor, &file) == 0 &&
         file.st_mtime + kOldSeconds > ::time(nullptr);
}

Status cannot_read_page(const std::string& path, int why) {
  return {why == ENOENT ? Code::not_found : Code::failed, "state_page.read",
          base::concat("cannot read ", path, ": ", std::generic_category().message(why))};
}

}  // namespace

Result<FoundPage> read_state_page_file(const std::string& path) {
  for (int i = 0; i < kMostReplacements; ++i) {
    const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return cannot_read_page(path, errno);
    const std::optional<bool> in_use = held(file.get(), path, LOCK_SH);
    if (!in_use) continue;
    auto text = base::read_whole(path, kMaxStatePage + 4096);
    if (!text) return cannot_read_page(path, EIO);
    return FoundPage{*std::move(text), *in_use};
  }
  return cannot_read_page(path, EAGAIN);
}

size_t sweep_state_pages(const std::string& folder) {
  size_t swept = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr) return 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (!std::string_view(entry->d_name).starts_with(kStatePagePrefix)) continue;
    const std::string path = folder + "/" + entry->d_name;
    const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file || on_its_way(file.get(), entry->d_name)) continue;
    if (held(file.get(), path, LOCK_EX).value_or(true)) continue;
    // This descriptor now holds the lock of the file at `path`, so no process owns it and none will
    // replace it.
    if (::unlink(path.c_str()) == 0) ++swept;
  }
  return swept;
}

}  // namespace opmux::telemetry
