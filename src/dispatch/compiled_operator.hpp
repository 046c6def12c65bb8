#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dispatch/decide/decision_cache.hpp"
#include "dispatch/decide/declines.hpp"
#include "dispatch/plan/free_dims.hpp"
#include "dispatch/plan/shape_checks.hpp"
#include "dispatch/reclaim/reclaimer.hpp"
#include "dispatch/sample/cell_sketch.hpp"
#include "policy/rules/scope_table.hpp"

namespace opmux::dispatch {

class Engine;

/// Returns a number that is unique in the process; used for epochs and state serials.
uint64_t next_epoch();

/// The dimension checks for one combination of argument ranks; built once per combination.
struct RankPattern {
  /// Four bits per argument: rank + 1 of a tensor, 0 for anything else.
  using Ranks = std::array<uint64_t, 2>;
  static_assert(OPMUX_MAX_ARGS <= 32 && OPMUX_MAX_RANK < 15);
  Ranks ranks;
  ShapeChecks checks;
  RankPattern* next = nullptr;
};

/// Everything compiled for one operator between two changes that concern it: record, policy and
/// decisions. Readers keep it alive by a mark in a hazard slot; it is retired as a whole. The lists
/// inside are insert-only; readers take no lock, and nodes are freed with the state.
class CompiledOperator final : public Retired {
 public:
  explicit CompiledOperator(CompileInputs sources);
  ~CompiledOperator() override;

  const CompileInputs& sources() const { return sources_; }
  const schema::Schema& schema() const { return *sources_.op->schema; }

  /// Changes only when prepared states are evicted. A call that caches a plan must read it before
  /// it takes a prepared state.
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  void set_epoch(uint64_t epoch) { epoch_.store(epoch, std::memory_order_release); }

  /// The decisions under a scope of this table, compiled on first use by one thread, for which
  /// others wait. Serial 0: no scope.
  DecisionCache& space(uint32_t scope_serial, const policy::ScopeTable& scopes);
  /// Twice as many scopes as can be alive.
  static constexpr uint32_t kMostScopes = 2 * policy::ScopeTable::kMostAlive;
  /// True once, when there are decisions under more than kMostScopes scopes. The caller must have
  /// the operator compiled again, which frees them.
  bool take_too_many_scopes();

  /// The decisions outside of scopes; null if there are none yet.
  const DecisionCache* unscoped() const;

  /// The dimension checks for the ranks of these arguments, compiled on first use.
  const ShapeChecks& checks_for(const schema::Arguments& arguments);

  ShapeGuards& shape_guards() { return shape_guards_; }

  bool owns_plan(uint64_t plan_id) const override { return PlanIds::is_of(plan_id, serial()); }
  uint64_t serial() const { return ids_.serial(); }

  Declines& declines() { return declines_; }
  const Declines& declines() const { return declines_; }

  uint32_t classes() const;

 private:
  struct Scoped {
    uint32_t serial;
    std::unique_ptr<DecisionCache> space;
    Scoped* next;
  };
  DecisionCache* find_space(uint32_t scope_serial) const;

  CompileInputs sources_;
  PlanIds ids_;
  std::atomic<uint64_t> epoch_;
  std::atomic<Scoped*> spaces_{nullptr};
  static constexpr uint32_t kTaken = uint32_t{1} << 31;
  std::atomic<uint32_t> scopes_{0};  ///< entries of spaces_ under scopes; kTaken: reported
  std::atomic<RankPattern*> patterns_{nullptr};
  ShapeGuards shape_guards_;
  Declines declines_;
  base::ForkMutex compiling_;
};

/// One operator of one engine: the published state and its epoch. The address is stable for the
/// engine's lifetime. Calls load these atomics only after they set a hazard slot (see ThreadBlock):
/// the fast path loads `epoch`, the slow path `current`.
struct alignas(64) OperatorSlot {
  static constexpr uint32_t kNoPlace = UINT32_MAX;
  std::atomic<uint64_t> epoch{0};  ///< epoch of `current`; 0: no state is published
  uint32_t number = 0;  ///< index into ThreadBlock::recent; reused after the engine is destroyed
  Engine* engine = nullptr;
  const schema::RankFacts* ranks = nullptr;  ///< of the engine
  std::atomic<CompiledOperator*> current{nullptr};
  std::shared_ptr<const schema::Schema> schema;
  uint64_t name_hash = 0;
  uint32_t place = kNoPlace;  ///< index into the engine's list of operators; used by writers only
  std::atomic<bool> plugins_wait{false};  ///< deferred plugins implement this operator
  /// The decisions of `current` are no longer right, and there was no memory for a new state. Calls
  /// on the slow path replace it before they use it; see Engine::replace_outdated().
  std::atomic<bool> outdated{false};
  std::atomic<uint64_t> decided_each_time{0};  ///< calls whose decision could not be cached
  CallSampling sampling;

  const std::string& name() const { return schema->name; }

  /// Publishes a state and returns the previous one, which the caller must retire. Stores `current`
  /// before `epoch`. In between, a fast call still matches the old epoch and runs the old state,
  /// which its mark protects. A slow call already uses the new state; its cached plan does not
  /// match `epoch` until the second store, so the next call may take the slow path again.
  std::unique_ptr<CompiledOperator> replace(std::unique_ptr<CompiledOperator> next) noexcept;
  /// Gives the state a new epoch, so that the next call of each thread takes the slow path.
  void renew_epoch() noexcept;
};

/// Hash of everything in the arguments that a kernel can decline for without reading tensor data.
uint64_t exact_hash(const schema::Arguments& arguments);
/// Hash of the shapes of the present tensors; see Declines.
uint64_t shape_hash(const schema::Arguments& arguments);

/// The decisions of an operator in a context (scope serial << 32 | ambient bits). The caller must
/// hold a mark, which keeps `state` alive.
DecisionCache& space_of(const OperatorSlot& slot, CompiledOperator& state, uint64_t context);

}  // namespace opmux::dispatch
