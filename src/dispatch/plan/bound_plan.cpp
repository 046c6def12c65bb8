#include "dispatch/plan/bound_plan.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/memory.hpp"
#include "base/system/thread_state.hpp"
#include "dispatch/plan/plan_workspace.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;

/// True if the reason forbids the implementation to run, so that bound plans are revoked. Other
/// reasons only mean that a new decision would choose another implementation.
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

Status transforms_not_bound(const registry::ImplementationRecord& implementation) {
  return {Code::unsupported, "plan.transforms",
          implementation.id +
              " accepts these arguments only after a transform, which a bound plan does not "
              "support; call the operator instead"};
}

}  // namespace

/// The first accepted candidate of a decision that a bound plan can use. Skips candidates that need
/// transforms or could not be prepared for the example.
const registry::ImplementationRecord* BoundPlanState::chosen_by(const Evaluation& decision) const {
  for (const uint16_t index : decision.order) {
    if (decision.verdicts[index].transforms.any()) continue;
    const registry::ImplementationRecord* candidate = decision.verdicts[index].implementation;
    if (std::ranges::find(passed_over, candidate, &registry::ImplementationPtr::get) ==
        passed_over.end())
      return candidate;
  }
  return nullptr;
}

PlanState BoundPlanState::state_after(const Evaluation& decision) const {
  const registry::ImplementationRecord& bound = *implementation;
  if (bound.withdrawn.load(std::memory_order_acquire)) return PlanState::revoked;
  for (const CandidateVerdict& verdict : decision.verdicts) {
    if (verdict.implementation != &bound) continue;
    if (forbids(verdict.reason)) return PlanState::revoked;
    return chosen_by(decision) == &bound ? PlanState::current : PlanState::stale;
  }
  return PlanState::revoked;
}

void BoundPlanState::keep(const schema::Arguments& given, const schema::BoundDims& bound) {
  arguments = given;
  dims = bound;
  for (uint32_t i = 0; i < given.count; ++i) {
    if (given.tags[i] != ArgTag::tensor) continue;
    if ((given.constants >> i & 1) != 0) {
      constants.push_back(PackedConstant::of(*given.values[i].tensor).shared_from_this());
      continue;
    }
    tensors[i] = *given.values[i].tensor;
    arguments.values[i].tensor = &tensors[i];
  }
}

PlanState BoundPlanState::state() {
  // A plan that cannot be evaluated for lack of memory counts as stale.
  if (outdated()) base::if_memory([&] { reconsider(); });
  switch (const uint32_t word = hot.load_state()) {
    case detail::HotPlan::kWatched: return unwatched.load(std::memory_order_relaxed);
    case detail::HotPlan::kOutdated: return PlanState::stale;
    default: return static_cast<PlanState>(word);
  }
}

namespace {

/// Stores a state unless the plan is revoked, which is final.
void store_state(detail::HotPlan& hot, uint32_t word) {
  const std::atomic_ref<uint32_t> state_word(hot.state);
  uint32_t seen = state_word.load(std::memory_order_relaxed);
  while (seen != detail::HotPlan::kRevoked &&
         !state_word.compare_exchange_weak(seen, word, std::memory_order_acq_rel)) {
  }
}

}  // namespace

void BoundPlanState::outdate() {
  guard_outdated.store(true, std::memory_order_release);
  store_state(hot, detail::HotPlan::kOutdated);
}

void BoundPlanState::reconsider() {
  if (revoked()) return;
  const SlowPathGuard mark;
  if (mark.depth() == kMaxDepth) return;
  // If another thread publishes a state meanwhile, the result of the earlier one may overwrite its
  // outdate() or result, so that the new state must be evaluated as well.
  CompiledOperator* now = nullptr;
  do {
    now = slot->current.load(std::memory_order_acquire);
    reconsider_by(now);
  } while (slot->current.load(std::memory_order_acquire) != now);
}

void BoundPlanState::reconsider_by(CompiledOperator* now) {
  PlanState next = PlanState::revoked;
  uint32_t word = 0;
  if (now != nullptr) {
    const DecisionCache& space = space_of(*slot, *now, context);
    const schema::Signature signature{&now->schema(), &arguments, &dims,
                                      static_cast<uint32_t>(context), tag};
    Evaluation decision;
    decide(space.input(), signature, decision);
    next = state_after(decision);
    const health::HealthView* health = slot->engine->dependencies().health;
    const bool watched = health != nullptr && health->watch(*implementation) != nullptr;
    const health::Breaker* const limit =
        health == nullptr ? nullptr : health->timer(*implementation);
    armed.store(watched, std::memory_order_relaxed);
    timer.store(limit, std::memory_order_relaxed);
    if (watched || limit != nullptr) {
      unwatched.store(next, std::memory_order_relaxed);
      if (next != PlanState::revoked) word = detail::HotPlan::kWatched;
    }
    const uint64_t serial = now->serial();
    if (considered.exchange(serial, std::memory_order_acq_rel) != serial) {
      guard_outdated.store(true, std::memory_order_release);
    }
  }
  store_state(hot, word != 0 ? word : static_cast<uint32_t>(next));
}

