#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <opmux/options.hpp>

#include "base/locks.hpp"

namespace opmux::base {

/// Logs each distinct event once and counts its repetitions. Thread-safe. Calls the sink without
/// holding a lock.
class EventLog {
 public:
  /// Maximum number of distinct events. Further ones are counted as dropped and not logged.
  static constexpr size_t kMaxDistinct = 8192;

  explicit EventLog(EventSink sink) : sink_(std::move(sink)) {}

  /// Logs an event unless an equal one was logged before. Events are equal if code, op, impl and
  /// reason are equal. `make_text` is called only if the event is logged.
  void tell(Level level, std::string_view code, std::string_view op, std::string_view impl,
            std::string_view reason, const std::function<std::string()>& make_text);

  /// Logs an event every time. For rare events, and for events that callers count themselves.
  void announce(Level level, std::string_view code, std::string text) const;

  /// Number of times that an event occurred, logged or suppressed.
  uint64_t count(std::string_view code, std::string_view op, std::string_view impl,
                 std::string_view reason);
  uint64_t suppressed() const { return suppressed_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  enum class Turn { first, again, dropped };
  Turn note(const std::string& key);

  EventSink sink_;
  ForkGuarded<std::unordered_map<std::string, uint64_t>> seen_;
  std::atomic<uint64_t> suppressed_{0}, dropped_{0};
};

/// Returns a sink that writes lines such as "opmux info dispatch.chosen ..." to standard error, for
/// events of at least this level.
EventSink stderr_sink(Level least);

}  // namespace opmux::base
