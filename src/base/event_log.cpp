#include "base/event_log.hpp"

#include <unistd.h>

#include <iterator>

#include "base/memory.hpp"
#include "base/text.hpp"

namespace opmux {

std::string_view name_of(Level level) noexcept {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "unknown";
}

namespace base {
namespace {

/// A longer key is cut, so that the memory of the log is bounded although plugins choose the text.
constexpr size_t kMostKeyBytes = 192;

std::string key_of(std::string_view code, std::string_view op, std::string_view impl,
                   std::string_view reason) {
  std::string key;
  for (const std::string_view part : {code, op, impl, reason}) key.append(part).push_back('\n');
  if (key.size() <= kMostKeyBytes) return key;
  const size_t hash = std::hash<std::string_view>{}(key);
  return concat(std::string_view(key).substr(0, kMostKeyBytes), hash, " ", key.size());
}

constexpr std::array<size_t, 4> kMost{EventLog::kMaxDebugs, EventLog::kMaxInfos,
                                      EventLog::kMaxWarnings, EventLog::kMaxErrors};

}  // namespace

bool EventLog::note(Level level, std::string key) {
  const auto index = static_cast<size_t>(level);
  return remembered_.at(index).with([&](Remembered& known) {
    std::list<Remembered::Entry>& by_age = known.by_age;
    if (const auto found = known.places.find(key); found != known.places.end()) {
      by_age.splice(by_age.end(), by_age, found->second);
      ++found->second->count;
      return false;
    }
    if (by_age.size() < kMost.at(index)) {
      std::list<Remembered::Entry> added;
      added.push_back({std::move(key), 1});
      known.places.emplace(added.back().key, added.begin());
      by_age.splice(by_age.end(), added);
    } else {
      // Reuses the memory of the oldest event, so that nothing can fail half-way.
      auto place = known.places.extract(by_age.front().key);
      by_age.splice(by_age.end(), by_age, by_age.begin());
      by_age.back() = {std::move(key), 1};
      place.key() = by_age.back().key;
      place.mapped() = std::prev(by_age.end());
      known.places.insert(std::move(place));
      forgotten_.fetch_add(1, std::memory_order_relaxed);
    }
    return true;
  });
}

void EventLog::tell(Level level, std::string_view code, std::string_view op, std::string_view impl,
                    std::string_view reason, TextMaker make_text) {
  // The level first, because an event that no one receives must not take the place of another.
  if (ignores(level)) return;
  const bool logged = if_memory([&] {
    if (!note(level, key_of(code, op, impl, reason))) {
      suppressed_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    Event event{level, std::string(code), std::string(op), std::string(impl), make_text()};
    if (!reason.empty()) event.fields.emplace_back("reason", reason);
    sink_(event);
  });
  if (!logged) dropped_.fetch_add(1, std::memory_order_relaxed);
}

void EventLog::announce(Level level, std::string_view code, TextMaker make_text) const {
  if (ignores(level)) return;
  const bool logged = if_memory([&] { sink_({level, std::string(code), {}, {}, make_text()}); });
  if (!logged) dropped_.fetch_add(1, std::memory_order_relaxed);
}

uint64_t EventLog::count(std::string_view code, std::string_view op, std::string_view impl,
                         std::string_view reason) {
  const std::string key = key_of(code, op, impl, reason);
  uint64_t sum = 0;
  for (ForkGuarded<Remembered>& level : remembered_) {
    sum += level.with([&](const Remembered& known) {
      const auto found = known.places.find(key);
      return found == known.places.end() ? 0 : found->second->count;
    });
  }
  return sum;
}

EventSink stderr_sink(Level least) {
  return [least](const Event& event) {
    if (event.level < least) return;
    std::string line = "opmux " + std::string(name_of(event.level)) + " " + event.code;
    if (!event.impl.empty()) {
      line += " " + event.impl;
    } else if (!event.op.empty()) {
      line += " " + event.op;
    }
    // Standard error may be a terminal, and names and texts may come from other users.
    line = without_controls(line + ": " + event.text + "\n");
    // Use a single write(), so that lines of several threads do not mix. Ignore a failed write.
    [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
  };
}

}  // namespace base
}  // namespace opmux
