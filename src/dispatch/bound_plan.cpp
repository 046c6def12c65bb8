#include "dispatch/bound_plan.hpp"

#include <algorithm>

#include <mutex>

#include "dispatch/attempt.hpp"
#include "dispatch/cold_mark.hpp"
#include "dispatch/install.hpp"
#include "dispatch/slow_call.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;

/// Whether a verdict means that the implementation must not run any more, rather than that another
/// one would be chosen.
bool forbids(Reason reason) {
  switch (reason) {
    case Reason::policy_denied:
    case Reason::policy_vendor_denied:
    case Reason::policy_vendor_not_allowed:
    case Reason::policy_not_allowed:
    case Reason::policy_outside_require:
    case Reason::policy_outside_order:
    case Reason::health_device_fatal:
    case Reason::health_quarantined:
    case Reason::backend_disabled:
    case Reason::backend_forked:
    case Reason::registry_withdrawn: return true;
    default: return false;
  }
}

PlanState state_after(const Decision& decision, const registry::ImplementationRecord& bound) {
  if (bound.withdrawn.load(std::memory_order_acquire)) return PlanState::revoked;
  for (size_t i = 0; i < decision.verdicts.size(); ++i) {
    const Verdict& verdict = decision.verdicts[i];
    if (verdict.implementation != &bound) continue;
    if (forbids(verdict.reason)) return PlanState::revoked;
    const bool chosen = !decision.order.empty() && decision.order[0] == i;
    return chosen ? PlanState::current : PlanState::stale;
  }
  return PlanState::revoked;
}

}  // namespace

void PlanControl::keep(const registry::Arguments& given, const registry::BoundDims& bound) {
  arguments = given;
  dims = bound;
  for (uint32_t i = 0; i < given.count; ++i) {
    if (given.tags[i] != ArgTag::tensor) continue;
    tensors[i] = *given.values[i].tensor;
    arguments.values[i].tensor = &tensors[i];
  }
}

void PlanControl::reconsider() {
  if (state() == PlanState::revoked) return;
  const ColdMark mark;
  if (mark.depth() == kMaxDepth) return;
  OperatorState* now = slot->current.load(std::memory_order_acquire);
  PlanState next = PlanState::revoked;
  if (now != nullptr) {
    const DecisionSpace& space = space_of(*slot, *now, context);
    const registry::Signature signature{&now->schema(), &arguments, &dims,
                                        static_cast<uint32_t>(context), tag};
    Decision decision;
    decide(space.input(), signature, decision);
    next = state_after(decision, *implementation);
    const uint64_t serial = now->serial();
    if (considered.exchange(serial, std::memory_order_acq_rel) != serial) {
      guard_outdated.store(true, std::memory_order_release);
    }
  }
  // Revoked is final, also when another thread found it meanwhile.
  uint32_t seen = hot.state.load(std::memory_order_relaxed);
  while (seen != static_cast<uint32_t>(PlanState::revoked) &&
         !hot.state.compare_exchange_weak(seen, static_cast<uint32_t>(next),
                                          std::memory_order_acq_rel)) {
  }
}

Result<std::unique_ptr<BoundPlan>> BoundPlan::bind(OperatorSlot& slot, const CallSite& site,
                                                   const ArgValue* values, const Options& options) {
  std::unique_ptr<BoundPlan> plan(new BoundPlan);
  plan->slot_ = &slot;
  plan->options_ = options;
  if (Status status = plan->decide(site, values); !status.ok()) return status;
  return plan;
}

BoundPlan::~BoundPlan() {
  if (control_ == nullptr) return;
  const std::lock_guard lock(control_->counting);
  control_->counts_for = nullptr;
  guarded_.counters->calls.fetch_add(control_->hot.calls.load(std::memory_order_relaxed),
                                     std::memory_order_relaxed);
}

Status BoundPlan::decide(const CallSite& site, const ArgValue* values) {
  const registry::Schema& schema = *slot_->schema;
  CheckedArguments checked;
  if (Status status = check(schema, site, values, checked); !status.ok()) return status;
  if (Status status = check_overlap(schema, checked.arguments); !status.ok()) return status;
  auto found = choose_for_plan(*slot_, checked, options_.settings.tag, options_.for_capture);
  if (!found) return found.error();
  std::shared_ptr<const Choice> choice = std::move(found->choice);
  if (choice->plans.empty()) return choice->nothing_left;
  const PlanRecord& first = choice->plans.front();

  auto control = std::make_shared<PlanControl>();
  control->slot = slot_;
  control->context = found->context;
  control->plan_id = first.id;
  control->implementation = first.implementation;
  control->tag = options_.settings.tag;
  control->keep(checked.arguments, checked.dims);

  const registry::Signature signature{&schema, &control->arguments, &control->dims,
                                      static_cast<uint32_t>(found->context), control->tag};
  Installation what{0,      found->context, &site,   values, &checked.arguments,
                    &first, nullptr,        nullptr, false,  options_.settings};
  if (!can_be_kept(schema, what)) {
    return {Code::unsupported, "plan.arguments",
            "arguments of " + schema.name +
                " that are strings, lists, or need a conversion cannot "
                "be bound; call the operator instead"};
  }
  if (auto room = make_room(guarded_, schema)) memory_ = std::move(room);
  checks_.emplace(schema, checked.arguments);
  fill_plan(guarded_, schema, *checks_, what);
  if (Status status = prepare(signature, first); !status.ok()) return status;
  guarded_.pinned = std::move(choice);
  guarded_.slot = slot_;
  guarded_.counters = first.counters;
  control->counts_for = first.counters.get();
  control->hot.plan_id = guarded_.plan_id;
  control->hot.run = guarded_.run;
  control->hot.user_data = guarded_.user_data;
  control->hot.call = &guarded_.call;
  control_ = std::move(control);
  slot_->engine->add_plan(control_);
  return {};
}

