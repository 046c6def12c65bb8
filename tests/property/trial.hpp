#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator.hpp"
#include "model.hpp"
#include "subject.hpp"

namespace opmux::property {

/// One world with its runtime: draws policies and arguments and compares what the runtime does with
/// what the model says.
class Trial {
 public:
  explicit Trial(uint64_t seed);

  /// One draw: perhaps a change of policy, scope or registry, then one call in every way. Returns
  /// the first disagreement with a description, or nothing.
  std::string draw();

 private:
  struct Bound {
    Subject::PlanPtr plan;
    Call call;  ///< it was bound with, scopes included
    bool revoked = false;
  };

  void change_something();
  Policy through_text(const Policy& policy);
  void change_policy();
  void change_scope();
  void change_registry();
  void after_change();
  Call next_call();

  void compare_explanation(const Call& call, const Expected& expected);
  void compare_call(const char* how, const Subject::Outcome& outcome, const Expected& expected);
  void compare_tagged(Call call);
  void bind(const Call& call, const Expected& expected);
  void compare_plans(const Call& call);
  void compare_plan(Bound& bound, const Call& call);
  void compare_state(const Bound& bound);
  void disagree(const std::string& what);

  Generator draw_;
  World world_;
  Subject subject_;
  std::vector<Policy> scopes_;
  Ambient ambient_;
  std::vector<Call> calls_;
  size_t drawn_ = 0;       ///< which of them was called
  bool as_drawn_ = false;  ///< and whether without a change
  std::vector<Bound> bound_;
  std::string disagreement_;
  const Call* current_ = nullptr;
};

}  // namespace opmux::property
