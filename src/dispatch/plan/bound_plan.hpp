#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <opmux/detail/hot_plan.hpp>
#include <opmux/status.hpp>

#include "dispatch/call/attempt.hpp"
#include "dispatch/call/call_decision.hpp"
#include "dispatch/plan/bound_plan_state.hpp"
#include "dispatch/plan/cache_insert.hpp"
#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {

/// A decision that the program holds and calls without a lookup. It pins its choice, so it stays
/// usable across epochs until the engine revokes it. Used by one thread at a time.
///
/// run_marked() follows the protocol of ThreadBlock with `hot.state` in place of the epoch: it
/// stores the plan id in a hazard slot, then loads the state. Engine::wait_for_retired() issues a
/// membarrier after the state was set to revoked and waits for slots that hold the plan's id.
class BoundPlan {
 public:
  struct Options {
    CallSettings settings;
    bool for_capture = false;
  };
  static Result<std::unique_ptr<BoundPlan>> bind(OperatorSlot& slot, const CallSite& site,
                                                 const ArgValue* values, const Options& options);
  ~BoundPlan();
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  /// Checks that the plan accepts the arguments and may still run, then runs it. Null is ok.
  Status::Detail* call(const CallSite& site, const ArgValue* values) noexcept;
  /// call() for arguments in registers; `Words` is an ArgumentWords.
  template <class Words>
  Status::Detail* call(uint64_t site, const Words& words) noexcept {
    if (guarded_.site.word() != site || guard_outdated() || !words.same_layouts(guarded_))
        [[unlikely]] {
      return call_with_other_views(site, words);
    }
    return run_on(words);
  }
  /// Runs on the arguments that set_frame() stored, without checking them. Finds the thread's
  /// hazard slot and stores it in `hot` for the inline form in operator.hpp.
  Status::Detail* run_slowly() noexcept;
  /// Finishes a run whose outcome is not ok, or that was not started (-1) because the plan is
  /// revoked or watched. Clears the hazard slot.
  Status::Detail* end(int32_t outcome) noexcept { return end(slot_of(control_->hot), outcome); }
  detail::HotPlan& hot() const { return control_->hot; }
  /// Stores arguments in the frame for run_unchecked(). Fails as call() does.
  Status set_frame(const CallSite& site, const ArgValue* values);

  /// Binds a new plan for the example arguments under the current policy. This plan is unchanged.
  Result<std::unique_ptr<BoundPlan>> bound_again() const;

  /// Sets the stream of later runs, also of the plan that bound_again() returns.
  void set_stream(void* stream) noexcept {
    options_.settings.stream = stream;
    guarded_.call.stream = stream;
  }

  PlanState state() const { return control_->state(); }
  const BoundPlanState& control() const { return *control_; }
  uint64_t generation() const { return choice_->generation; }

