#include "crash/quarantine_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::crash {
namespace {

/// The cause in the file: the signal and, unless it is `run`, the phase after a slash.
std::string cause_of(const Quarantined& entry) {
  if (entry.phase == Phase::run) return entry.how;
  return base::concat(entry.how, "/", name_of(entry.phase));
}

/// Splits the output of cause_of(). A phase that this version does not know stays in `how`.
void take_cause(std::string cause, Quarantined& entry) {
  entry.how = std::move(cause);
  entry.phase = Phase::run;
  const size_t slash = entry.how.rfind('/');
  if (slash == std::string::npos) return;
  const auto* const word = std::ranges::find(kPhaseWords, entry.how.substr(slash + 1));
  if (word == kPhaseWords.end()) return;
  entry.phase = to_phase(static_cast<uint32_t>(word - kPhaseWords.begin()));
  entry.how.resize(slash);
}

bool parse_entry(base::RecordFields& fields, Quarantined& entry) {
  entry.since = fields.number();
  entry.expires = fields.number();
  take_cause(fields.text(), entry);
  entry.build = fields.text();
  entry.id = fields.text();
  return fields.good() && fields.left() == 0 && !entry.how.empty() && !entry.build.empty() &&
         !entry.id.empty();
}

bool parse_end(base::RecordFields& fields, UncleanEnd& end) {
  end.when = fields.number();
  end.process = fields.integer<uint32_t>();
  const std::string suspects = fields.text();
  for (std::string_view rest = suspects; !rest.empty();) {
    std::string_view one = base::take_until(rest, ',');
    const std::string_view id = base::take_until(one, '@');
    end.suspects.push_back({std::string(id), std::string(one)});
  }
  return fields.good() && fields.left() == 0 && !end.suspects.empty();
}

void quarantine(QuarantineList& list, const UncleanEnd::Suspect& whom, std::string how, int64_t now,
                Phase phase = Phase::run) {
  std::erase_if(list.entries, [&](const Quarantined& entry) {
    return entry.id == whom.id && entry.build == whom.build;
  });
  list.entries.push_back(
      {whom.id, whom.build, std::move(how), now, now + kQuarantineSeconds, phase});
}

/// The single suspect that two ends share; null if they share none or several.
const UncleanEnd::Suspect* alone_in_common(const UncleanEnd& a, const UncleanEnd& b) {
  const UncleanEnd::Suspect* common = nullptr;
  for (const UncleanEnd::Suspect& suspect : a.suspects) {
    if (std::ranges::find(b.suspects, suspect) == b.suspects.end()) continue;
    if (common != nullptr) return nullptr;
    common = &suspect;
  }
  return common;
}

Judgement judge_fault(const JournalEnd& end, int64_t now, QuarantineList& list) {
  Judgement found{Judgement::Kind::elsewhere, "", name_of_end(end.signal), 0, end.phase};
  if (!end.culprit) return found;
  found.id = end.culprit->id;
  found.kind = Judgement::Kind::reference;
  if (end.culprit->reference) return found;
  quarantine(list, {end.culprit->id, end.culprit->build}, found.how, now, end.phase);
  found.kind = Judgement::Kind::blamed;
  return found;
}

}  // namespace

const Quarantined* QuarantineList::find(std::string_view id, std::string_view build,
                                        int64_t now) const {
  for (const Quarantined& entry : entries) {
    if (entry.id == id && entry.build == build && entry.expires > now) return &entry;
  }
  return nullptr;
}

void QuarantineList::forget_old(int64_t now) {
  std::erase_if(entries, [&](const Quarantined& entry) { return entry.expires <= now; });
  std::erase_if(ends, [&](const UncleanEnd& end) { return end.when + kQuarantineSeconds <= now; });
  if (ends.size() > kMostEnds) {
    ends.erase(ends.begin(), ends.end() - static_cast<ptrdiff_t>(kMostEnds));
  }
  // Times in the future mean that the clock was set back.
  for (Quarantined& entry : entries) {
    entry.since = std::min(entry.since, now);
    entry.expires = std::min(entry.expires, now + kQuarantineSeconds);
  }
  for (UncleanEnd& end : ends) end.when = std::min(end.when, now);
}

