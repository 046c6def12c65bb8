#include "policy/files/policy_file_watcher.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "policy/files/policy_files.hpp"

namespace opmux::policy {

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

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kModes{"static", "dynamic", "config", "hot_reload",
                                                 "auto"};

Status does_not_fit(std::string_view mode, std::string_view why) {
  return {Code::invalid_argument, "mode.files", base::concat("mode ", mode, why)};
}

const std::string& first_of(const std::string& a, const std::string& b) {
  return a.empty() ? b : a;
}

/// Made absolute now, because the process may change its working directory while a file is watched.
std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path made = path.empty() ? fs::path() : fs::absolute(path, error);
  return error ? path : made.lexically_normal().native();
}

/// The configured lockfile, else opmux.lock beside the policy file.
std::string find_lockfile(const std::string& said, const std::string& config) {
  if (!said.empty() || config.empty()) return said;
  std::error_code error;
  const fs::path folder =
      fs::is_directory(config, error) ? fs::path(config) : fs::path(config).parent_path();
  const fs::path beside = folder / "opmux.lock";
  return fs::exists(beside, error) ? beside.native() : std::string();
}

Mode::Kind kind_of(std::string_view word, const Mode& mode) {
  if (word == "static") return Mode::Kind::locked;
  if (word == "config") return Mode::Kind::config;
  if (word == "hot_reload") return Mode::Kind::hot_reload;
  if (word == "dynamic") return Mode::Kind::dynamic;
  if (!mode.lockfile.empty()) return Mode::Kind::locked;
  return mode.config.empty() ? Mode::Kind::dynamic : Mode::Kind::hot_reload;
}

Status check(const Mode& mode) {
  const bool reads = mode.kind == Mode::Kind::config || mode.kind == Mode::Kind::hot_reload;
  if (reads && mode.config.empty()) {
    return does_not_fit(name_of(mode.kind),
                        " needs a policy file: set OPMUX_CONFIG or Options::sources.config");
  }
  if (mode.kind == Mode::Kind::dynamic && !mode.config.empty()) {
    return does_not_fit("dynamic", base::concat(" does not read a policy file, but ", mode.config,
                                                " is configured; unset the mode or the file"));
  }
  if (mode.kind != Mode::Kind::locked) {
    if (mode.lockfile_origin.empty()) return {};
    return does_not_fit(name_of(mode.kind),
                        base::concat(" does not use a lockfile, but ", mode.lockfile,
                                     " is configured; unset the mode or the lockfile"));
  }
  if (mode.lockfile.empty()) {
    return does_not_fit("static",
                        " needs a lockfile: set OPMUX_LOCKFILE or Options::sources.lockfile, or "
                        "put opmux.lock beside the policy file");
  }
  return {};
}

}  // namespace

std::string_view name_of(Mode::Kind kind) {
  switch (kind) {
    case Mode::Kind::dynamic: return "dynamic";
    case Mode::Kind::config: return "config";
    case Mode::Kind::hot_reload: return "hot_reload";
    case Mode::Kind::locked: return "static";
  }
  return "unknown";
}

Result<Mode> mode_of(const SourceOptions& options, const Environment& environment) {
  Mode mode;
  mode.config = absolute(first_of(options.config, environment.config));
  mode.platform = first_of(options.platform, environment.platform);
  mode.state_dir = environment.state_dir;
  mode.lockfile_origin = !options.lockfile.empty()       ? "Options (code)"
                         : !environment.lockfile.empty() ? "OPMUX_LOCKFILE (environment)"
                                                         : "";
  mode.lockfile = find_lockfile(first_of(options.lockfile, environment.lockfile), mode.config);
  const std::string& word = first_of(options.mode, environment.mode);
  if (!word.empty() && std::ranges::find(kModes, word) == kModes.end()) {
    return Status(Code::invalid_argument, "mode.value",
                  base::concat("'", word, "' is not a mode; the modes are ",
                               base::join(kModes, ", "), base::suggestion(word, kModes)));
  }
  mode.kind = kind_of(word, mode);
  mode.origin = !options.mode.empty()       ? "Options (code)"
                : !environment.mode.empty() ? "OPMUX_MODE (environment)"
                                            : "built-in";
  if (word.empty() || word == "auto") mode.origin += ", auto";
  if (Status status = check(mode); !status.ok()) return status;
  return mode;
}