 private:
  BoundPlan() = default;
  Status decide(const CallSite& site, const ArgValue* values);
  /// Fills in the plan with the first candidate that can be prepared.
  Status take_candidate(const DecisionForPlan& chosen, CacheInsert what);
  Next after_failed_preparation(const DecisionForPlan& chosen, const RankedCandidate& plan,
                                const Status& why, bool retried);
  Status prepare(const schema::Signature& signature, const RankedCandidate& plan);
  Status load_pack(const schema::Signature& signature, const RankedCandidate& plan);
  void run_with(const RankedCandidate& plan);
  void set_entry(const registry::RunEntry& entry);
  /// The run function until the plan has run once: `self` is the plan. Compares the states that a
  /// kernel must leave as it found them, and restores them.
  static int32_t run_first(void* self, const opmux_call* call);
  /// Whether pack_ is the packed copy of this constant for the arguments in the frame.
  bool follows(const PackedConstant& constant) const {
    return &constant == packed_ && constant.version() == packed_version_ &&
           (pack_ == nullptr || !pack_->has_options() ||
            pack_->fits(*control_->implementation, guarded_.call));
  }
  /// Switches to the packed copy of the constant. The frame must hold the arguments. False if that
  /// fails.
  bool follow_constant(const PackedConstant& constant) {
    return follows(constant) || follow_other_constant(constant);
  }
  bool follow_other_constant(const PackedConstant& constant);
  const PackedConstant& constant_in(const ArgValue* values) const {
    return PackedConstant::of(*values[guarded_.pack_index()].tensor);
  }
  /// Runs on arguments that the plan accepts.
  template <class Words>
  [[gnu::always_inline]] Status::Detail* run_on(const Words& words) noexcept {
    words.set(guarded_);
    if (guarded_.pack_at >= 0) {
      const auto& constant =
          PackedConstant::of(words.tensor(static_cast<int>(guarded_.pack_index())));
      if (!follows(constant)) [[unlikely]]
        return run_with_constant(constant);
    }
    return run();
  }
  [[gnu::noinline]] Status::Detail* run_with_constant(const PackedConstant& constant) noexcept;
  bool accepts(const CallSite& site, const ArgValue* values);
  bool guard_outdated() const { return control_->guard_outdated.load(std::memory_order_acquire); }
  /// Rebuilds the guard from the facts that decisions depend on now and the example's values.
  void renew_guard();
  void renew_guard_marked();
  /// Returns the error for arguments that the plan does not accept.
  Status::Detail* refuse(const CallSite& site, const ArgValue* values) const;
  Status::Detail* revoked() const;
  Status::Detail* not_packed() const;
  void note_outcome(const registry::ImplementationRecord& implementation,
                    ImplementationCounters& counters, Code outcome) const;
  void report_health(const registry::ImplementationRecord& implementation, Code outcome,
                     const health::Pass& pass) const;
  /// The hazard slot that HotPlan::mark points to. HotPlan holds its address as that of a plain
  /// word, because the public headers do not include <atomic>.
  static std::atomic<uint64_t>& slot_of(const detail::HotPlan& hot) {
    static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));
    return *reinterpret_cast<std::atomic<uint64_t>*>(hot.mark);
  }
  [[gnu::always_inline]] Status::Detail* run() noexcept {
    const detail::HotPlan& hot = control_->hot;
    if (hot.thread != thread_number || hot.marked()) [[unlikely]]
      return run_slowly();
    return run_marked(slot_of(hot));
  }
  Status::Detail* run_marked(std::atomic<uint64_t>& mark) noexcept {
    mark.store(guarded_.plan_id, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (control_->hot.load_state() >= detail::HotPlan::kRevoked) [[unlikely]]
      return end(mark, -1);
    error_.text_size = 0;
    const int32_t outcome = guarded_.run(guarded_.user_data, &guarded_.call);
    if (outcome != OPMUX_OK) [[unlikely]]
      return end(mark, outcome < 0 ? OPMUX_FAILED : outcome);
    mark.store(0, std::memory_order_release);
    control_->hot.count_call();
    return nullptr;
  }
  template <class Words>
  OPMUX_FIXED_STACK [[gnu::noinline]] Status::Detail* call_with_other_views(uint64_t site,
                                                                            const Words& words) {
    // The thread's first call takes the other path, which reports a lack of memory for its block.
    if (guarded_.site.word() != site || guard_outdated() || !words.same(guarded_) ||
        words.lacks_data() || thread_number == 0) {
      ArgValue values[4];
      words.unpack(values);
      return call(CallSite::from_word(site), values);
    }
    words.share_layouts(guarded_, *thread_block);
    return run_on(words);
  }
  Status::Detail* finish(int32_t outcome) const;
  void log_failure(std::string_view says) const;
  /// Runs the plan if it may run, as its state demands. Evaluates an outdated plan first.
  Status::Detail* run_by_state();
  /// Runs and reports the outcome and duration to the breaker.
  Status::Detail* run_watched();
  Status::Detail* end(std::atomic<uint64_t>& mark, int32_t outcome) noexcept;

  Options options_;
  OperatorSlot* slot_ = nullptr;
  std::shared_ptr<BoundPlanState> control_;
  PreparedPtr prepared_;
  PackPtr pack_;
  const PackedConstant* packed_ = nullptr;  ///< the constant that pack_ was made from
  uint64_t packed_version_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  WorkspaceBuffer workspace_;
  std::optional<ShapeChecks> checks_;
  ShapeGuards shape_guards_;
  CachedPlan guarded_;
  registry::RunEntry entry_;                          ///< the run function after the first run
  opmux_error error_{};                               ///< where the kernel reports errors
  std::shared_ptr<const Decision> choice_;            ///< kept alive across epochs
  std::shared_ptr<ImplementationCounters> counters_;  ///< of the bound implementation
  uint32_t untimed_ = 0;  ///< calls on a stream until the next one is timed
  std::shared_ptr<const CandidateTable> renewed_candidates_;
  RankedCandidate renewed_;  ///< the bound candidate, as an entry of renewed_candidates_
};

}  // namespace opmux::dispatch
