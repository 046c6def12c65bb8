#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/rules/operator_policy.hpp"
#include "policy/rules/token.hpp"
#include "registry/implementation/can_run.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// The effect of the policies on one operator if exactly one condition is true, or none.
struct Effect {
  std::string when;                ///< that condition; empty: no condition is true
  std::vector<std::string> order;  ///< ids that can run here, as a call tries them
  std::string by;                  ///< origin of the ranking or, without one, of the first drop
  PolicyView view;                 ///< valid as long as the policy
};

/// The effect if only the condition `when` is true. Ignores capabilities, which depend on the
/// arguments of calls, and the state of breakers.
Effect effect_of(const OperatorPolicy& policy, const registry::OperatorRecord& op,
                 RunnableCandidates& runnable, std::string when);

/// Explains why no candidate is left that can run: the origins of all drops and requirements, and
/// why the other candidates cannot run.
std::string describe_drops(const PolicyView& view, const registry::OperatorRecord& op,
                           registry::Probe probe = registry::Probe::run);

/// Tests whether tokens match any registered implementation, and caches the results. Not
/// thread-safe; the snapshot must outlive it.
class PresentNames {
 public:
  explicit PresentNames(const registry::RegistrySnapshot& known);

  /// Whether `token` matches an implementation of an operator that `op` matches. Kind words such as
  /// `vendor` always match.
  bool matches(std::string_view op, const std::string& token);
  /// "; did you mean 'rms_norm/simd.*'?" for a token that matches nothing; empty if nothing is
  /// near, and from the 65th token on, because each is compared with all names.
  std::string suggestion(std::string_view op, const std::string& token);

 private:
  struct Present {
    std::string_view op;
    Subject subject;
  };
  std::vector<Present> present_;  ///< sorted by operator
  std::map<std::string, bool, std::less<>> known_;
  int suggestions_ = 0;
};

/// A token that matches no registered implementation.
struct Unmatched {
  size_t rule = 0;  ///< position in Policy::rules
  std::string_view field;
  std::string token;
};

/// The unmatched tokens of all rules, in order. Includes those in `deny`, where they are harmless.
std::vector<Unmatched> unmatched_of(const Policy& policy, const registry::RegistrySnapshot& known);

/// For a policy with strict_names: "policy.unmatched" for the first token that matches no
/// registered implementation. Skips `deny`, which may name what other hosts have, as
/// `names: strict` does.
Status check_strict_names(const Policy& policy, const registry::RegistrySnapshot& known);

/// Rules that have tokens, none of which match anything, in order.
std::vector<const Rule*> unmatched_rules(const Policy& policy,
                                         const registry::RegistrySnapshot& known);

/// A suspicious rule in a valid policy.
struct Finding {
  std::string code;   ///< "policy.unmatched", "policy.shadowed", "policy.contradiction" ...
  std::string where;  ///< "policy.yaml:12"
  std::string rule;   ///< the rule's name; may be empty
  std::string text;
};

/// Finds rules that can never match, whose fields a stronger rule always overrides, that contradict
/// others, that have expired or that share a name. In the order of the rules.
std::vector<Finding> lint(const Policy& policy, const registry::RegistrySnapshot& known);

}  // namespace opmux::policy
