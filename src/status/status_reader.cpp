#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "status/status_file.hpp"
#include "status/status_text.hpp"

namespace opmux {
namespace {

using status_file::StatusPage;

/// Reads a status file and determines whether its process is alive.
Result<StatusPage> read_page(const std::string& path, const std::string& own_namespace,
                             std::optional<uid_t> owner) {
  auto found = status_file::read_status_file(path, owner);
  if (!found) return found.error();
  auto page = status_file::parse_status_file(found->text);
  if (!page) {
    return Status(page.error().code(), std::string(page.error().reason()),
                  base::concat(path, ": ", page.error().message()));
  }
  ProcessState& process = page->process;
  process.elsewhere = page->mark.pid_namespace != own_namespace;
  // The lock alone is not enough: a child that was forked while the parent wrote the file may still
  // hold it after the parent was killed.
  process.alive = found->held && (process.elsewhere || status_file::start_ticks_of(process.pid) ==
                                                           page->mark.start_ticks);
  return page;
}

/// Reads the status files of a user. A folder of another user, or one that others can write to, has
/// none: the default folder is in a place where every user can create it.
std::vector<StatusPage> read_pages(const std::string& folder, uid_t user) {
  std::vector<StatusPage> pages;
  base::Descriptor opened(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!base::belongs_to(opened, user)) return pages;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(opened.get()), &::closedir);
  if (entries != nullptr) (void)opened.release();
  const std::string own_namespace = status_file::own_mark().pid_namespace;
  while (const dirent* entry = entries == nullptr ? nullptr : ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(status_file::kStatusFilePrefix) ||
        name.ends_with(status_file::kNewStatusFile))
      continue;
    auto page = read_page(base::concat(folder, "/", name), own_namespace, user);
    if (page) pages.push_back(*std::move(page));
  }
  return pages;
}

/// Merges the status files of each process into one entry with all of its runtimes.
std::vector<ProcessState> join_by_process(std::vector<StatusPage> pages) {
  std::map<std::tuple<int64_t, std::string, uint64_t>, ProcessState> by_process;
  for (StatusPage& page : pages) {
    auto& into = by_process[{page.process.pid, page.mark.pid_namespace, page.mark.start_ticks}];
    std::vector<RuntimeState> runtimes = std::move(into.runtimes);
    std::ranges::move(page.process.runtimes, std::back_inserter(runtimes));
    std::ranges::sort(runtimes, {}, &RuntimeState::number);
    into = std::move(page.process);
    into.runtimes = std::move(runtimes);
  }
  std::vector<ProcessState> all;
  for (auto& [key, process] : by_process) all.push_back(std::move(process));
  return all;
}

Status no_page(int64_t pid, const std::string& folder, bool ended) {
  const bool there = ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
  if (ended || pid <= 0 || !there) {
    return {Code::not_found, "state_page.process",
            base::concat("there is no process ", pid,
                         ended ? "; it ended and left a status file" : "")};
  }
  return {Code::not_found, "state_page.none",
          base::concat("process ", pid, " has no status file in ", folder,
                       "; start it with OPMUX_STATE_PAGE=1, and run this command as the same user "
                       "with the same OPMUX_STATE_DIR and XDG_RUNTIME_DIR")};
}

/// A folder with status files, and the user that it and the files must belong to.
struct Place {
  std::string folder;
  uid_t user;
};

/// Adds the folders of the user of a process, for root. Root may read all files anyway; that folder
/// and file belong to the user of the process ensures that no other user wrote about it.
void add_places_of_user(std::vector<Place>& places, int64_t pid, const std::string& state_dir) {
  struct stat process{};
  if (::stat(base::concat("/proc/", pid).c_str(), &process) != 0 || process.st_uid == 0) return;
  places.push_back({state_page_folder(state_dir), process.st_uid});
  for (std::string& folder : base::run_folders_of(process.st_uid)) {
    places.push_back({std::move(folder), process.st_uid});
  }
}

}  // namespace

