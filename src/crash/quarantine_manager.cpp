#include "crash/quarantine_manager.hpp"

#include <algorithm>
#include <ctime>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "crash/process_journal.hpp"

namespace opmux::crash {
namespace {

std::string day_of(int64_t seconds) {
  const time_t time = seconds;
  struct tm parts{};
  char text[16];
  ::gmtime_r(&time, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

std::string sentence_for(const Quarantined& entry) {
  const std::string what =
      entry.how == "suspect"
          ? "two processes were killed inside it"
          : base::concat("a process ended ", place_in_it(entry.phase), " by ", entry.how);
  return base::concat(what, " (", day_of(entry.since), "); quarantined until ",
                      day_of(entry.expires), " or until 'opmux quarantine clear ", entry.id, "'");
}

JournalPart part_of(const registry::Backend& backend) {
  return backend_part(backend.name(), backend.build_id(), backend.kind() == Kind::reference);
}

template <class Visit>
void for_each_implementation(const registry::RegistrySnapshot& snapshot, Visit&& visit) {
  for (const auto& [name, op] : snapshot.operators) {
    for (const auto& implementation : op->implementations) visit(*implementation);
  }
}

/// Removes an implementation, or all if `id` is empty, from a list; returns the number of entries
/// removed.
size_t take_out(QuarantineList& list, std::string_view id) {
  const auto concerned = [&](const auto& one) { return id.empty() || one.id == id; };
  size_t count = std::erase_if(list.entries, concerned);
  for (UncleanEnd& end : list.ends) count += std::erase_if(end.suspects, concerned);
  std::erase_if(list.ends, [](const UncleanEnd& end) { return end.suspects.empty(); });
  return count;
}

}  // namespace

QuarantineManager::~QuarantineManager() {
  if (joined_.load()) ProcessJournal::instance().leave(handler_.load());
}

void QuarantineManager::start(const std::string& state_dir, CrashJournal wish) {
  store_ = QuarantineStore(base::store_folder(state_dir));
  if (wish == CrashJournal::off) return read_store();
  const std::string folder = base::run_folder(state_dir);
  if (Status status = base::make_private_folder(folder); !status.ok()) {
    log_problem(status);
    return read_store();
  }
  const Settlement found = settle(folder, store_, now());
  at_start_.ends = found.ends;
  at_start_.damaged = found.damaged;
  at_start_.other_version = found.other_version;
  tell(found.news);
  if (!found.problem.ok()) {
    log_problem(found.problem);
    return read_store();
  }
  list_.update([&](QuarantineList& list) {
    list = found.list;
    return true;
  });
  join(folder, wish == CrashJournal::with_handler);
}

void QuarantineManager::join(const std::string& folder, bool handler) {
  Status status = ProcessJournal::instance().join(folder, handler, now());
  if (!status.ok()) return log_problem(status);
  handler_.store(handler);
  joined_.store(true);
  texts_.with([](Texts& texts) { texts.applied = nullptr; });
  at_start_.on = true;
  at_start_.handler = handler;
}

void QuarantineManager::read_store() {
  const auto found = store_.read();
  if (!found) {
    ++at_start_.damaged;
    return tell({{Level::warning, std::string(found.error().reason()), "",
                  base::concat("the quarantine list cannot be read: ", found.error().message())}});
  }
  at_start_.damaged += found->damaged;
  list_.update([&](QuarantineList& list) {
    list = *found;
    return true;
  });
}

void QuarantineManager::tell(const std::vector<JournalNews>& news) {
  for (const JournalNews& one : news) {
    log_.tell(one.level, one.code, "", one.impl, one.text, [&] { return one.text; });
  }
}

void QuarantineManager::log_problem(const Status& why) {
  at_start_.problem = why.message();
  tell({{Level::warning, "journal.off", "",
         base::concat("the crash journal is off: ", why.message())}});
}

void QuarantineManager::apply(const registry::RegistrySnapshotPtr& snapshot) {
  const registry::RegistrySnapshotPtr before =
      texts_.with([&](Texts& texts) { return std::exchange(texts.applied, snapshot); });
  if (before == snapshot) return;
  std::vector<const registry::ImplementationRecord*> fresh;
  for_each_new_implementation(before == nullptr ? registry::RegistrySnapshot() : *before, *snapshot,
                              [&](const auto& one) { fresh.push_back(&one); });
  if (joined_.load(std::memory_order_relaxed) && !note_names(fresh)) {
    texts_.with([](Texts& texts) { texts.applied = nullptr; });  // the next call tries all again
  }
  const auto list = list_.get();
  if (!list->entries.empty()) mark(*snapshot);  // of all, because entries may have expired
}

bool QuarantineManager::note_names(
    const std::vector<const registry::ImplementationRecord*>& implementations) {
  std::vector<JournalName> names;
  for (const registry::ImplementationRecord* const one : implementations) {
    names.push_back({number_in_marks(one->number), one->kind == Kind::reference,
                     plain_build(one->build_id), one->id});
  }
  const Status status = ProcessJournal::instance().note(names);
  if (status.ok()) return true;
  unnoted_.fetch_add(1, std::memory_order_relaxed);
  log_.tell(Level::warning, "journal.names", "", "", "", [&] {
    return base::concat("crashes in new implementations cannot be attributed to them: ",
                        status.message());
  });
  return false;
}

void QuarantineManager::mark(const registry::RegistrySnapshot& snapshot) {
  const auto list = list_.get();
  const int64_t today = now();
  for_each_implementation(snapshot, [&](const registry::ImplementationRecord& one) {
    mark(one.quarantined, one.kind == Kind::reference
                              ? nullptr
                              : list->find(one.id, plain_build(one.build_id), today));
  });
  for (const auto& [name, backend] : snapshot.backends) {
    const JournalPart part = part_of(*backend);
    mark(backend->quarantined(), part.reference ? nullptr : list->find(part.id, part.build, today));
  }
}

void QuarantineManager::mark(std::atomic<const std::string*>& reason, const Quarantined* entry) {
  const bool marked = reason.load(std::memory_order_relaxed) != nullptr;
  if ((entry != nullptr) == marked) return;
  reason.store(entry == nullptr ? nullptr : text_for(*entry), std::memory_order_release);
}

Status QuarantineManager::check_plugin(const JournalPart& part) {
  texts_.with([&](Texts& texts) { texts.plugins.push_back(part); });
  const auto list = list_.get();
  const Quarantined* const entry = list->find(part.id, part.build, now());
  if (entry == nullptr) return {};
  return {Code::unavailable, "health.quarantined", sentence_for(*entry)};
}

const std::string* QuarantineManager::text_for(const Quarantined& entry) {
  auto text = std::make_unique<const std::string>(sentence_for(entry));
  return texts_.with([&](Texts& texts) {
    texts.kept.push_back(std::move(text));
    return texts.kept.back().get();
  });
}

Quarantine QuarantineManager::list(const registry::RegistrySnapshot& snapshot,
                                   const std::vector<JournalPart>& deferred) {
  // Other processes may have changed the store. If it cannot be read, use the list of this runtime.
  const auto stored = store_.read();
  const auto held = list_.get();
  QuarantineList list = stored ? *stored : *held;
  list.forget_old(now());
  Quarantine all;
  for (const Quarantined& entry : list.entries) {
    all.entries.push_back({entry.id, entry.build, entry.how, entry.since, entry.expires, false,
                           std::string(name_of(entry.phase))});
    bool& here = all.entries.back().here;
    for_each_implementation(snapshot, [&](const registry::ImplementationRecord& one) {
      here |= one.id == entry.id && plain_build(one.build_id) == entry.build;
    });
    const auto concerns = [&](const JournalPart& part) {
      return part.id == entry.id && part.build == entry.build;
    };
    for (const auto& [name, backend] : snapshot.backends) here |= concerns(part_of(*backend));
    here |= texts_.with(
        [&](const Texts& texts) { return std::ranges::any_of(texts.plugins, concerns); });
    if (here || !std::ranges::any_of(deferred, concerns)) continue;
    here = all.entries.back().deferred = true;
  }
  std::ranges::sort(all.entries, {}, &QuarantineEntry::implementation);
  for (const UncleanEnd& end : list.ends) {
    all.suspected.push_back({end.when, end.process, {}});
    for (const auto& suspect : end.suspects) {
      all.suspected.back().implementations.push_back(suspect.id);
    }
  }
  return all;
}

Result<size_t> QuarantineManager::clear(std::string_view id,
                                        const registry::RegistrySnapshot& snapshot) {
  size_t count = 0;
  QuarantineList stored;
  const Status kept = store_.change(stored, [&](QuarantineList& list) {
    count = take_out(list, id);
    return count != 0;
  });
  if (!kept.ok()) return kept;
  list_.update([&](QuarantineList& list) {
    count = std::max(count, take_out(list, id));
    return true;
  });
  mark(snapshot);
  return count;
}

CrashJournalState QuarantineManager::state() const {
  CrashJournalState now = at_start_;
  ProcessJournal& journal = ProcessJournal::instance();
  if (now.on) now.path = journal.path();
  now.unnoted = unnoted_.load(std::memory_order_relaxed);
  now.threads_left_out = now.on ? journal.threads_left_out() : 0;
  return now;
}

}  // namespace opmux::crash
