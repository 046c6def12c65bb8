#include "crash/journal_part.hpp"

#include <map>
#include <utility>

#include "base/locks.hpp"
#include "base/text.hpp"
#include "crash/hazard_slot.hpp"
#include "crash/journal_file.hpp"
#include "crash/process_journal.hpp"

namespace opmux::crash {
namespace {

/// Numbers by id and build.
using Numbers = std::map<std::pair<std::string, std::string>, uint32_t>;

base::Published<Numbers>& numbers() {
  static constinit base::Lazy<base::Published<Numbers>> all;
  return all.get();
}

uint32_t registered_number(const JournalPart& part) {
  uint32_t number = 0;
  numbers().update([&](Numbers& all) {
    const auto next = static_cast<uint32_t>(kFirstPart + all.size());
    if (all.size() < kMostParts) all.try_emplace({part.id, part.build}, next);
    const auto found = all.find({part.id, part.build});
    if (found != all.end()) number = found->second;
    return number == next;
  });
  return number;
}

}  // namespace

JournalPart plugin_part(std::string_view path, std::string_view digest) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return {base::concat("plugin:", plain_build(name)), plain_build(digest)};
}

JournalPart backend_part(std::string_view name, std::string_view build, bool reference) {
  return {base::concat("backend:", plain_build(name)), plain_build(build), reference};
}

uint32_t note_part(const JournalPart& part) {
  const uint32_t number = registered_number(part);
  const JournalName name{number, part.reference, part.build, part.id};
  // A name that cannot be written blames no part; QuarantineManager reports a journal without room.
  if (number != 0) (void)ProcessJournal::instance().note({&name, 1});
  return number;
}

}  // namespace opmux::crash
