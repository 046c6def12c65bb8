#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/locks.hpp"
#include "base/memory.hpp"
#include "base/system/clock.hpp"
#include "base/system/process.hpp"
#include "health/breaker.hpp"
#include "health/breaker_state.hpp"
#include "registry/record.hpp"

namespace opmux::health {

/// Admits one publishing thread per operator at a time, and no publication within kPublicationGapNs
/// of the last one. Earlier requests stay pending until flush(). Thread-safe.
template <class Sync, class Rules = BreakerRules>
class BasicPublishGate {
 public:
  /// Returns true if the caller must publish now and then call done(). Otherwise the request stays
  /// pending.
  bool request(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    pending_ = true;
    return take(now_ns);
  }
  /// Returns true if a request is pending and the caller must publish now and then call done().
  bool flush(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    return pending_ && take(now_ns);
  }
  void done(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    busy_ = 0;
    published_ = true;
    last_ns_ = std::max(last_ns_, now_ns);
  }
  /// Records a publication that did not go through request().
  void note(uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    published_ = true;
    last_ns_ = std::max(last_ns_, now_ns);
  }
  uint64_t next_due_ns() {
    const std::lock_guard lock(mutex_);
    if (!pending_) return UINT64_MAX;
    return published_ ? last_ns_ + kPublicationGapNs : 0;
  }

 private:
  bool take(uint64_t now_ns) {
    // A publisher in the parent process does not exist in a forked child, so its claim is ignored
    // there.
    if (busy_ == base::process_number()) return false;
    if (published_ && !Rules::may_publish(now_ns, last_ns_)) return false;
    busy_ = base::process_number();
    pending_ = false;
    return true;
  }
  typename Sync::Mutex mutex_;
  bool published_ = false, pending_ = false;
  uint64_t busy_ = 0;  ///< number of the process that is publishing
  uint64_t last_ns_ = 0;
};

/// The breakers of one operator and the rate limit of its publications. `Breakers::for_each` visits
/// them; breakers may be added concurrently.
template <class Sync, class Rules, class Breakers>
class BasicBreakerGroup {
 public:
  Breakers& breakers() { return breakers_; }

  /// Publishes a change, at once or when the gate permits. `publish` recomputes every decision of
  /// the operator for all calls that start after it returned, and returns the current time.
  template <class Publish>
  void follow(const BreakerChange& change, uint64_t now_ns, Publish&& publish) {
    if (change.at_once) {
      // Rare: a result was wrong, and calls with cached plans would keep using the implementation.
      gate_.note(publish_all(std::forward<Publish>(publish)));
    } else if (change.publish && gate_.request(now_ns)) {
      gate_.done(publish_all(std::forward<Publish>(publish)));
    }
  }
  /// Publishes changes of limits. The gate does not count this, so that the first failure or slow
  /// call after it is published at once.
  template <class Publish>
  void publish_limits(Publish&& publish) {
    (void)publish_all(std::forward<Publish>(publish));
  }
  template <class Publish>
  void flush(uint64_t now_ns, Publish&& publish) {
    if (gate_.flush(now_ns)) gate_.done(publish_all(std::forward<Publish>(publish)));
  }
  uint64_t next_due_ns() { return gate_.next_due_ns(); }

 private:
  template <class Publish>
  uint64_t publish_all(Publish&& publish) {
    // Publications may overlap: each notifies a breaker only of what it announced itself. A breaker
    // for which there is no memory starts to record after the next publication.
    std::vector<std::pair<BasicBreaker<Sync, Rules>*, uint32_t>> announced;
    breakers_.for_each([&](BasicBreaker<Sync, Rules>& breaker) {
      if (const uint32_t arming = breaker.announce(); arming != 0)
        base::if_memory([&] { announced.emplace_back(&breaker, arming); });
    });
    const uint64_t done_ns = std::forward<Publish>(publish)();
    for (const auto& [breaker, arming] : announced) breaker->published(arming);
    return done_ns;
  }

  Breakers breakers_;
  BasicPublishGate<Sync, Rules> gate_;
};

/// The breaker of one implementation of one build, with the names that messages need. Lives as long
/// as the board.
struct BreakerEntry {
  std::string op, id, build_id, backend, vendor;
  Kind kind = Kind::vendor;
  std::shared_ptr<const schema::Schema> schema;
  Breaker breaker;
  BreakerEntry* next = nullptr;  ///< next entry of the same operator

  BreakerEntry(const registry::ImplementationRecord& of, std::string build,
               std::shared_ptr<const schema::Schema> its_schema, uint64_t seed, uint64_t changes)
      : op(of.op),
        id(of.id),
        build_id(std::move(build)),
        backend(of.backend->name()),
        vendor(of.vendor),
        kind(of.kind),
        schema(std::move(its_schema)),
        breaker(of.kind == Kind::reference, {}, seed, changes) {}
};

/// Singly linked list of the entries of one operator. add() prepends; for_each() runs without a
/// lock.
class BreakerEntries {
 public:
  void add(BreakerEntry& entry) {
    entry.next = first_.load(std::memory_order_relaxed);
    first_.store(&entry, std::memory_order_release);
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (BreakerEntry* at = first_.load(std::memory_order_acquire); at != nullptr; at = at->next)
      visit(at->breaker);
  }