Result<std::string> find_platform(const std::string& named, const std::string& installed) {
  std::error_code error;
  if (named.find('/') != std::string::npos || fs::exists(named, error)) return named;
  std::vector<std::string> names;
  for (auto at = fs::directory_iterator(installed, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (at->path().extension() != ".yaml") continue;
    names.push_back(at->path().stem());
    if (names.back() == named) return at->path().native();
  }
  return Status(
      Code::not_found, "config.platform",
      base::concat("there is no platform '", named, "' in ", installed,
                   "; to name a file, write its path with a '/'", base::suggestion(named, names)));
}

Status PolicyFileWatcher::start(const Mode& mode, const SourceOptions& options) {
  mode_ = mode;
  looking_ = options.look_at_files;
  keeping_ = options.last_known_good;
  if (Status status = read_platform(); !status.ok()) return status;
  return mode_.config.empty() ? Status() : read_config(options.last_known_good);
}

Status PolicyFileWatcher::read_platform() {
  if (mode_.platform.empty()) return {};
  const fs::path installed = fs::path(base::installation_folder()) / "../share/opmux/platforms";
  auto path = find_platform(mode_.platform, installed.lexically_normal());
  if (!path) return path.error();
  auto file = read_policy_file(*path);
  if (!file) return file.error();
  auto policy = parse_files({*file}, *registry_.snapshot());
  if (!policy) return policy.error();
  return store_.set_at_start(Source::platform, std::move(*policy), *path);
}

Status PolicyFileWatcher::read_config(bool last_known_good) {
  auto files = read_policy_files(mode_.config);
  Status status = files ? load(*files, mode_.config, "file") : files.error();
  if (files) remember(*files);
  if (status.ok()) {
    keep(*files);
    return {};
  }
  return last_known_good ? take_last_good(status) : status;
}

Status PolicyFileWatcher::take_last_good(const Status& why) {
  const LastGood last(base::store_folder(mode_.state_dir), mode_.config);
  const auto files = last.read();
  if (!files) return why;
  if (!load(*files, mode_.config, "last known good").ok()) return why;
  log_.announce(Level::error, "policy.last_known_good",
                base::concat(mode_.config, " cannot be used; the last known good policy from ",
                             last.path(), " is in force: ", why.message()));
  return {};
}

/// Stores files whose lock was busy when they came into force.
class PolicyFileWatcher::KeepJob final : public base::Maintenance::Job {
 public:
  explicit KeepJob(PolicyFileWatcher& watcher)
      : watcher_(watcher), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    watcher_.keep_wake_.store(wake_.get(), std::memory_order_release);
  }
  uint64_t run(uint64_t now_ns) override {
    uint64_t calls = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &calls, sizeof(calls));
    if (watcher_.keep_pending()) {
      busy_since_.reset();
      return base::Maintenance::kNever;
    }
    if (!busy_since_) busy_since_ = now_ns;
    if (now_ns - *busy_since_ >= kBusyForLongNs) {
      watcher_.tell_not_kept("another process holds the lock of the last known good policy of " +
                             watcher_.mode_.config + "; it will be stored when the lock is free");
    }
    return now_ns + kKeepAgainNs;
  }
  int descriptor() const override { return wake_.get(); }

 private:
  PolicyFileWatcher& watcher_;
  base::Descriptor wake_;
  std::optional<uint64_t> busy_since_;
};

void PolicyFileWatcher::wake_keep_job() {
  if (!keep_job_started_.exchange(true)) {
    maintenance_.add([this] { return std::make_unique<KeepJob>(*this); });
    return;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      ::write(keep_wake_.load(std::memory_order_acquire), &one, sizeof(one));
}

void PolicyFileWatcher::keep(const Files& files) {
  if (!keeping_) return;
  unkept_.with([&](Unkept& unkept) { unkept.files = files; });
  if (!keep_pending()) wake_keep_job();
}

bool PolicyFileWatcher::keep_pending() {
  Status failure;
  const bool busy = unkept_.with([&](Unkept& unkept) {
    if (!unkept.files) return false;
    const LastGood last(base::store_folder(mode_.state_dir), mode_.config);
    const auto kept = last.keep(*unkept.files);
    if (kept && *kept == LastGood::Kept::busy) return true;
    unkept.files.reset();
    if (kept) unkept.told = false;
    if (!kept) failure = kept.error();
    return false;
  });
  if (!failure.ok()) tell_not_kept(failure.message());
  return !busy;
}

void PolicyFileWatcher::tell_not_kept(std::string_view why) {
  const bool told = unkept_.with([](Unkept& unkept) { return std::exchange(unkept.told, true); });
  // The runtime works without stored files, so repeated failures are logged only once.
  if (!told) log_.announce(Level::warning, "policy.not_kept", std::string(why));
}

Status PolicyFileWatcher::load(const Files& files, std::string name, std::string origin) {
  PolicyDraft draft{{}, std::move(name), digest_of(files), std::move(origin)};
  return store_.load(parse_files(files, *registry_.snapshot()), std::move(draft));
}

Result<PolicySet> PolicyFileWatcher::set_with(const Files& files, std::string name) const {
  auto policy = parse_files(files, *registry_.snapshot());
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
  if (load(*files, mode_.config, "file").ok()) keep(*files);
}

std::vector<Setting> PolicyFileWatcher::settings() const {
  std::vector<Setting> lines;
  lines.push_back({"mode", std::string(name_of(mode_.kind)), mode_.origin});
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
