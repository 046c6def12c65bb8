#include "trial.hpp"

#include <algorithm>
#include <utility>

#include "file_text.hpp"
#include "policy/files/policy_reader.hpp"
#include "ruling.hpp"

namespace opmux::property {
namespace {

constexpr size_t kMostCalls = 6, kMostPlans = 2, kMostScopes = 3;

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + word;
  return text.empty() ? " nothing" : text;
}

/// Tensors so large that they overlap the next tensor's memory, which bind checks and calls do not.
bool has_huge_tensor(const Call& call) {
  return std::any_of(call.given.begin(), call.given.end(), [](const Value& value) {
    return value.tensor.present() && value.tensor.elements() > int64_t{1} << 32;
  });
}

/// Whether the plan's implementation is refused for a reason that revokes bound plans.
bool forbidden(const Expected& expected, const std::string& id) {
  const auto at = expected.refused.find(id);
  if (at == expected.refused.end()) return false;
  return at->second.starts_with("policy.") || at->second == "backend.disabled";
}

}  // namespace

Trial::Trial(uint64_t seed) : draw_(seed), world_(draw_.world()), subject_(world_) {
  const Policy code = world_.code;
  world_.code = {};
  if (subject_.set_policy(code).ok()) world_.code = code;
}

void Trial::disagree(const std::string& what) {
  if (!disagreement_.empty()) return;
  disagreement_ = what + "\n" + text_of(world_);
  if (current_ != nullptr) disagreement_ += "\n" + text_of(*current_);
}

/// The policy after a round trip through a policy file.
Policy Trial::through_text(const Policy& policy) {
  const std::string text = file_text(policy, world_.schema, draw_.chance(30));
  auto read = policy::parse_policy(text, "drawn.yaml");
  if (!read) {
    disagree("a text was refused: " + read.error().to_string() + "\n" + text);
    return {};
  }
  for (size_t i = 0; i < policy.rules.size(); ++i) read->rules[i].expired = policy.rules[i].expired;
  return std::move(*read);
}

bool Trial::change_policy() {
  Policy next = draw_.chance(20) ? Policy() : draw_.policy(world_);
  const bool text = draw_.chance(50);
  if (text) next = file_part(next, world_.schema);
  next = draw_.chance(80) ? without_vain_rules(next, world_.schema)
                          : without_vain_general_rules(next, world_.schema);
  const Status status = subject_.set_policy(text ? through_text(next) : next);
  // The registry has other operators too; the message names the first one that has no candidate
  // left.
  const bool ours =
      status.to_string().find("leave " + world_.schema.name + " ") != std::string::npos;
  if (status.reason() == "policy.no_candidates" && ours && !leaves_nothing(world_, next))
    disagree("a policy was refused that leaves something: " + status.to_string() + text_of(next));
  if (asks_in_vain(next, world_.schema) != (status.reason() == "policy.when"))
    disagree("a rule that asks in vain and its refusal: " + status.to_string() + text_of(next));
  if (status.reason() == "policy.when") return false;
  if (!status.ok() && status.reason() != "policy.no_candidates")
    disagree("policy refused: " + status.to_string());
  // If changes of the registry left no candidate before, a policy that says the same about the
  // operator is still accepted.
  const bool says_more = said_of(next, world_.schema) != said_of(world_.code, world_.schema);
  if (status.ok() && says_more && leaves_nothing(world_, next))
    disagree("a policy was taken that leaves nothing:" + text_of(next));
  if (status.ok()) world_.code = next;
  return status.ok() && says_more;
}

void Trial::change_scope() {
  if (!scopes_.empty() && (scopes_.size() == kMostScopes || draw_.chance(50))) {
    scopes_.pop_back();
    subject_.pop_scope();
    return;
  }
  scopes_.push_back(!scopes_.empty() && draw_.chance(15)
                        ? scopes_.front()
                        : without_vain_rules(draw_.policy(world_), world_.schema));
  subject_.push_scope(scopes_.back());
}

