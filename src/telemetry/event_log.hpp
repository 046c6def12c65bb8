#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <opmux/event.hpp>

#include "base/fork_guarded.hpp"

namespace opmux::telemetry {

/// Tells each distinct event once and counts the rest. Thread-safe; the sink is called outside of
/// its lock.
class EventLog {
 public:
  /// Distinct events that are remembered; later new ones are counted as dropped, not told.
  static constexpr size_t kMaxDistinct = 8192;

  explicit EventLog(EventSink sink) : sink_(std::move(sink)) {}

  /// `reason` tells apart events of equal code, op and impl; `make_text` runs only if it is told.
  void tell(Level level, std::string_view code, std::string_view op, std::string_view impl,
            std::string_view reason, const std::function<std::string()>& make_text);

  /// Tells each time: for what happens rarely, and counts of its own.
  void announce(Level level, std::string_view code, std::string text) const;

  /// How often an event was told or suppressed.
  uint64_t count(std::string_view code, std::string_view op, std::string_view impl,
                 std::string_view reason);
  uint64_t suppressed() const { return suppressed_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  enum class Turn { first, again, dropped };
  Turn note(const std::string& key);

  EventSink sink_;
  base::ForkGuarded<std::unordered_map<std::string, uint64_t>> seen_;
  std::atomic<uint64_t> suppressed_{0}, dropped_{0};
};

/// A sink that writes lines such as "opmux info dispatch.chosen ..." to standard error, by
/// write(2).
EventSink stderr_sink(Level least);

}  // namespace opmux::telemetry
