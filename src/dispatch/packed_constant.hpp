#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

#include "base/fork_guarded.hpp"
#include "dispatch/choice.hpp"
#include "dispatch/reclaimer.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Bytes of packed copies in one runtime. Thread-safe.
class PackBudget {
 public:
  explicit PackBudget(uint64_t limit) : limit_(limit) {}
  /// False, and nothing is taken, if they would be too many.
  bool take(uint64_t bytes);
  void give_back(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

/// What an implementation made of a constant: an instance, or that there is no room for one.
class Pack {
 public:
  Pack(const PlanRecord& plan, void* instance)
      : implementation_(plan.candidate->implementation),
        counters_(plan.candidate->counters),
        instance_(instance) {}
  ~Pack() { drop(); }
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  /// Null if there was no room.
  void* instance() const { return instance_; }
  const registry::ImplementationRecord* implementation() const { return implementation_.get(); }
  uint64_t bytes() const { return bytes_; }
  const Pack* next() const { return next_.load(std::memory_order_acquire); }

  /// What the implementation says that it takes, or else `otherwise`.
  uint64_t size(uint64_t otherwise) const;
  /// Says that `bytes` were taken from the budget for it.
  void count(std::shared_ptr<PackBudget> budget, uint64_t bytes);
  /// Destroys the instance and gives its bytes back.
  void drop();
  void set_next(const Pack* next) const { next_.store(next, std::memory_order_release); }

 private:
  registry::ImplementationPtr implementation_;
  std::shared_ptr<ImplementationCounters> counters_;
  void* instance_;
  uint64_t bytes_ = 0;
  std::shared_ptr<PackBudget> budget_;              ///< that bytes_ were taken from
  mutable std::atomic<const Pack*> next_{nullptr};  ///< of the same constant
};

using PackPtr = std::shared_ptr<const Pack>;

class PackedConstant;

/// The packed copies of one runtime: whose they are, how many bytes they may take, and those that
/// were dropped while calls may be using them. Thread-safe.
class PackStore {
 public:
  explicit PackStore(uint64_t limit) : budget_(std::make_shared<PackBudget>(limit)) {}

  /// Makes room for a copy of this size in the budget; false if there is none.
  bool take(uint64_t bytes);
  const std::shared_ptr<PackBudget>& budget() const { return budget_; }
  /// Frees copies that no call can find any more, once those that found them are over.
  void retire(std::vector<PackPtr> packs);
  /// Drops what implementations made that are withdrawn.
  void drop_withdrawn();
  /// Bytes of all copies, after what can be freed was.
  uint64_t used();

  void add(PackedConstant& constant);
  void remove(PackedConstant& constant);

 private:
  void collect();

  std::shared_ptr<PackBudget> budget_;
  base::ForkGuarded<std::set<PackedConstant*>> constants_;
  base::ForkGuarded<Reclaimer> retired_;
};

/// The tensor of a constant and its packed copies, one per implementation, of its present version.
/// Calls find it by the view that it derives from. Thread-safe.
class PackedConstant : public TensorView, public std::enable_shared_from_this<PackedConstant> {
 public:
  PackedConstant(const TensorView& view, std::shared_ptr<PackStore> store)
      : TensorView(view), store_(std::move(store)) {
    store_->add(*this);
  }
  ~PackedConstant() { store_->remove(*this); }
  PackedConstant(const PackedConstant&) = delete;
  PackedConstant& operator=(const PackedConstant&) = delete;

  static const PackedConstant& of(const TensorView& view) {
    return static_cast<const PackedConstant&>(view);
  }

  /// What an implementation made of it, or null if it was not asked yet. The caller's thread has a
  /// mark, which keeps it alive.
  const Pack* find(const registry::ImplementationRecord* implementation) const {
    const Pack* pack = first_.load(std::memory_order_acquire);
    while (pack != nullptr && pack->implementation() != implementation) pack = pack->next();
    return pack;
  }

  /// The same, made at first use: create() sees the call's arguments without its tensors, load()
  /// argument `index` alone. Null once the constant is released. Fails with the implementation's
  /// outcome.
  Result<PackPtr> pack_for(const PlanRecord& plan, const opmux_call& call, uint32_t index) const;

  /// The data are others now.
  void changed();
  /// Its owner is gone: nothing is packed any more.
  void release();
  void drop_withdrawn();
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  size_t packs() const;
  uint64_t bytes() const;

 private:
  using Packs = std::vector<PackPtr>;
  /// Drops the copies that `gone` accepts.
  template <class Gone>
  void drop(Gone gone);

  std::shared_ptr<PackStore> store_;
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> released_{false};
  mutable std::atomic<const Pack*> first_{nullptr};  ///< of what packs_ owns
  mutable base::ForkGuarded<Packs> packs_;
};

/// The argument whose packed copy a call of an implementation runs with: the first `const` one that
/// is a constant. -1 if there is none or the implementation makes no copies.
int packed_argument(const registry::ImplementationRecord& implementation,
                    const registry::Schema& schema, const registry::Arguments& arguments);

}  // namespace opmux::dispatch
