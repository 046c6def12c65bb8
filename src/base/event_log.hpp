#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include <opmux/options.hpp>

#include "base/locks.hpp"

namespace opmux::base {

/// A function that makes a text, for the duration of a call. Unlike std::function it never
/// allocates.
class TextMaker {
 public:
  template <class Make>
  TextMaker(const Make& make)  // NOLINT(*-explicit-*)
      : make_(&make),
        call_([](const void* at) -> std::string { return (*static_cast<const Make*>(at))(); }) {}
  std::string operator()() const { return call_(make_); }

 private:
  const void* make_;
  std::string (*call_)(const void*);
};

/// Logs each distinct event once and counts its repetitions. Thread-safe. Calls the sink without
/// holding a lock. An event for which there is not enough memory is dropped and counted.
///
/// The log remembers a limited number of distinct events of each level, so that its memory is
/// bounded and frequent debug events take no room from warnings and errors. When a level is full,
/// the log forgets the event of that level that has not occurred for the longest time. A new event
/// is therefore never dropped, and a forgotten event is logged again when it recurs.
class EventLog {
 public:
  /// Numbers of distinct events that are remembered. A warning or an error is remembered for
  /// several reasons of each of 300 x 32 implementations.
  static constexpr size_t kMaxDebugs = 16384;
  static constexpr size_t kMaxInfos = 16384;
  static constexpr size_t kMaxWarnings = 65536;
  static constexpr size_t kMaxErrors = 32768;

  /// Ignores events below `least`: they are neither logged nor counted nor remembered. Without a
  /// sink all events are ignored.
  explicit EventLog(EventSink sink, Level least = Level::debug)
      : sink_(std::move(sink)), least_(least) {}

  /// Logs an event unless an equal one is remembered. Events are equal if level, code, op, impl and
  /// reason are equal. `make_text` is called only if the event is logged.
  void tell(Level level, std::string_view code, std::string_view op, std::string_view impl,
            std::string_view reason, TextMaker make_text);

  /// Logs an event every time. For rare events, and for events that callers count themselves.
  void announce(Level level, std::string_view code, TextMaker make_text) const;

  /// Number of times that an event occurred, logged or suppressed, since it was logged last.
  uint64_t count(std::string_view code, std::string_view op, std::string_view impl,
                 std::string_view reason);
  uint64_t suppressed() const { return suppressed_.load(std::memory_order_relaxed); }
  /// Number of times that an event was forgotten to make room for a new one.
  uint64_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }
  /// Number of events that were dropped for lack of memory.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  /// The remembered events of one level. The map refers to the keys in the list, which stay at
  /// their addresses while the list is reordered.
  struct Remembered {
    struct Entry {
      std::string key;
      uint64_t count = 0;
    };
    std::list<Entry> by_age;  ///< the event that occurred last is at the end
    std::unordered_map<std::string_view, std::list<Entry>::iterator> places;
  };

  bool ignores(Level level) const { return !sink_ || level < least_; }
  /// Counts an occurrence. True if the event is new.
  bool note(Level level, std::string key);

  EventSink sink_;
  const Level least_;
  std::array<ForkGuarded<Remembered>, 4> remembered_;  ///< by level
  std::atomic<uint64_t> suppressed_{0}, forgotten_{0};
  mutable std::atomic<uint64_t> dropped_{0};
};

/// Returns a sink that writes lines such as "opmux info dispatch.chosen ..." to standard error, for
/// events of at least this level.
EventSink stderr_sink(Level least);

}  // namespace opmux::base
