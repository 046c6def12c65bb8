#include "policy/files/policy_file_watcher.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <utility>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "policy/files/platform.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMoves = IN_DELETE_SELF | IN_MOVE_SELF;
/// Events of a file: it is written, replaced or made readable.
constexpr uint32_t kOfFile = kMoves | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB;
/// Events of a folder that is not empty, because the path leads through it: it can only be moved.
constexpr uint32_t kOfFolder = kMoves | IN_ONLYDIR;
/// Events of a folder whose entry may be replaced. Writing to an entry causes none.
constexpr uint32_t kOfEntries = kOfFolder | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
/// Events of a folder on a path that does not lead to a readable file.
constexpr uint32_t kOfMissing = kOfEntries | IN_ATTRIB;
constexpr int kMostLinks = 40, kMostTries = 3;
/// An event, and the reason if the file is refused.
constexpr std::string_view kWritableByOthers = "policy.writable_by_others";

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

bool can_read(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0;
}

/// An entry of a folder.
struct Step {
  std::string folder, name;
  bool link = false;

  friend bool operator==(const Step&, const Step&) = default;
};

/// Every entry that resolving a path visits, including symbolic links. A change of any of them may
/// change the file that the path refers to.
class Steps {
 public:
  explicit Steps(const fs::path& path) { walk(fs::absolute(path).lexically_normal()); }
  const std::vector<Step>& all() const { return steps_; }