bool Trial::change_registry() {
  if (draw_.chance(50)) {
    Backend& backend = world_.backends[draw_.below(world_.backends.size())];
    backend.enabled = !backend.enabled;
    subject_.enable(backend);
    return false;
  }
  const size_t at = draw_.below(world_.candidates.size());
  Candidate& candidate = world_.candidates[at];
  candidate.registered = !candidate.registered;
  subject_.put(world_, at);
  if (candidate.registered) return true;
  for (Bound& bound : bound_) {
    bound.revoked = bound.revoked || bound.plan->control().implementation->id == candidate.id;
  }
  return true;
}

void Trial::change_something() {
  switch (draw_.below(40)) {
    case 0:
    case 1: return after_change(change_policy());
    case 2:
    case 3:
    case 4:
    case 5: change_scope(); return;
    case 6: return after_change(change_registry());
    case 7: ambient_ = draw_.ambient(); return;
    case 8: ambient_ = {}; return;
    default: return;
  }
}

/// A revoked plan stays revoked, even if the reason disappears.
void Trial::after_change(bool evaluated) {
  for (Bound& bound : bound_) {
    const Expected now = choose(world_, bound.call);
    if (!forbidden(now, bound.plan->control().implementation->id)) continue;
    (evaluated ? bound.revoked : bound.may_be_revoked) = true;
  }
}

Call Trial::next_call() {
  if (calls_.size() < kMostCalls && (calls_.empty() || draw_.chance(20))) {
    calls_.push_back(draw_.call(world_));
    as_drawn_ = false;
    return calls_.back();
  }
  drawn_ = draw_.below(calls_.size());
  Call& known = calls_[drawn_];
  if (draw_.chance(5)) known = draw_.call(world_);
  Call next = known;
  as_drawn_ = !draw_.chance(55);
  if (!as_drawn_) draw_.change(world_, next);
  if (draw_.chance(10)) known = next;
  return next;
}

void Trial::compare_explanation(const Call& call, const Expected& expected) {
  const Explanation found = subject_.explain(call);
  if (!expected.valid) {
    if (!found.candidates.empty()) disagree("explain has candidates for wrong arguments");
    return;
  }
  if (found.candidates.size() != expected.scores.size())
    disagree("explain knows other candidates; its note: " + found.note);
  std::vector<std::string> order;
  std::map<std::string, std::string> refused;
  for (const opmux::Candidate& candidate : found.candidates) {
    if (candidate.accepted()) order.push_back(candidate.id);
    if (!candidate.accepted()) refused[candidate.id] = candidate.code;
    const auto score = expected.scores.find(candidate.id);
    if (score == expected.scores.end() || score->second != candidate.score)
      disagree("explain has another score for " + candidate.id + ": " +
               std::to_string(candidate.score));
  }
  if (order != expected.order)
    disagree("explain orders" + listed(order) + "; the model" + listed(expected.order));
  for (const auto& [id, code] : expected.refused) {
    if (refused[id] != code)
      disagree("explain refuses " + id + " for '" + refused[id] + "'; the model for " + code);
  }
  if (found.chosen != expected.chosen()) disagree("explain chooses " + found.chosen);
  if (found.strict != expected.strict) disagree("explain and model differ about strict");
}

void Trial::compare_call(const char* how, const Subject::Outcome& outcome,
                         const Expected& expected) {
  const Code code = !expected.valid                             ? Code::invalid_argument
                    : expected.empty || !expected.order.empty() ? Code::ok
                                                                : Code::no_candidate;
  const bool runs = code == Code::ok && !expected.empty;
  const std::vector<std::string> ran =
      runs ? std::vector{expected.chosen()} : std::vector<std::string>();
  if (outcome.status.code() != code)
    disagree(std::string(how) + " returned " + outcome.status.to_string() + "; the model says " +
             std::string(name_of(code)));
  if (outcome.ran != ran)
    disagree(std::string(how) + " ran" + listed(outcome.ran) + "; the model" + listed(ran));
  if (Subject::wrongly_prepared != 0) disagree(std::string(how) + " used a wrong prepared state");
}

