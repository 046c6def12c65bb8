#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include <opmux/status.hpp>

#include "base/locks.hpp"
#include "registry/record.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

/// Owns the state that an implementation's plan() returned; frees it with plan_free().
///
/// Shared by the cache and by every plan that runs with it, so that it outlives its eviction while
/// a call is inside. The plan of an idle thread may hold it permanently; therefore the cache frees
/// the states of its implementation when it is destroyed itself, and such a plan is left with an
/// empty object, which it never runs.
class PreparedState {
 public:
  PreparedState(registry::ImplementationPtr implementation, void* state)
      : implementation_(std::move(implementation)), state_(state) {}
  ~PreparedState() { free(); }
  PreparedState(const PreparedState&) = delete;
  PreparedState& operator=(const PreparedState&) = delete;

  void* get() const { return state_; }
  /// Calls plan_free() unless that was done. Returns when it has returned, on whichever thread. No
  /// call may use the state any more.
  void free() const;

 private:
  registry::ImplementationPtr implementation_;
  void* state_;
  /// process_number() of the process that frees it, and whether that is done.
  mutable std::atomic<uint64_t> freed_by_{0};
  mutable std::atomic<uint32_t> freed_{0};
};

using PreparedPtr = std::shared_ptr<const PreparedState>;

/// The cache key of a prepared state: values of the facts it was built for.
struct PreparedKey {
  std::vector<int64_t> facts;
  friend bool operator==(const PreparedKey&, const PreparedKey&) = default;
};

/// Builds the key of a call: the facts in `plan_reads` or, without a list, everything that plan()
/// is shown, which is all of the arguments, the tag and whether threads are lent. It always has the
/// number of threads, whether the call has a packed instance, and the thread, if the implementation
/// is serial.
PreparedKey prepared_key(const registry::ImplementationRecord& implementation,
                         const schema::Signature& signature, const opmux_call& call);

/// An LRU cache of the prepared states of one implementation, at most 1,024. Each state is built
/// once even if several threads need it at the same time. Thread-safe.
///
/// Every operator state in which the implementation is a candidate shares the cache, and so does
/// every bound plan. So the cache is destroyed when no call can be inside the implementation.
class PreparedCache {
 public:
  static constexpr size_t kCapacity = 1024;

  explicit PreparedCache(registry::ImplementationPtr implementation)
      : implementation_(std::move(implementation)) {}
  /// Frees all states, those in plans included.
  ~PreparedCache();
  PreparedCache(const PreparedCache&) = delete;
  PreparedCache& operator=(const PreparedCache&) = delete;

  /// Returns the state for a call; calls plan() if it is not cached. Fails with plan()'s outcome.
  Result<PreparedPtr> get(const PreparedKey& key, const opmux_call& call);

  /// Builds a state that is not shared, for a bound plan of a serial implementation. Such a plan
  /// may move between threads, and two threads must not use one state at the same time.
  Result<PreparedPtr> make_own(const opmux_call& call);

  /// Drops all finished states to free memory, and returns whether there were any. Plans keep the
  /// states that they use.
  bool trim();

  size_t size();

 private:
  struct Slot {
    std::atomic<uint32_t> done{0};  ///< 1 once `state` or `failure` is set
    uint64_t process = 0;           ///< process_number() of the process that builds it
    PreparedPtr state;
    Status failure;
  };
  struct KeyHash {
    size_t operator()(const PreparedKey& key) const;
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<PreparedKey>::iterator age;
  };
  struct Entries {
    std::unordered_map<PreparedKey, Entry, KeyHash> by_key;
    std::list<PreparedKey> by_age;  ///< most recently used first
    /// All states that exist, evicted ones included; entries of freed ones are removed when the
    /// list is full.
    std::vector<std::weak_ptr<const PreparedState>> alive;
  };

  /// Returns the slot of a key, and whether the caller has to build it. A slot that a thread of the
  /// parent process was building at a fork is built by the caller.
  std::pair<std::shared_ptr<Slot>, bool> claim(const PreparedKey& key);
  void build(Slot& slot, const opmux_call& call);
  /// Takes over a state that plan() returned. Frees it if there is no memory to hold it.
  PreparedPtr own(void* state) const;
  void note_alive(const PreparedPtr& state);
  void forget(const PreparedKey& key);

  registry::ImplementationPtr implementation_;
  base::ForkGuarded<Entries> entries_;
};

}  // namespace opmux::dispatch