std::string QuarantineList::text() const {
  std::string all = base::concat(kTitle, "\n");
  for (const Quarantined& entry : entries) {
    all += base::checked_line(base::record<' '>("quarantined", entry.since, entry.expires,
                                                cause_of(entry), entry.build, entry.id));
  }
  for (const UncleanEnd& end : ends) {
    std::string suspects;
    for (const UncleanEnd::Suspect& one : end.suspects) {
      suspects += base::concat(suspects.empty() ? "" : ",", one.id, "@", one.build);
    }
    all += base::checked_line(base::record<' '>("end", end.when, end.process, suspects));
  }
  return all;
}

bool QuarantineList::parse(std::string_view text) {
  *this = {};
  if (base::take_until(text, '\n') != kTitle) return false;
  while (!text.empty()) {
    const auto line = base::text_of_checked(base::take_until(text, '\n'));
    base::RecordFields fields(line.value_or(""), ' ');
    const std::string word = fields.text();
    Quarantined entry;
    UncleanEnd end;
    if (word == "quarantined" && parse_entry(fields, entry)) {
      entries.push_back(std::move(entry));
    } else if (word == "end" && parse_end(fields, end)) {
      ends.push_back(std::move(end));
    } else {
      ++damaged;
    }
  }
  return true;
}

Judgement judge(const JournalEnd& end, int64_t now, QuarantineList& list) {
  if (end.idle) return {};
  if (end.signal != 0 && (end.thread_known || end.culprit)) return judge_fault(end, now, list);
  UncleanEnd killed{now, end.process, {}};
  for (const JournalName& name : end.in_flight) {
    if (!name.reference) killed.suspects.push_back({name.id, name.build});
  }
  if (killed.suspects.empty()) return {};
  Judgement found{Judgement::Kind::suspects, killed.suspects.front().id, "suspect",
                  killed.suspects.size(), Phase::run};
  for (const UncleanEnd& before : list.ends) {
    const UncleanEnd::Suspect* const alone = alone_in_common(killed, before);
    if (alone == nullptr) continue;
    found.kind = Judgement::Kind::alone;
    found.id = alone->id;
    quarantine(list, *alone, found.how, now);
    break;
  }
  list.ends.push_back(std::move(killed));
  return found;
}

namespace {

constexpr int kStoreLockWait = 2000;     // milliseconds
constexpr size_t kMostBytes = 16 << 20;  // size limit of the file

Status cannot(std::string_view what, const std::string& path, std::string_view why) {
  return {Code::unavailable, "quarantine.file", base::concat(what, " ", path, ": ", why)};
}

}  // namespace

Result<QuarantineList> QuarantineStore::read() const {
  struct stat found{};
  if (::lstat(path().c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return QuarantineList{};
    return cannot("cannot read", path(), std::strerror(errno));
  }
  if (found.st_uid != ::geteuid()) {
    return cannot("cannot use", path(), "it is not owned by the current user");
  }
  const auto text = base::read_whole(path(), kMostBytes);
  if (!text) return cannot("cannot use", path(), text.error().message());
  QuarantineList list;
  if (list.parse(*text)) return list;
  return Status(Code::unsupported, "quarantine.version",
                base::concat(path(), " does not begin with '", QuarantineList::kTitle,
                             "': it is damaged or has another version"));
}

Status QuarantineStore::change(QuarantineList& list,
                               const std::function<bool(QuarantineList&)>& edit) const {
  list = {};
  const Status folder = folder_.empty()
                            ? cannot("cannot keep", "quarantines", "no state folder is set")
                            : base::make_private_folder(folder_);
  const base::FileLock lock(folder.ok() ? path() + ".lock" : "", kStoreLockWait);
  const int why = errno;
  auto known = read();
  if (known) list = std::move(*known);
  if (!edit(list)) return known ? Status() : known.error();
  if (!folder.ok()) return folder;
  if (!lock) return cannot("cannot lock", path(), std::strerror(why));
  if (!known) return known.error();
  if (!base::replace_file(path(), list.text(), 0600)) {
    return cannot("cannot write", path(), std::strerror(errno));
  }
  return {};
}

}  // namespace opmux::crash