 private:
  std::atomic<BreakerEntry*> first_{nullptr};
};

/// A change of a breaker's state, as logged and passed to listeners.
struct BreakerNotice {
  const BreakerEntry* entry;
  std::string what;  ///< the class: "f32 H<=4096 rows<=32 on cpu:0", or "all calls"
  BreakerState from, to;
  uint32_t openings;
  uint64_t open_for_ns;
  uint64_t change;  ///< unique among the changes of all breakers of the registry
  Cause cause;
};

/// "too many consecutive failures".
std::string_view describe(Cause cause);

/// The services of a runtime that its breakers use. Thread-safe.
class BreakerHost {
 public:
  virtual ~BreakerHost() = default;
  /// Recomputes all decisions about an operator. Calls that start after it returned see the new
  /// ones.
  virtual void publish(const std::string& op) = 0;
  virtual BreakerLimits limits_of(const BreakerEntry& entry) const = 0;
  /// Null if there is no such operator.
  virtual std::shared_ptr<const schema::Schema> schema_of(const std::string& op) const = 0;
  /// Called for each change of state, without any lock held.
  virtual void tell(const BreakerNotice& notice) = 0;
  /// Called when advance() may have work earlier than it last returned.
  virtual void wake() = 0;
};

/// All breakers of a runtime. A breaker is created at the first failure of its implementation and
/// is kept when the same build is registered again. Thread-safe.
class BreakerRegistry {
 public:
  /// Limit for breakers. Implementations beyond it are not watched; not_watched() counts their
  /// failures.
  static constexpr size_t kMaxBreakers = 16'384;

  /// `seed` is that of the jitter of open times. Host and clock must outlive the registry; the host
  /// is not called before the first breaker is made.
  BreakerRegistry(BreakerHost& host, const base::Clock& clock, uint64_t seed)
      : host_(host), clock_(clock), seed_(seed) {}

  /// Null if the implementation has no breaker yet.
  BreakerEntry* find(const registry::ImplementationRecord& implementation) const;

  /// Records the outcome of a call. `pass` is the result of enter(), or default-constructed if the
  /// call did not consult the breaker.
  void note(const registry::ImplementationRecord& implementation,
            const schema::Signature& signature, const Pass& pass, Ending ending);

  /// Opens the class of a call whose result was wrong and that ended before `ended_ns`. Calls that
  /// start after trip() returned do not run the implementation, except through bound plans.
  void trip(const registry::ImplementationRecord& implementation,
            const schema::Signature& signature, uint64_t ended_ns);

  /// Whether a policy limits the duration of calls by `slow_factor`.
  bool compares_times(const registry::ImplementationRecord& implementation) const;
  /// Compares the duration of a call that ended before `ended_ns` with that of the reference.
  void compare(const registry::ImplementationRecord& implementation,
               const schema::Signature& signature, uint64_t took_ns, uint64_t reference_ns,
               uint64_t ended_ns);

  /// Creates a breaker before the first failure, for implementations whose calls must be timed. It
  /// gets its limits from the next limits_changed().
  void prepare(const registry::ImplementationRecord& implementation) { (void)add(implementation); }

  /// Manual override for all calls of an implementation. Fails with `unsupported` for a reference.
  Status force(const registry::ImplementationRecord& implementation, Force what);

  /// Makes every transition that is due; returns the time of the next one.
  uint64_t advance(uint64_t now_ns);
  uint64_t next_due_ns() const;

  /// Fetches the limits of every breaker again after a policy change.
  void limits_changed();

  void for_each(const std::function<void(BreakerEntry&)>& visit) const;
  uint64_t not_watched() const { return not_watched_.load(std::memory_order_relaxed); }
  uint64_t now_ns() const { return clock_.now_ns(); }

 private:
  using Group = BasicBreakerGroup<RealSync, BreakerRules, BreakerEntries>;
  /// Guarded by table_: all breakers by implementation id and build, and the groups by operator.
  struct Table {
    std::map<std::pair<std::string, std::string>, std::unique_ptr<BreakerEntry>> entries;
    std::map<std::string, std::unique_ptr<Group>> groups;
  };
  struct Place {
    BreakerEntry* entry = nullptr;
    Group* group = nullptr;
  };

  std::vector<Place> places() const;
  /// Finds or creates a breaker; `is_new`, if not null, says which.
  Place add(const registry::ImplementationRecord& implementation, bool* is_new = nullptr);
  /// Finds or creates a breaker with limits.
  Place make(const registry::ImplementationRecord& implementation);
  /// Publishes and reports a change that a breaker returned.
  void follow(const Place& place, const BreakerChange& change, uint64_t now_ns);
  uint64_t publish(const std::string& op) const;

  BreakerHost& host_;
  const base::Clock& clock_;
  const uint64_t seed_;
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> not_watched_{0};
  mutable base::ForkGuarded<Table> table_;
};

}  // namespace opmux::health
