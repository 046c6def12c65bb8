#include "dispatch/plan/bound_plan.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/memory.hpp"
#include "dispatch/plan/call_timer.hpp"
#include "dispatch/plan/timed_run.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {

BoundPlan::~BoundPlan() {
  // Without counters the plan was not bound, because there was no memory for it.
  if (control_ == nullptr || counters_ == nullptr) return;
  const auto lock = ThreadList::instance().lock();
  control_->counts_for = nullptr;
  counters_->calls.fetch_add(control_->hot.load_calls(), std::memory_order_relaxed);
}

bool BoundPlan::follow_other_constant(const PackedConstant& constant) {
  const uint64_t version = constant.version();
  auto found = constant.pack_for(*guarded_.plan, guarded_.call, guarded_.pack_index());
  if (!found || *found == nullptr) return false;
  if (((*found)->instance() != nullptr) != guarded_.with_pack) return false;
  guarded_.call.instance = (*found)->instance();
  guarded_.with_extras().pack_serial = (*found)->serial();
  pack_ = *std::move(found);
  packed_ = &constant;
  packed_version_ = version;
  return true;
}

Status::Detail* BoundPlan::revoked() const {
  return new Status::Detail{Code::revoked, "plan.revoked",
                            control_->implementation->id +
                                " may not run any more: denied, withdrawn or its device is lost; "
                                "refresh the plan"};
}

Status::Detail* BoundPlan::not_packed() const {
  return new Status::Detail{Code::outside_plan, "plan.constant",
                            control_->implementation->id +
                                ": this constant has no packed copy and the plan was bound with "
                                "one, or the reverse; bind again"};
}

Status::Detail* BoundPlan::refuse(const CallSite& site, const ArgValue* values) const {
  if (control_->state() == PlanState::revoked) return revoked();
  CheckedArguments checked;
  if (Status status = check(*slot_->schema, site, values, checked); !status.ok()) {
    return status.release();
  }
  if (Status status = check_data(*slot_->schema, checked.arguments); !status.ok()) {
    return status.release();
  }
  return new Status::Detail{Code::outside_plan, "plan.outside",
                            "these arguments of " + slot_->name() + " do not fit the plan for " +
                                control_->implementation->id + "; bind again or call the operator"};
}

void BoundPlan::note_outcome(const registry::ImplementationRecord& implementation,
                             ImplementationCounters& counters, Code outcome) const {
  count(counters, outcome);
  base::if_memory([&] { report_health(implementation, outcome, {}); });
}

void BoundPlan::report_health(const registry::ImplementationRecord& implementation, Code outcome,
                              const health::Pass& pass) const {
  const bool changed = slot_->engine->dependencies().health->on_outcome(
      implementation, control_->signature(), outcome, pass);
  if (changed) slot_->engine->health_changed(implementation);
}

Status::Detail* BoundPlan::run_watched() {
  error_.text_size = 0;
  const registry::Backend& backend = *control_->implementation->backend;
  const health::Breaker* const timer = control_->timer.load(std::memory_order_relaxed);
  const bool waits = backend.history() != nullptr;  // a timed call waits for the device
  const bool armed = control_->armed.load(std::memory_order_relaxed);
  std::optional<CallTimer> measured;
  if (timer != nullptr && may_be_timed(*control_->implementation, control_->context)) {
    if (!waits || armed || untimed_ == 0) {
      measured.emplace(backend, *slot_->engine->dependencies().clock,
                       Device{guarded_.call.device.type, guarded_.call.device.id},
                       guarded_.call.stream);
      untimed_ = kUntimedCalls;
    } else {
      --untimed_;
    }
  }
  const int32_t outcome = guarded_.run(guarded_.user_data, &guarded_.call);
  if (outcome != OPMUX_OK) return finish(outcome);
  const uint64_t took_ns = measured ? measured->stop() : 0;
  const bool too_slow = timer != nullptr && took_ns > timer->slow_call_ns();
  if (too_slow || armed) {
    base::if_memory(
        [&] { report_health(*control_->implementation, Code::ok, {.took_ns = took_ns}); });
  }
  control_->hot.count_call();
  return nullptr;
}

void BoundPlan::log_failure(std::string_view says) const {
  if (slot_->engine->dependencies().failures == nullptr) return;
  // Use the arguments of this call; the example's tensors may be freed.
  std::array<ArgValue, schema::kMaxValues> values;
  guarded_.get_arguments(values.data());
  CheckedArguments checked;
  if (!check(*slot_->schema, guarded_.frame_site(), values.data(), checked).ok()) return;
  const schema::Signature signature{slot_->schema.get(), &checked.arguments,
                                    &checked.dims,       static_cast<uint32_t>(control_->context),
                                    control_->tag,       slot_->ranks,
                                    control_->threads};
  slot_->engine->dependencies().failures->note(
      {*control_->implementation, signature, guarded_.call.max_threads, says});
}

