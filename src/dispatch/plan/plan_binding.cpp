// How a plan is bound: the decision for the example arguments, the candidate that can be prepared
// for them, and the plan's first run.
#include <algorithm>

#include "base/memory.hpp"
#include "base/system/thread_state.hpp"
#include "dispatch/plan/bound_plan.hpp"
#include "dispatch/plan/plan_workspace.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

Status transforms_not_bound(const registry::ImplementationRecord& implementation) {
  return {Code::unsupported, "plan.transforms",
          implementation.id +
              " accepts these arguments only after a transform, which a bound plan does not "
              "support; call the operator instead"};
}

}  // namespace

Result<std::unique_ptr<BoundPlan>> BoundPlan::bind(OperatorSlot& slot, const CallSite& site,
                                                   const ArgValue* values, const Options& options) {
  if (Status refused = refuse_opaque(*slot.schema); !refused.ok()) return refused;
  if (!options.for_capture) load_waiting_plugins(slot);
  std::unique_ptr<BoundPlan> plan(new BoundPlan);
  plan->slot_ = &slot;
  plan->options_ = options;
  plan->options_.settings = options.settings.with_threads_of(slot.engine->dependencies().threads);
  if (Status status = plan->decide(site, values); !status.ok()) return status;
  return plan;
}

Status BoundPlan::decide(const CallSite& site, const ArgValue* values) {
  const schema::Schema& schema = *slot_->schema;
  CheckedArguments checked;
  if (Status status = check(schema, site, values, checked); !status.ok()) return status;
  if (Status status = check_overlap(schema, checked.arguments); !status.ok()) return status;
  auto found = choose_for_plan(*slot_, checked, options_.settings.tag,
                               options_.settings.max_threads, options_.for_capture);
  if (!found) return found.error();
  if (found->choice->plans.empty()) return found->choice->nothing_left;

  control_ = std::make_shared<BoundPlanState>();
  control_->slot = slot_;
  control_->context = found->context;
  control_->tag = options_.settings.tag;
  control_->threads = options_.settings.max_threads;
  control_->keep(checked.arguments, checked.dims);
  // For any guard, because a later policy may add facts to it; see renew_guard().
  const PlanRoom room = PlanRoom::of(schema, site, checked.arguments, kMaxGuardFacts);
  memory_ = std::make_unique<std::byte[]>(room.bytes() + kErrorText);
  room.give_to(guarded_, memory_.get());
  guarded_.slot = slot_;
  error_ = {sizeof(opmux_error), OPMUX_OK, reinterpret_cast<char*>(memory_.get() + room.bytes()),
            kErrorText,          0,        {nullptr, 0}};
  checks_.emplace(schema, checked.arguments);
  CacheInsert what{0,       found->context, &site,   values, &checked.arguments, nullptr,
                   nullptr, nullptr,        nullptr, false,  options_.settings};
  if (Status status = take_candidate(*found, what); !status.ok()) {
    control_ = nullptr;
    return status;
  }
  choice_ = std::move(found->choice);
  slot_->engine->add_plan(control_);
  // Changes that were published before the engine knew the plan have not reached it.
  const bool changed = slot_->epoch.load(std::memory_order_acquire) != found->epoch;
  const CandidateParts& candidate = *guarded_.plan->candidate;
  if (changed || candidate.watch != nullptr || candidate.timer != nullptr) control_->reconsider();
  return {};
}

Status BoundPlan::take_candidate(const DecisionForPlan& chosen, CacheInsert what) {
  const schema::Schema& schema = *slot_->schema;
  const schema::Signature signature{&schema,          &control_->arguments,
                                    &control_->dims,  static_cast<uint32_t>(control_->context),
                                    control_->tag,    slot_->ranks,
                                    control_->threads};
  bool retried = false;
  Status last;
  const std::vector<RankedCandidate>& plans = chosen.choice->plans;
  for (size_t at = 0; at < plans.size();) {
    what.plan = &plans[at];
    if (plans[at].transforms.any()) {
      last = transforms_not_bound(*plans[at++].candidate->implementation);
      continue;
    }
    // A fallback is valid only for exactly these arguments, because an earlier candidate may accept
    // others.
    what.exact_only = at != 0;
    if (!can_be_kept(schema, what)) {
      return {Code::unsupported, "plan.arguments",
              "arguments of " + schema.name +
                  " that are strings, lists, or need a conversion cannot "
                  "be bound; call the operator instead"};
    }
    fill_plan(guarded_, schema, *checks_, shape_guards_, what, error_);
    const base::StateCheck before(base::kAllStates);
    last = prepare(signature, *what.plan);
    if (const uint32_t left = before.restore(); left != 0)
      note_left(*slot_, *what.plan->candidate->implementation, left);
    if (last.ok()) {
      run_with(*what.plan);
      return {};
    }
    const Next next = after_failed_preparation(chosen, *what.plan, last, retried);
    if (next == Next::give_up) break;
    retried = next == Next::retry;
    if (!retried) ++at;
  }
  return last;
}

