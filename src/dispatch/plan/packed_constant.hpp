#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

#include "base/locks.hpp"
#include "dispatch/decide/decision.hpp"
#include "dispatch/reclaim/reclaimer.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// The memory budget for packed constants of one runtime. Thread-safe.
class PackBudget {
 public:
  explicit PackBudget(uint64_t limit) : limit_(limit) {}
  /// Reserves bytes. Returns false and reserves nothing if the limit would be exceeded.
  bool take(uint64_t bytes);
  void give_back(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

/// Attributes of an instance that are kept, and the bytes that are kept of each text.
inline constexpr size_t kMostAttributes = 64, kLongestAttribute = 1024;

/// The packed copy of a constant for one implementation and one set of options of create(): an
/// instance, or a record that the budget has no room for one.
class Pack {
 public:
  Pack(const RankedCandidate& plan, std::vector<int64_t> options, void* instance);
  ~Pack();
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  /// Null if the budget had no room.
  void* instance() const { return instance_; }
  const registry::ImplementationRecord* implementation() const { return implementation_.get(); }
  /// True if the pack belongs to this implementation and create() would get the options of this
  /// call that it was made with.
  bool fits(const registry::ImplementationRecord& implementation, const opmux_call& call) const;
  /// Whether create() got options. Without them, the pack fits every call of its plan.
  bool has_options() const { return !options_.empty(); }
  /// A number that no other pack of the process has; at least 1.
  uint64_t serial() const { return serial_; }
  uint64_t bytes() const { return bytes_; }

  /// Asks describe() for the attributes of the instance and keeps at most kMostAttributes.
  void keep_attributes();
  const Attributes& attributes() const { return attributes_; }
  /// Records that `bytes` were reserved from the budget for this pack, and a copy of its attributes
  /// as those of the implementation's newest instance.
  void count(std::shared_ptr<PackBudget> budget, uint64_t bytes, Attributes newest) noexcept;
  /// Destroys the instance and returns its bytes to the budget.
  void drop();
  /// Puts an unlinked pack into the batch that was made with it, so that retiring a pack needs no
  /// memory. Call it once.
  static Reclaimer::Batches retired(std::shared_ptr<const Pack> pack) noexcept;

 private:
  class Retirement;
  static uint64_t next_serial() {
    static std::atomic<uint64_t> serials{0};
    return serials.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  registry::ImplementationPtr implementation_;
  std::shared_ptr<ImplementationCounters> counters_;
  const std::vector<int64_t> options_;  ///< the words of the options of create()
  void* instance_;
  const uint64_t serial_;
  uint64_t bytes_ = 0;
  Attributes attributes_;
  std::shared_ptr<PackBudget> budget_;              ///< budget that bytes_ were reserved from
  mutable std::unique_ptr<Retirement> retirement_;  ///< null after retired()
};

using PackPtr = std::shared_ptr<const Pack>;

/// A link of the list of a constant's packs. A call that looks for its pack passes the links of
/// other implementations, so every call of a cached plan blocks an unlinked link, while only the
/// calls of its implementation block a pack. A long call thus keeps links, which are small, and not
/// the packs of others.
class PackLink final : public Retired {
 public:
  explicit PackLink(const Pack& pack) : implementation_(pack.implementation()), pack_(pack) {}
  bool owns_plan(uint64_t plan_id) const override { return (plan_id & kBoundBit) == 0; }
  bool slow_calls_use_it() const override { return false; }

  /// The pack, if it fits. Reads it only if it belongs to this implementation, whose mark the
  /// calling thread must have set.
  const Pack* pack_for(const registry::ImplementationRecord& implementation,
                       const opmux_call& call) const {
    const bool same = implementation_ == &implementation && pack_.fits(implementation, call);
    return same ? &pack_ : nullptr;
  }
  const PackLink* next() const { return next_.load(std::memory_order_acquire); }
  void set_next(const PackLink* next) { next_.store(next, std::memory_order_release); }
  /// Puts an unlinked link into the batch that was made with it.
  static Reclaimer::Batches retired(std::unique_ptr<PackLink> link) noexcept;

 private:
  const registry::ImplementationRecord* const implementation_;  ///< compared, never read
  const Pack& pack_;
  std::atomic<const PackLink*> next_{nullptr};
  Reclaimer::Batches batch_ = Reclaimer::prepare(1);
};

class PackedConstant;

/// Bookkeeping for the packed constants of one runtime: the live constants, the memory budget, and
/// retired packs that calls in flight may still use. Thread-safe.
class PackStore {
 public:
  explicit PackStore(uint64_t limit) : budget_(std::make_shared<PackBudget>(limit)) {}

  /// Reserves bytes from the budget; frees retired packs first if it is exhausted. False if there
  /// is no room.
  bool take(uint64_t bytes);
  const std::shared_ptr<PackBudget>& budget() const { return budget_; }
  /// Takes ownership of unlinked packs and frees them once no call in flight can use them.
  void retire(Reclaimer::Batches packs) noexcept;
  /// Drops the packs of withdrawn implementations.
  void drop_withdrawn() noexcept;
  /// Bytes of all packs, after freeing retired packs that are no longer in use.
  uint64_t used();
  /// Retired packs and links that calls in flight may still use.
  size_t waiting();

  void add(PackedConstant& constant);
  void remove(PackedConstant& constant);

 private:
  void collect();

  std::shared_ptr<PackBudget> budget_;
  base::ForkGuarded<std::set<PackedConstant*>> constants_;
  base::ForkGuarded<Reclaimer> retired_;
};

/// The arguments that an instance fixes: its options and parameters. The others are absent.
struct FixedArguments {
  opmux_call call{};        ///< only `args` and `arg_count` are set
  uint32_t parameters = 0;  ///< bit i: argument i is a tensor, which load() gets
};

/// A constant tensor with its packed copies, one per implementation and options of create(), for
/// the current version of the data. Callers pass it as its base class TensorView. Thread-safe.
///
/// An instance of an operator is such an object without a tensor: create() and load() get the
/// arguments that it fixes instead of those of the call, so each implementation has one pack.
///
/// `packs_` owns the packs and their links under a lock; calls read the list that begins at
/// `first_` without one. A call may follow the list only while its thread has a mark set, because
/// unlinked links and packs go through the Reclaimer.
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

  /// Packs that one implementation may have of a constant, for different options. The oldest goes
  /// when there are more.
  static constexpr size_t kMostOptions = 16;

  /// Returns the pack of an implementation for the options of a call, or null if there is none yet.
  /// The calling thread must have a mark of the implementation set, which keeps the pack alive.
  const Pack* find(const registry::ImplementationRecord& implementation,
                   const opmux_call& call) const {
    const opmux_call& options = options_in(call);
    for (const PackLink* link = first_link(); link != nullptr; link = link->next()) {
      if (const Pack* pack = link->pack_for(implementation, options)) return pack;
    }
    return nullptr;
  }
  /// The list that find() follows.
  const PackLink* first_link() const { return first_.load(std::memory_order_acquire); }

  /// Returns the pack of an implementation for the options of a call and makes it on first use.
  /// create() gets the arguments of the call that are not tensors and that `create_reads` lists,
  /// load() only argument `index`. Null once the constant is released. Fails with the
  /// implementation's outcome.
  Result<PackPtr> pack_for(const RankedCandidate& plan, const opmux_call& call,
                           uint32_t index) const;

  /// Drops all packs because the data has changed.
  void changed() noexcept;
  /// Drops all packs and refuses new ones, because the owner has released the constant.
  void release() noexcept;
  /// Drops the packs of withdrawn implementations.
  void drop_withdrawn() noexcept;
  /// The arguments that an instance fixes; null for a constant.
  const FixedArguments* fixed() const { return fixed_; }
  /// Passes each pack that has an instance to `visit`, in the order in which they were made.
  template <class Visit>
  void each(Visit visit) const {
    packs_.with([&](const Packs& packs) {
      for (const Linked& one : packs) {
        if (one.pack->instance() != nullptr) visit(*one.pack);
      }
    });
  }
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  size_t packs() const;
  uint64_t bytes() const;

 protected:
  /// For an instance, which then calls fix().
  explicit PackedConstant(std::shared_ptr<PackStore> store) : store_(std::move(store)) {
    store_->add(*this);
  }
  /// Sets the arguments that create() and load() get, before the first call. They must live as long
  /// as this object.
  void fix(const FixedArguments& fixed) { fixed_ = &fixed; }

 private:
  struct Linked {
    PackPtr pack;
    std::unique_ptr<PackLink> link;
  };
  using Packs = std::vector<Linked>;
  /// Unlinks and retires the packs for which `gone` returns true.
  template <class Gone>
  void drop(Gone gone) const noexcept;
  /// The call whose scalars create() gets.
  const opmux_call& options_in(const opmux_call& call) const {
    return fixed_ != nullptr ? fixed_->call : call;
  }
  Result<PackPtr> make(Packs& packs, const RankedCandidate& plan, const opmux_call& options,
                       uint32_t parameters) const;

  std::shared_ptr<PackStore> store_;
  const FixedArguments* fixed_ = nullptr;
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> released_{false};
  mutable std::atomic<const PackLink*> first_{nullptr};  ///< head of the list of links in packs_
  mutable base::ForkGuarded<Packs> packs_;
};

/// The index of the argument that the implementation runs with in packed form: the first argument
/// that the schema declares `const` and the call passes as a constant. In a call through an
/// instance, that of the instance (Arguments::count), if the implementation needs one or the
/// instance has a `const` argument. -1 if there is none or the implementation has no create().
int packed_argument(const registry::ImplementationRecord& implementation,
                    const schema::Schema& schema, const schema::Arguments& arguments);

}  // namespace opmux::dispatch