Status BoundPlan::prepare(const registry::Signature& signature, const PlanRecord& plan) {
  const registry::Kernel& kernel = plan.implementation->kernel;
  plan.implementation->backend->mark_used();
  if (plan.prepared != nullptr && plan.implementation->has(OPMUX_IMPL_SERIAL)) {
    auto own = plan.prepared->make_own(guarded_.call);
    if (!own) return own.error();
    prepared_ = *std::move(own);
    guarded_.call.prepared = prepared_->get();
  } else if (plan.prepared != nullptr) {
    auto found = plan.prepared->get(prepared_key(*plan.implementation, signature, guarded_.call),
                                    guarded_.call);
    if (!found) return found.error();
    slot_->engine->retire_prepared(*slot_, std::move(found->evicted));
    prepared_ = std::move(found->state);
    guarded_.call.prepared = prepared_->get();
  }
  if (kernel.workspace == nullptr) return {};
  guarded_.call.workspace_size = kernel.workspace(kernel.user_data, &guarded_.call);
  guarded_.call.workspace = workspace_for(guarded_.call.workspace_size, true, workspace_);
  guarded_.hold_exactly();
  if (guarded_.call.workspace != nullptr || guarded_.call.workspace_size == 0) return {};
  return {Code::resource, "plan.workspace",
          "no memory for " + std::to_string(guarded_.call.workspace_size) + " bytes of workspace"};
}

Status::Detail* BoundPlan::revoked() const {
  return new Status::Detail{Code::revoked, "plan.revoked",
                            control_->implementation->id +
                                " may not run any more: denied, withdrawn or its device is lost; "
                                "refresh the plan"};
}

Status::Detail* BoundPlan::refuse(const CallSite& site, const ArgValue* values) const {
  if (state() == PlanState::revoked) return revoked();
  CheckedArguments checked;
  if (Status status = check(*slot_->schema, site, values, checked); !status.ok()) {
    return status.release();
  }
  return new Status::Detail{Code::outside_plan, "plan.outside",
                            "these arguments of " + slot_->name() + " do not fit the plan for " +
                                control_->implementation->id + "; bind again or call the operator"};
}

Status::Detail* BoundPlan::finish(int32_t outcome) const {
  const Code code = outcome_of(outcome);
  count(*guarded_.counters, code);
  const bool changed = slot_->engine->parts().health->on_outcome(
      *control_->implementation, device_of(control_->arguments), code);
  if (changed) slot_->engine->health_changed(*control_->implementation);
  std::string text(guarded_.error.text,
                   std::min(guarded_.error.text_size, guarded_.error.text_capacity));
  return new Status::Detail{code, "call." + std::string(opmux::name_of(code)),
                            control_->implementation->id + " " + std::string(opmux::name_of(code)) +
                                (text.empty() ? "" : ": " + text)};
}

Status::Detail* BoundPlan::end(std::atomic<uint64_t>& mark, int32_t outcome) noexcept {
  Status::Detail* status = outcome < 0 ? revoked() : finish(outcome);
  mark.store(0, std::memory_order_release);
  return status;
}

Status::Detail* BoundPlan::run_slowly() noexcept {
  ThreadBlock& block = own_thread_block();
  const uint32_t depth = block.depth();
  if (depth == kMaxDepth) return too_deep(*slot_).release();
  control_->hot.block = &block;
  control_->hot.mark = &block.marks[0];
  return run_marked(block.marks[depth]);
}

Status::Detail* BoundPlan::call(const CallSite& site, const ArgValue* values) noexcept {
  if (!accepts(site, values)) [[unlikely]]
    return refuse(site, values);
  guarded_.set_arguments(values);
  return run();
}

void BoundPlan::renew_guard() {
  const ColdMark mark;
  if (mark.depth() == kMaxDepth) return;
  control_->guard_outdated.store(false, std::memory_order_release);
  OperatorState* state = slot_->current.load(std::memory_order_acquire);
  if (state == nullptr) return;
  const auto& all = state->sources().op->implementations;
  const auto at = std::find(all.begin(), all.end(), control_->implementation);
  if (at == all.end()) return;  // withdrawn, and revoked for that
  renewed_guards_ = space_of(*slot_, *state, control_->context).guards();
  renewed_ = *guarded_.plan;
  renewed_.guard = &(*renewed_guards_)[static_cast<size_t>(at - all.begin())];
  const ArgValue* example = control_->arguments.values.data();
  guarded_.plan = &renewed_;
  guarded_.exact_only |= renewed_.guard->exact_only || renewed_.guard->too_many;
  guarded_.value_guarded |= !renewed_.guard->value.empty();
  guarded_.choose_comparison();
  guarded_.program = {};
  guarded_.free = {};
  *guarded_.met = {};
  guarded_.remember(example);
  if (renewed_.guard->too_many) {
    // More facts than can be kept: no tensor has this device, so nothing fits any more.
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
  const bool same =
      guarded_.same_tensors(values) && (!guarded_.value_guarded || guarded_.same_values(values));
  if (same) [[likely]]
    return true;
  if (guarded_.fit(values) != GuardedPlan::Fit::same_class) return false;
  guarded_.remember(values);
  return true;
}

Status BoundPlan::set_frame(const CallSite& site, const ArgValue* values) {
  if (!accepts(site, values)) return Status(refuse(site, values));
  guarded_.set_arguments(values);
  return {};
}

Result<std::unique_ptr<BoundPlan>> BoundPlan::decided_anew() const {
  return bind(*slot_, guarded_.site, control_->arguments.values.data(), options_);
}

}  // namespace opmux::dispatch