Status::Detail* BoundPlan::finish(int32_t outcome) const {
  const Code code = outcome_of(outcome);
  const std::string_view says(error_.text, std::min(error_.text_size, error_.text_capacity));
  if (code == Code::failed) base::if_memory([&] { log_failure(says); });
  note_outcome(*control_->implementation, *counters_, code);
  const std::string text(says);
  return new Status::Detail{code, "call." + std::string(opmux::name_of(code)),
                            control_->implementation->id + " " + std::string(opmux::name_of(code)) +
                                (text.empty() ? "" : ": " + text)};
}

Status::Detail* BoundPlan::run_by_state() {
  if (control_->outdated()) control_->reconsider();
  const uint32_t state = control_->hot.load_state();
  if (state == detail::HotPlan::kRevoked) return revoked();
  if (state == detail::HotPlan::kWatched) return run_watched();
  error_.text_size = 0;
  const int32_t outcome = guarded_.run(guarded_.user_data, &guarded_.call);
  if (outcome != OPMUX_OK) return finish(outcome);
  control_->hot.count_call();
  return nullptr;
}

Status::Detail* BoundPlan::end(std::atomic<uint64_t>& mark, int32_t outcome) noexcept {
  Status::Detail* const status =
      base::or_out_of_memory([&] { return outcome >= 0 ? finish(outcome) : run_by_state(); });
  mark.store(0, std::memory_order_release);
  return status;
}

Status::Detail* BoundPlan::run_slowly() noexcept {
  return base::or_out_of_memory([&] {
    ThreadBlock& block = own_thread_block();
    const uint32_t depth = block.depth();
    if (depth == kMaxDepth) return too_deep(*slot_).release();
    control_->hot.thread = block.number;
    control_->hot.mark = reinterpret_cast<uint64_t*>(&block.marks[0]);
    return run_marked(block.marks[depth]);
  });
}

Status::Detail* BoundPlan::call(const CallSite& site, const ArgValue* values) noexcept {
  return base::or_out_of_memory([&] {
    if (!accepts(site, values)) [[unlikely]]
      return refuse(site, values);
    guarded_.set_arguments(values);
    if (guarded_.pack_at >= 0 && !follow_constant(constant_in(values))) [[unlikely]]
      return not_packed();
    return run();
  });
}

Status::Detail* BoundPlan::run_with_constant(const PackedConstant& constant) noexcept {
  return base::or_out_of_memory(
      [&] { return follow_other_constant(constant) ? run() : not_packed(); });
}

void BoundPlan::renew_guard() {
  const SlowPathGuard mark;
  if (mark.depth() == kMaxDepth) return;
  control_->guard_outdated.store(false, std::memory_order_release);
  try {
    renew_guard_marked();
  } catch (const std::bad_alloc&) {
    control_->guard_outdated.store(true, std::memory_order_release);
    throw;
  }
}

void BoundPlan::renew_guard_marked() {
  CompiledOperator* state = slot_->current.load(std::memory_order_acquire);
  if (state == nullptr) return;
  const auto& all = state->sources().op->implementations;
  const auto at = std::find(all.begin(), all.end(), control_->implementation);
  if (at == all.end()) return;  // withdrawn, so the plan is revoked
  renewed_candidates_ = space_of(*slot_, *state, control_->context).candidates();
  renewed_ = {guarded_.plan->id, &(*renewed_candidates_)[static_cast<size_t>(at - all.begin())]};
  const GuardFacts& guard = renewed_.candidate->guard;
  const ArgValue* example = control_->arguments.values.data();
  guarded_.plan = &renewed_;
  guarded_.exact_only |= guard.exact_only || guard.too_many;
  guarded_.value_guarded |= !guard.value.empty();
  guarded_.choose_comparison();
  guarded_.shapes = &kNoOtherShapes;
  guarded_.forget_layouts();
  guarded_.remember(example);
  if (guard.too_many) {
    // Too many facts to store. No tensor has this device, so the plan accepts no call any more.
    guarded_.exact[0] = ~uint64_t{0};
  } else {
    guarded_.keep_guard_values(example);
  }
}

bool BoundPlan::accepts(const CallSite& site, const ArgValue* values) {
  if (guard_outdated()) [[unlikely]]
    renew_guard();
  if (!(site == guarded_.site)) [[unlikely]]
    return false;
  if (guarded_.lacks_data(values)) [[unlikely]]
    return false;
  const bool same =
      guarded_.same_tensors(values) && (!guarded_.value_guarded || guarded_.same_values(values));
  if (same) [[likely]]
    return true;
  if (guarded_.fit(values) != CachedPlan::Fit::same_class) return false;
  guarded_.remember(values);
  return true;
}

Status BoundPlan::set_frame(const CallSite& site, const ArgValue* values) {
  if (!accepts(site, values)) return Status(refuse(site, values));
  guarded_.set_arguments(values);
  error_.text_size = 0;
  if (guarded_.pack_at >= 0 && !follow_constant(constant_in(values))) return Status(not_packed());
  return {};
}

Result<std::unique_ptr<BoundPlan>> BoundPlan::bound_again() const {
  return bind(*slot_, guarded_.site, control_->arguments.values.data(), options_);
}

}  // namespace opmux::dispatch