void Trial::compare_tagged(Call call) {
  call.tag = static_cast<uint32_t>(draw_.below(3));
  current_ = &call;
  const Expected expected = choose(world_, call);
  std::string reported;
  const Subject::Outcome outcome = subject_.call_with(call, reported);
  compare_call("a call with options", outcome, expected);
  if (!outcome.ran.empty() && reported != outcome.ran.back())
    disagree("the report names " + reported);
}

void Trial::bind(const Call& call, const Expected& expected) {
  if (has_huge_tensor(call)) return;
  auto plan = subject_.bind(call);
  if (!plan) {
    const Code code = plan.error().code();
    const bool right = !expected.valid          ? code == Code::invalid_argument
                       : expected.order.empty() ? code == Code::no_candidate
                                                : code == Code::unsupported;
    if (!right) disagree("bind returned " + plan.error().to_string());
    return;
  }
  const std::string& id = (*plan)->control().implementation->id;
  if (!expected.valid || id != expected.chosen()) disagree("bind chose " + id);
  if (bound_.size() == kMostPlans) bound_.erase(bound_.begin());
  bound_.push_back({std::move(*plan), call});
}

void Trial::compare_state(Bound& bound) {
  const Expected now = choose(world_, bound.call);
  const std::string& id = bound.plan->control().implementation->id;
  if (std::exchange(bound.may_be_revoked, false) && !bound.revoked) {
    bound.revoked = forbidden(now, id) || bound.plan->state() == dispatch::PlanState::revoked;
  }
  const auto state = bound.revoked        ? dispatch::PlanState::revoked
                     : now.chosen() == id ? dispatch::PlanState::current
                                          : dispatch::PlanState::stale;
  if (bound.plan->state() != state)
    disagree("the plan for " + id + " has state " +
             std::to_string(static_cast<int>(bound.plan->state())) + "; the model " +
             std::to_string(static_cast<int>(state)) + "; bound with\n" + text_of(bound.call));
}

void Trial::compare_plan(Bound& bound, const Call& call) {
  compare_state(bound);
  const std::string id = bound.plan->control().implementation->id;
  const Subject::Outcome outcome = subject_.call_plan(*bound.plan, call);
  const Code code = outcome.status.code();
  const bool ran = !outcome.ran.empty();
  if (ran && (outcome.ran != std::vector{id} || bound.revoked)) disagree("a plan ran another");
  if ((code == Code::ok) != ran) disagree("a plan's status and what it did differ");
  if (bound.revoked) {
    if (code != Code::revoked) disagree("a revoked plan returned " + outcome.status.to_string());
    return;
  }
  // The plan represents the decision at the place where it was bound.
  Call there = bound.call;
  there.given = call.given;
  const Expected expected = choose(world_, there);
  if (!expected.valid && code != Code::invalid_argument)
    disagree("a plan took wrong arguments: " + outcome.status.to_string());
  if (expected.valid && code != Code::ok && code != Code::outside_plan)
    disagree("a plan returned " + outcome.status.to_string());
  const bool current = bound.plan->state() == dispatch::PlanState::current;
  if (ran && ((current && expected.chosen() != id) || forbidden(expected, id)))
    disagree("a plan for " + id + " ran where the decision is " + expected.chosen() +
             "; bound with\n" + text_of(bound.call));
}

void Trial::compare_plans(const Call& call) {
  for (Bound& bound : bound_) {
    // With the arguments it was bound with it must run, unless its outputs are empty.
    const Call& given = draw_.chance(30) ? bound.call : call;
    compare_plan(bound, given);
  }
}

std::string Trial::draw() {
  change_something();
  Call call = next_call();
  call.ambient = ambient_;
  call.scopes = scopes_;
  current_ = &call;
  const Expected expected = choose(world_, call);
  if (draw_.chance(30)) compare_explanation(call, expected);
  compare_call("the handle", subject_.call(call), expected);
  if (draw_.chance(20)) compare_call("the handle again", subject_.call(call), expected);
  // The same views are used again, with the layouts that they were given.
  if (as_drawn_) calls_[drawn_].given = call.given;
  if (draw_.chance(6)) bind(call, expected);
  if (draw_.chance(15)) compare_plans(call);
  if (draw_.chance(5)) compare_tagged(call);
  current_ = nullptr;
  return disagreement_;
}

}  // namespace opmux::property
