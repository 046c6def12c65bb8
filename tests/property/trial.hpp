#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator.hpp"
#include "model.hpp"
#include "subject.hpp"

namespace opmux::property {

/// One world with its runtime: draws policies and arguments and compares the runtime with the
/// model.
class Trial {
 public:
  explicit Trial(uint64_t seed);

  /// One draw: possibly changes policy, scope or registry, then makes one call in every way.
  /// Returns a description of the first disagreement, or empty.
  std::string draw();

 private:
  struct Bound {
    Subject::PlanPtr plan;
    Call call;  ///< the call it was bound with, including scopes
    bool revoked = false;
    /// Its implementation was forbidden when nothing made the engine evaluate the plan. If it is
    /// allowed again before the next look at the plan, the plan may have missed that.
    bool may_be_revoked = false;
  };

  void change_something();
  Policy through_text(const Policy& policy);
  /// Returns whether the engine evaluates the bound plans of the operator at once.
  bool change_policy();
  void change_scope();
  bool change_registry();
  void after_change(bool evaluated);
  Call next_call();

  void compare_explanation(const Call& call, const Expected& expected);
  void compare_call(const char* how, const Subject::Outcome& outcome, const Expected& expected);
  void compare_tagged(Call call);
  void bind(const Call& call, const Expected& expected);
  void compare_plans(const Call& call);
  void compare_plan(Bound& bound, const Call& call);
  void compare_state(Bound& bound);
  void disagree(const std::string& what);

  Generator draw_;
  World world_;
  Subject subject_;
  std::vector<Policy> scopes_;
  Ambient ambient_;
  std::vector<Call> calls_;
  size_t drawn_ = 0;       ///< index of the call that was made
  bool as_drawn_ = false;  ///< whether it was made unchanged
  std::vector<Bound> bound_;
  std::string disagreement_;
  const Call* current_ = nullptr;
};

}  // namespace opmux::property
