#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include <opmux/status.hpp>

#include "base/fork_guarded.hpp"
#include "registry/facts.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// What an implementation's plan() returned; freed by its plan_free().
class PreparedState {
 public:
  PreparedState(registry::ImplementationPtr implementation, void* state)
      : implementation_(std::move(implementation)), state_(state) {}
  ~PreparedState();
  PreparedState(const PreparedState&) = delete;
  PreparedState& operator=(const PreparedState&) = delete;

  void* get() const { return state_; }

 private:
  registry::ImplementationPtr implementation_;
  void* state_;
};

using PreparedPtr = std::shared_ptr<const PreparedState>;

/// The facts a prepared state was built for.
struct PreparedKey {
  std::vector<int64_t> facts;
  friend bool operator==(const PreparedKey&, const PreparedKey&) = default;
};

/// What `plan_reads` lists or, without a list, everything about the arguments; the number of
/// threads that the call allows; whether it has an instance; for a serial implementation also the
/// thread.
PreparedKey prepared_key(const registry::ImplementationRecord& implementation,
                         const registry::Signature& signature, const opmux_call& call);

/// Prepared states of one implementation: the 1,024 used last, each built once even if several
/// threads want it at the same time. Thread-safe.
class PreparedCache {
 public:
  static constexpr size_t kCapacity = 1024;
  static constexpr size_t kEvictAtOnce = 256;  ///< each eviction makes all threads look anew

  explicit PreparedCache(registry::ImplementationPtr implementation)
      : implementation_(std::move(implementation)) {}

  struct Found {
    PreparedPtr state;
    std::vector<PreparedPtr> evicted;  ///< to be retired: plans of other threads may point to them
  };
  /// The state for a call, built by plan() if needed. Fails with plan()'s outcome.
  Result<Found> get(const PreparedKey& key, const opmux_call& call);

  /// A state that nobody else gets: a bound plan may move between threads, and a serial
  /// implementation's states must not be used by two at a time.
  Result<PreparedPtr> make_own(const opmux_call& call);

  /// Everything not in use by a bound plan, to be retired: memory is short.
  std::vector<PreparedPtr> trim();

  size_t size();

 private:
  struct Slot {
    std::atomic<uint32_t> done{0};
    uint64_t process = 0;  ///< that builds it
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
    std::list<PreparedKey> by_age;  ///< used last first
  };

  /// The slot of a key and whether this caller has to build it.
  std::pair<std::shared_ptr<Slot>, bool> claim(const PreparedKey& key,
                                               std::vector<PreparedPtr>& evicted);
  void build(Slot& slot, const opmux_call& call);
  void forget(const PreparedKey& key);

  registry::ImplementationPtr implementation_;
  base::ForkGuarded<Entries> entries_;
};

}  // namespace opmux::dispatch
