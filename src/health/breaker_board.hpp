#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/fork_guarded.hpp"
#include "health/breaker_group.hpp"
#include "registry/record.hpp"

namespace opmux::health {

/// The breaker of one implementation of one build, and what it is called. Lives as long as the
/// board.
struct BoardEntry {
  std::string op, id, build_id, backend, vendor;
  Kind kind = Kind::vendor;
  std::shared_ptr<const registry::Schema> schema;
  Breaker breaker;
  BoardEntry* next = nullptr;  ///< of the same operator

  BoardEntry(const registry::ImplementationRecord& of, std::string build,
             std::shared_ptr<const registry::Schema> its_schema, uint64_t seed)
      : op(of.op),
        id(of.id),
        build_id(std::move(build)),
        backend(of.backend->name()),
        vendor(of.vendor),
        kind(of.kind),
        schema(std::move(its_schema)),
        breaker(of.kind == Kind::reference, {}, seed) {}
};

/// The entries of one operator: grows at the front, is read without a lock.
class BoardEntries {
 public:
  void add(BoardEntry& entry) {
    entry.next = first_.load(std::memory_order_relaxed);
    first_.store(&entry, std::memory_order_release);
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (BoardEntry* at = first_.load(std::memory_order_acquire); at != nullptr; at = at->next)
      visit(at->breaker);
  }

 private:
  std::atomic<BoardEntry*> first_{nullptr};
};

/// A change of a breaker's state, for people and programs.
struct BreakerNotice {
  const BoardEntry* entry;
  std::string what;  ///< the class: "f32 H<=4096 rows<=32 on cpu:0", or "all calls"
  BreakerState from, to;
  uint32_t openings;
  uint64_t open_for_ns;
  Cause cause;
};

/// "too many failures in a row".
std::string_view describe(Cause cause);

/// All breakers of a runtime. A breaker is made at the first failure of its implementation and
/// stays when the same build is registered again. Thread-safe.
class BreakerBoard {
 public:
  /// Implementations that fail after so many others are not watched; they are counted.
  static constexpr size_t kMaxBreakers = 16'384;

  struct Hooks {
    const base::Clock* clock = nullptr;
    uint64_t seed = 0;  ///< of the spread of openings
    /// Makes all decisions about an operator anew, for all calls that start after it returned.
    std::function<void(const std::string& op)> publish = {};
    std::function<BreakerLimits(const BoardEntry&)> limits = {};
    std::function<std::shared_ptr<const registry::Schema>(const std::string& op)> schema = {};
    /// Told of each change, never under a lock.
    std::function<void(const BreakerNotice&)> tell = {};
    /// Told that advance() may have something to do sooner than it said.
    std::function<void()> wake = {};
  };
  explicit BreakerBoard(Hooks hooks) : hooks_(std::move(hooks)) {}

  /// Null if it never failed.
  BoardEntry* find(const registry::ImplementationRecord& implementation) const;

  /// How a call ended. `pass` is what its breaker let it in with, or nothing.
  void note(const registry::ImplementationRecord& implementation,
            const registry::Signature& signature, const Pass& pass, Ending ending);

  /// What a call computed, which ended before `ended_ns`, was wrong: opens its class. Calls that
  /// start after this returned do not run it, bound plans excepted.
  void trip(const registry::ImplementationRecord& implementation,
            const registry::Signature& signature, uint64_t ended_ns);

  /// Makes a breaker before the first failure, for calls that are to be timed.
  void prepare(const registry::ImplementationRecord& implementation) { (void)make(implementation); }

  /// By hand, for all calls of an implementation; `unsupported` for the reference.
  Status force(const registry::ImplementationRecord& implementation, Force what);

  /// Makes every transition whose time has come; returns when there is something to do next.
  uint64_t advance(uint64_t now_ns);
  uint64_t next_due_ns() const;

  /// Asks for the limits of every breaker anew.
  void limits_changed();

  void for_each(const std::function<void(BoardEntry&)>& visit) const;
  uint64_t not_watched() const { return not_watched_.load(std::memory_order_relaxed); }
  uint64_t now_ns() const { return hooks_.clock->now_ns(); }

 private:
  using Group = BasicBreakerGroup<RealSync, BreakerRules, BoardEntries>;
  struct Table {
    std::map<std::pair<std::string, std::string>, std::unique_ptr<BoardEntry>> entries;
    std::map<std::string, std::unique_ptr<Group>> groups;
  };
  struct Place {
    BoardEntry* entry = nullptr;
    Group* group = nullptr;
  };

  std::vector<Place> places() const;
  Place make(const registry::ImplementationRecord& implementation);
  void follow(const Place& place, const BreakerChange& change, uint64_t now_ns);
  uint64_t publish(const std::string& op) const;

  Hooks hooks_;
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> not_watched_{0};
  mutable base::ForkGuarded<Table> table_;
};

}  // namespace opmux::health
