#include "base/event_log.hpp"

#include <unistd.h>

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

std::string key_of(std::string_view code, std::string_view op, std::string_view impl,
                   std::string_view reason) {
  std::string key;
  for (const std::string_view part : {code, op, impl, reason}) key.append(part).push_back('\n');
  return key;
}

}  // namespace

EventLog::Turn EventLog::note(const std::string& key) {
  return seen_.with([&](auto& seen) {
    const auto found = seen.find(key);
    if (found != seen.end()) return ++found->second, Turn::again;
    if (seen.size() >= kMaxDistinct) return Turn::dropped;
    return seen.emplace(key, 1), Turn::first;
  });
}

void EventLog::tell(Level level, std::string_view code, std::string_view op, std::string_view impl,
                    std::string_view reason, const std::function<std::string()>& make_text) {
  switch (note(key_of(code, op, impl, reason))) {
    case Turn::again: suppressed_.fetch_add(1, std::memory_order_relaxed); return;
    case Turn::dropped: dropped_.fetch_add(1, std::memory_order_relaxed); return;
    case Turn::first: break;
  }
  if (!sink_) return;
  Event event{level, std::string(code), std::string(op), std::string(impl), make_text()};
  if (!reason.empty()) event.fields.emplace_back("reason", reason);
  sink_(event);
}

void EventLog::announce(Level level, std::string_view code, std::string text) const {
  if (sink_) sink_({level, std::string(code), {}, {}, std::move(text)});
}

uint64_t EventLog::count(std::string_view code, std::string_view op, std::string_view impl,
                         std::string_view reason) {
  return seen_.with([&](auto& seen) {
    const auto found = seen.find(key_of(code, op, impl, reason));
    return found == seen.end() ? 0 : found->second;
  });
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
    line += ": " + event.text + "\n";
    // Use a single write(), so that lines of several threads do not mix. Ignore a failed write.
    [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
  };
}

}  // namespace base
}  // namespace opmux
