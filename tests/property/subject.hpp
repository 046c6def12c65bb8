#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/plan/bound_plan.hpp"
#include "world.hpp"

namespace opmux::property {

/// A runtime built from a world, whose kernels record that they ran.
class Subject {
 public:
  explicit Subject(const World& world);

  Status set_policy(const Policy& policy) { return runtime_->policy().set(policy); }
  void enable(const Backend& backend);
  /// Registers or withdraws a candidate, according to `registered`.
  void put(const World& world, size_t candidate);
  void push_scope(const Policy& policy);
  void pop_scope() { scopes_.pop_back(); }

  /// The result of a call: its status, and the ids of the kernels that ran.
  struct Outcome {
    Status status;
    std::vector<std::string> ran;
  };
  Outcome call(const Call& call);
  /// Like call, with options and a report; `reported` is the implementation named in the report.
  Outcome call_with(const Call& call, std::string& reported);
  Explanation explain(const Call& call);
  using PlanPtr = std::unique_ptr<dispatch::BoundPlan>;
  Result<PlanPtr> bind(const Call& call);
  Outcome call_plan(dispatch::BoundPlan& plan, const Call& call);

  /// Number of prepared states that were used for a call they were not made for.
  static int wrongly_prepared;

 private:
  struct Kernel {
    std::string id;
    std::optional<std::vector<FactRef>> plan_reads;
    std::vector<std::string> arg_names;
  };
  static int32_t run(void* user_data, const opmux_call* call);
  static int32_t plan(void* user_data, const opmux_call* call, void** prepared);
  static void plan_free(void* user_data, void* prepared);
  static std::string prepared_for(const Kernel& kernel, const opmux_call& call);
  template <class Body>
  Outcome recorded(Body&& body);

  std::optional<Runtime> runtime_;
  std::optional<Operator> op_;
  std::deque<Kernel> kernels_;
  std::vector<Registration> keepers_, registrations_;
  std::vector<std::unique_ptr<PolicyScope>> scopes_;
};

}  // namespace opmux::property