void BoundPlan::run_with(const RankedCandidate& plan) {
  counters_ = plan.candidate->counters;
  guarded_.plan_id = plan.id | kBoundBit;
  control_->plan_id = guarded_.plan_id;
  control_->implementation = plan.candidate->implementation;
  control_->counts_for = plan.candidate->counters.get();
  control_->hot.plan_id = guarded_.plan_id;
  control_->hot.call = &guarded_.call;
  entry_ = {guarded_.run, guarded_.user_data};
  set_entry({run_first, this});
}

void BoundPlan::set_entry(const registry::RunEntry& entry) {
  guarded_.run = control_->hot.run = entry.run;
  guarded_.user_data = control_->hot.user_data = entry.user_data;
}

int32_t BoundPlan::run_first(void* self, const opmux_call* call) {
  BoundPlan& plan = *static_cast<BoundPlan*>(self);
  const registry::ImplementationRecord& implementation = *plan.control_->implementation;
  const base::StateCheck before(base::kAllStates);
  const int32_t outcome = plan.entry_.run(plan.entry_.user_data, call);
  const uint32_t left = before.restore();
  if (left != 0) {
    note_left(*plan.slot_, implementation, left);
    if (plan.entry_.run == implementation.entry.run) plan.entry_ = implementation.run_entry();
  }
  plan.set_entry(plan.entry_);
  return outcome;
}

Next BoundPlan::after_failed_preparation(const DecisionForPlan& chosen, const RankedCandidate& plan,
                                         const Status& why, bool retried) {
  const Code outcome = outcome_of(static_cast<int32_t>(why.code()));
  note_outcome(*plan.candidate->implementation, *plan.candidate->counters, outcome);
  const Next next = after(outcome, chosen.choice->strict, retried, *chosen.op,
                          *plan.candidate->implementation, control_->arguments);
  if (next == Next::retry) base::if_memory([&] { slot_->engine->trim(); });
  if (next != Next::next_candidate) return next;
  control_->passed_over.push_back(plan.candidate->implementation);
  log_fallback(*slot_, *plan.candidate->implementation, outcome, why.message());
  return next;
}

Status BoundPlan::prepare(const schema::Signature& signature, const RankedCandidate& plan) {
  const registry::Kernel& kernel = plan.candidate->implementation->kernel;
  const RunningCallGuard inside(*plan.candidate->implementation);
  plan.candidate->implementation->backend->mark_used();
  prepared_ = nullptr;
  if (Status status = load_pack(signature, plan); !status.ok()) return status;
  if (plan.candidate->prepared != nullptr &&
      plan.candidate->implementation->has(OPMUX_IMPL_SERIAL)) {
    auto own = plan.candidate->prepared->make_own(guarded_.call);
    if (!own) return own.error();
    prepared_ = *std::move(own);
    guarded_.call.prepared = prepared_->get();
  } else if (plan.candidate->prepared != nullptr) {
    auto found = plan.candidate->prepared->get(
        prepared_key(*plan.candidate->implementation, signature, guarded_.call), guarded_.call);
    if (!found) return found.error();
    prepared_ = *std::move(found);
    guarded_.call.prepared = prepared_->get();
  }
  if (kernel.workspace == nullptr || give_workspace(guarded_, &workspace_)) return {};
  return {Code::resource, "plan.workspace",
          "no memory for " + std::to_string(guarded_.call.workspace_size) + " bytes of workspace"};
}

Status BoundPlan::load_pack(const schema::Signature& signature, const RankedCandidate& plan) {
  pack_ = nullptr;
  packed_ = nullptr;
  if (guarded_.pack_at >= 0) {
    packed_ = &PackedConstant::of(*signature.arguments->values[guarded_.pack_index()].tensor);
    packed_version_ = packed_->version();
  }
  Status status = dispatch::load_pack(plan, signature, guarded_.call, pack_);
  if (pack_ != nullptr) guarded_.with_extras().pack_serial = pack_->serial();
  guarded_.with_pack = guarded_.call.instance != nullptr;
  return status;
}

}  // namespace opmux::dispatch