 private:
  void walk(const fs::path& path) {
    fs::path at = "/";
    for (auto part = path.begin(); part != path.end(); ++part) {
      if (*part == "/" || part->empty() || *part == ".") continue;
      if (*part == "..") {
        at = at.parent_path();
        continue;
      }
      std::error_code error;
      const fs::path target = fs::read_symlink(at / *part, error);
      steps_.push_back({at.native(), part->native(), !error});
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

  std::vector<Step> steps_;
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

bool PathWatch::watch(const std::string& path, uint32_t events, const std::string& name) {
  if (!descriptor_) return false;
  int number = ::inotify_add_watch(descriptor_.get(), path.c_str(), events);
  if (number >= 0) {
    Watch& watch = watches_[number];
    // The kernel has replaced the events that another path or name needs.
    if ((watch.events & ~events) != 0)
      number = ::inotify_add_watch(descriptor_.get(), path.c_str(), watch.events | events);
    watch.path = path;
    watch.events |= events;
    if (!name.empty()) watch.names.insert(name);
  } else if (errno == ENOSPC || errno == ENOMEM) {
    descriptor_ = {};  // out of watches: poll from now on
  }
  return number >= 0;
}

/// Watches everything that a change of the path's file may come from. As long as the file exists,
/// the folders above it are not empty and can only be moved, so entries are watched only where a
/// link or the file may be replaced. Otherwise any folder of the path may appear or vanish.
void PathWatch::follow_path(const std::string& path) {
  for (int i = 1; i <= kMostTries; ++i) {
    const Steps steps(path);
    if (steps.all().empty()) return;
    const Step& last = steps.all().back();
    const bool found = can_read(path), sure = found && i < kMostTries;
    for (const Step& step : steps.all()) {
      const bool replaceable = step.link || &step == &last;
      const uint32_t events = !sure ? kOfMissing : replaceable ? kOfEntries : kOfFolder;
      watch(step.folder, events, step.name);
    }
    std::error_code error;
    const bool folder = fs::is_directory(path, error);
    const bool watched = found && watch(last.folder + "/" + last.name,
                                        folder ? kOfEntries : kOfFile, folder ? "*" : "");
    // Again if the path has changed before the watches existed.
    if (watched == can_read(path) && Steps(path).all() == steps.all()) return;
  }
}

/// Updates the watches to the files and folders that the path currently resolves through.
void PathWatch::follow() {
  const std::map<int, Watch> before = std::exchange(watches_, {});
  follow_path(path_);
  for (const std::string& file : policy_paths(path_)) {
    if (file != path_) follow_path(file);
  }
  if (!descriptor_) return;
  std::set<std::string> files;
  for (const auto& [number, watch] : watches_) {
    if (watch.names.empty()) files.insert(watch.path);
  }
  std::erase_if(written_, [&](const std::string& file) { return !files.contains(file); });
  for (const auto& [number, gone] : before) {
    if (!watches_.contains(number)) ::inotify_rm_watch(descriptor_.get(), number);
  }
}

bool PathWatch::concerns(int number, const std::string& name) const {
  const auto found = watches_.find(number);
  if (found == watches_.end()) return false;
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
      const std::string& path = watches_[event.wd].path;
      const std::string file = name.empty() ? path : base::concat(path, "/", name);
      // The process that created a file has it open. If it has closed the file before follow() adds
      // a watch, the file counts as open until the next change.
      if ((event.mask & (IN_MODIFY | IN_CREATE)) != 0) {
        written_.insert(file);
      } else if ((event.mask & IN_ATTRIB) == 0) {
        written_.erase(file);
      }
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

uint64_t PolicyWatch::run(uint64_t now_ns) {
  // Also on the first run, because a file may have changed before the watch existed.
  if (watch_.changed() || !started_) debounce_.note(now_ns);
  started_ = true;
  if (debounce_.due(watch_.still_written()) <= now_ns) {
    debounce_.clear();
    read_again();
  }
  const uint64_t due = debounce_.due(watch_.still_written());
  const bool looks = watch_.way() == PathWatch::Way::looking;
  return looks ? std::min(due, now_ns + PathWatch::kLookEvery) : due;
}

void PolicyWatch::read_again() {
  // A change during the read causes another event, or is noticed at the next comparison.
  Result<Files> files = read_policy_files(path_);
  if (!files && files.error().code() == Code::unavailable) return;
  if (!files) {
    const std::string failure(files.error().message());
    if (failure == std::exchange(failure_, failure)) return;
    seen_.clear();
    reload_(std::move(files));
    return;
  }
  failure_.clear();
  if (*files == seen_) return;
  seen_ = *files;
  reload_(std::move(files));
}

Status PolicyFileWatcher::start(const Mode& mode, const SourceOptions& options, PolicyTrust trust) {
  mode_ = mode;
  policy_trust_ = trust;
  looking_ = options.look_at_files;
  if (options.last_known_good && !mode_.config.empty()) {
    last_good_.emplace(LastGood(base::store_folder(mode_.state_dir), mode_.config), maintenance_,
                       log_);
  }
  if (Status status = read_platform(); !status.ok()) return status;
  return mode_.config.empty() ? Status() : read_config();
}

Status PolicyFileWatcher::read_platform() {
  const fs::path installed = fs::path(base::installation_folder()) / "../share/opmux/platforms";
  Result<PlatformChoice> choice = choose_platform(mode_, installed.lexically_normal());
  if (!choice) return choice.error();
  platform_ = choice->shown;
  if (!choice->warning.empty()) {
    log_.announce(Level::warning, "config.platform", [&] { return choice->warning; });
  }
  const Status status = choice->path.empty() ? Status() : read_platform(choice->path);
  if (status.ok() || choice->asked_for) return status;
  // Neither options nor environment name the file, so that the program starts without it.
  platform_ = {platform_.key, std::string(kNoPlatform),
               base::concat(choice->shown.value, " is refused: ", status.message())};
  log_.announce(Level::error, "config.platform",
                [&] { return base::concat(choice->path, " is not used: ", status.message()); });
  return {};
}

Status PolicyFileWatcher::read_platform(const std::string& path) {
  auto file = read_policy_file(path);
  if (!file) return file.error();
  if (Status status = check_writers({*file}); !status.ok()) return status;
  auto policy = parse({*file});
  if (!policy) return policy.error();
  return store_.set_at_start(Source::platform, std::move(*policy), path);
}

Status PolicyFileWatcher::read_config() {
  auto files = read_policy_files(mode_.config);
  Status status = files ? load(*files, mode_.config, "file") : files.error();
  if (files) remember(*files);
  if (!last_good_) return status;
  // The last known good policy may be a copy of the file from a time when it was not refused.
  if (status.reason() == kWritableByOthers) return status;
  if (!status.ok()) return take_last_good(status);
  last_good_->store(*files);
  return {};
}

Status PolicyFileWatcher::take_last_good(const Status& why) {
  const LastGood& last = last_good_->place();
  const auto files = last.read();
  if (!files) return why;
  if (!load(*files, mode_.config, "last known good").ok()) return why;
  log_.announce(Level::error, "policy.last_known_good", [&] {
    return base::concat(mode_.config, " cannot be used; the last known good policy from ",
                        last.path(), " is in force: ", why.message());
  });
  return {};
}

Status PolicyFileWatcher::check_writers(const Files& files) const {
  for (const FileText& file : files) {
    const bool refuse = policy_trust_ == PolicyTrust::refuse && file.writers != OtherWriters::none;
    if (!refuse && file.writers != OtherWriters::any) continue;
    const auto text = [&] {
      return file.path +
             " can be written or replaced by users other than this one and root; they can "
             "choose the implementations that this process runs";
    };
    if (refuse) {
      return {Code::invalid_argument, std::string(kWritableByOthers),
              text() + "; revoke that with chmod go-w for the file and the folders on its path"};
    }
    log_.announce(Level::warning, kWritableByOthers, text);
  }
  return {};
}

Status PolicyFileWatcher::load(const Files& files, std::string name, std::string origin) {
  PolicyDraft draft{{}, std::move(name), digest_of(files), std::move(origin)};
  const Status writers = check_writers(files);
  return store_.load(writers.ok() ? parse(files) : writers, std::move(draft));
}

Result<Policy> PolicyFileWatcher::parse(const Files& files) const {
  auto policy = parse_files(files, *registry_.snapshot());
  if (policy || policy.error().reason() != "policy.unmatched") return policy;
  // With `names: strict`; a deferred plugin may have what the policy names.
  store_.load_deferred_plugins();
  return parse_files(files, *registry_.snapshot());
}

Result<PolicySet> PolicyFileWatcher::set_with(const Files& files, std::string name) const {
  auto policy = parse(files);
  if (!policy) return policy.error();
  return store_.set_with(std::move(*policy), std::move(name));
}

void PolicyFileWatcher::follow() {
  if (mode_.kind != Mode::Kind::hot_reload) return;
  const auto way = looking_ ? PathWatch::Way::looking : PathWatch::Way::kernel;
  maintenance_.add([this, way] {
    return std::make_unique<PolicyWatch>(mode_.config, way, *seen_.get(),
                                         [this](Result<Files> files) { reload(std::move(files)); });
  });
}

void PolicyFileWatcher::remember(const Files& files) {
  seen_.update([&](Files& seen) {
    seen = files;
    return true;
  });
}

void PolicyFileWatcher::reload(Result<Files> files) {
  if (!files) {
    (void)store_.load(files.error(), {{}, mode_.config, "", "file"});
    return;
  }
  remember(*files);
  if (load(*files, mode_.config, "file").ok() && last_good_) last_good_->store(*files);
}

std::vector<Setting> PolicyFileWatcher::settings() const {
  std::vector<Setting> lines;
  lines.push_back({"mode", std::string(name_of(mode_.kind)), mode_.origin});
  if (!platform_.key.empty()) lines.push_back(platform_);
  if (mode_.kind == Mode::Kind::locked) {
    const bool named = !mode_.lockfile_origin.empty();
    lines.push_back(
        {"lockfile", mode_.lockfile, named ? mode_.lockfile_origin : "beside the policy file"});
  }
  const PolicyState state = store_.state();
  if (!state.name.empty()) {
    const std::string expired =
        state.expired > 0 ? base::concat(", ", state.expired, " expired") : "";
    lines.push_back({"file.version", std::to_string(state.version), state.origin});
    lines.push_back({"file.rules", base::concat(state.rules, expired), state.name});
    if (state.unmatched > 0) {
      const bool more = state.unmatched > state.unmatched_rules.size();
      lines.push_back(
          {"file.unmatched", std::to_string(state.unmatched),
           base::concat(base::join(state.unmatched_rules, ", "), more ? " and others" : "")});
    }
    if (!state.digest.empty()) lines.push_back({"file.sha256", state.digest, state.name});
  }
  if (state.refused > 0) {
    lines.push_back(
        {"file.refused", std::to_string(state.refused), std::string(state.last_refusal.message())});
  }
  if (state.rolled_back > 0) {
    lines.push_back({"file.rolled_back", std::to_string(state.rolled_back), "rollback"});
  }
  return lines;
}

}  // namespace opmux::policy
