#pragma once

#include <string>
#include <vector>

#include <opmux/operator_info.hpp>
#include <opmux/policy.hpp>

namespace opmux {

/// Something about a policy that would apply, but perhaps not as it was meant.
struct PolicyFinding {
  std::string code;   ///< "policy.unmatched", "policy.shadowed", "policy.contradiction" ...
  std::string where;  ///< "policy.yaml:12"
  std::string rule;   ///< its name; may be empty
  std::string text;
};

/// What is tried first for an operator now, and what would be.
struct DecisionChange {
  std::string op;
  std::string when;           ///< the condition of a rule; empty: where no condition is true
  std::string before, after;  ///< ids; empty: nothing is left
  std::string by;             ///< `"broken-driver" (policy.yaml:12)`
};

/// What Runtime::check_policy finds.
struct PolicyCheck {
  size_t rules = 0;
  std::vector<PolicyFinding> findings = {};  ///< in the order of the rules
  std::vector<DecisionChange> changes = {};  ///< by operator
};

struct PolicyCheckOptions {
  bool strict_names = false;  ///< as `names: strict` in the file
  /// What is present on the machine that is meant, as Runtime::list gives it; empty: this process.
  std::vector<OperatorInfo> machine = {};
};

}  // namespace opmux