uint64_t RuntimeState::calls(std::string_view implementation) const {
  for (const OperatorPageState& op : operators) {
    const auto at =
        std::ranges::find(op.implementations, implementation, &ImplementationPageState::id);
    if (at != op.implementations.end()) return at->calls;
  }
  return 0;
}

std::string state_page_folder(const std::string& state_dir) {
  const char* const said = state_dir.empty() ? secure_getenv("OPMUX_STATE_DIR") : nullptr;
  return base::run_folder(said == nullptr ? state_dir : said);
}

Result<ProcessState> open_state_page(const std::string& path) {
  auto page = read_page(path, status_file::own_mark().pid_namespace, std::nullopt);
  if (!page) return page.error();
  return std::move(page->process);
}

Result<ProcessState> process_state(int64_t pid, const std::string& state_dir) {
  const std::string folder = state_page_folder(state_dir);
  std::vector<Place> places{{folder, ::geteuid()}};
  if (::geteuid() == 0) add_places_of_user(places, pid, state_dir);
  bool ended = false;
  for (const Place& place : places) {
    for (ProcessState& process : join_by_process(read_pages(place.folder, place.user))) {
      if (process.pid != pid || process.elsewhere) continue;
      if (process.alive) return std::move(process);
      ended = true;
    }
  }
  return no_page(pid, folder, ended);
}

std::vector<ProcessState> process_states(const std::string& state_dir) {
  std::vector<ProcessState> all =
      join_by_process(read_pages(state_page_folder(state_dir), ::geteuid()));
  std::erase_if(all, [](const ProcessState& process) { return !process.alive; });
  return all;
}

}  // namespace opmux

namespace opmux::status_file {
namespace {

/// Maximum number of retries if the file is replaced while it is being read; practically never
/// reached.
constexpr int kMostReplacements = 16;
constexpr time_t kOldSeconds = 60;

/// Does not follow a link, nor wait for a pipe in place of the file.
int open_status_file(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

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
  return name.ends_with(kNewStatusFile) && ::fstat(descriptor, &file) == 0 &&
         file.st_mtime + kOldSeconds > ::time(nullptr);
}

Status cannot_read_page(const std::string& path, int why) {
  return {why == ENOENT ? Code::not_found : Code::failed, "state_page.read",
          base::concat("cannot read ", path, ": ", std::generic_category().message(why))};
}

}  // namespace

Result<FoundStatusFile> read_status_file(const std::string& path, std::optional<uid_t> owner) {
  for (int i = 0; i < kMostReplacements; ++i) {
    const base::Descriptor file(open_status_file(path));
    if (!file) return cannot_read_page(path, errno);
    if (owner && !base::belongs_to(file, *owner)) {
      return Status(Code::failed, "state_page.owner",
                    path + " belongs to another user, or others can write to it");
    }
    const std::optional<bool> in_use = held(file.get(), path, LOCK_SH);
    if (!in_use) continue;
    auto text = base::read_whole(file, path, kMaxStatePage + 4096);
    if (!text) return cannot_read_page(path, EIO);
    return FoundStatusFile{*std::move(text), *in_use};
  }
  return cannot_read_page(path, EAGAIN);
}

size_t sweep_state_pages(const std::string& folder) {
  size_t swept = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr) return 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (!std::string_view(entry->d_name).starts_with(kStatusFilePrefix)) continue;
    const std::string path = folder + "/" + entry->d_name;
    const base::Descriptor file(open_status_file(path));
    if (!file || on_its_way(file.get(), entry->d_name)) continue;
    if (held(file.get(), path, LOCK_EX).value_or(true)) continue;
    // This descriptor now holds the lock of the file at `path`, so no process owns it and none will
    // replace it.
    if (::unlink(path.c_str()) == 0) ++swept;
  }
  return swept;
}

}  // namespace opmux::status_file