Result<std::unique_ptr<BoundPlan>> BoundPlan::bind(OperatorSlot& slot, const CallSite& site,
                                                   const ArgValue* values, const Options& options) {
  if (!options.for_capture) load_waiting_plugins(slot);
  std::unique_ptr<BoundPlan> plan(new BoundPlan);
  plan->slot_ = &slot;
  plan->options_ = options;
  plan->options_.settings = options.settings.with_threads_of(slot.engine->dependencies().threads);
  if (Status status = plan->decide(site, values); !status.ok()) return status;
  return plan;
}

BoundPlan::~BoundPlan() {
  // Without counters the plan was not bound, because there was no memory for it.
  if (control_ == nullptr || counters_ == nullptr) return;
  const auto lock = ThreadList::instance().lock();
  control_->counts_for = nullptr;
  counters_->calls.fetch_add(control_->hot.load_calls(), std::memory_order_relaxed);
}

Status BoundPlan::decide(const CallSite& site, const ArgValue* values) {
  const schema::Schema& schema = *slot_->schema;
  CheckedArguments checked;
  if (Status status = check(schema, site, values, checked); !status.ok()) return status;
  if (Status status = check_overlap(schema, checked.arguments); !status.ok()) return status;
  auto found = choose_for_plan(*slot_, checked, options_.settings.tag, options_.for_capture);
  if (!found) return found.error();
  if (found->choice->plans.empty()) return found->choice->nothing_left;

  control_ = std::make_shared<BoundPlanState>();
  control_->slot = slot_;
  control_->context = found->context;
  control_->tag = options_.settings.tag;
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
  const schema::Signature signature{&schema, &control_->arguments, &control_->dims,
                                    static_cast<uint32_t>(control_->context), control_->tag};
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

bool BoundPlan::follow_constant(const ArgValue* values) {
  const auto& constant = PackedConstant::of(*values[guarded_.pack_index()].tensor);
  const uint64_t version = constant.version();
  if (&constant == packed_ && version == packed_version_ &&
      (pack_ == nullptr || pack_->fits(*control_->implementation, guarded_.call))) [[likely]]
    return true;
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
  const base::Clock& clock = *slot_->engine->dependencies().clock;
  const health::Breaker* const timer = control_->timer.load(std::memory_order_relaxed);
  const uint64_t started = timer == nullptr ? 0 : clock.now_ns();
  const int32_t outcome = guarded_.run(guarded_.user_data, &guarded_.call);
  if (outcome != OPMUX_OK) return finish(outcome);
  const uint64_t took_ns = timer == nullptr ? 0 : clock.now_ns() - started;
  const bool too_slow = timer != nullptr && took_ns > timer->slow_call_ns();
  if (too_slow || control_->armed.load(std::memory_order_relaxed)) {
    base::if_memory(
        [&] { report_health(*control_->implementation, Code::ok, {.took_ns = took_ns}); });
  }
  control_->hot.count_call();
  return nullptr;
}

void BoundPlan::log_failure(std::string_view says) const {
  if (slot_->engine->dependencies().failures == nullptr) return;
  // Use the arguments of this call; the example's tensors may be freed.
  std::array<ArgValue, OPMUX_MAX_ARGS> values;
  guarded_.get_arguments(values.data());
  CheckedArguments checked;
  if (!check(*slot_->schema, guarded_.frame_site(), values.data(), checked).ok()) return;
  const schema::Signature signature{slot_->schema.get(), &checked.arguments, &checked.dims,
                                    static_cast<uint32_t>(control_->context), control_->tag};
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
    if (guarded_.pack_at >= 0 && !follow_constant(values)) [[unlikely]]
      return not_packed();
    return run();
  });
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
  if (guarded_.pack_at >= 0 && !follow_constant(values)) return Status(not_packed());
  return {};
}

Result<std::unique_ptr<BoundPlan>> BoundPlan::bound_again() const {
  return bind(*slot_, guarded_.site, control_->arguments.values.data(), options_);
}

}  // namespace opmux::dispatch
