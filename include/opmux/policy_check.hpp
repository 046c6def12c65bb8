#pragma once

#include <string>
#include <vector>

#include <opmux/operator_info.hpp>
#include <opmux/policy.hpp>

namespace opmux {

/// A warning about a policy text that would apply, but perhaps not as its author intended.
struct PolicyFinding {
  std::string code;   ///< "policy.unmatched", "policy.shadowed", "policy.contradiction" ...
  std::string where;  ///< "policy.yaml:12".
  std::string rule;   ///< Name of the rule; may be empty.
  std::string text;   ///< One sentence for people.
};

/// The first choice for an operator now, and under the checked policy.
struct DecisionChange {
  std::string op;             ///< Operator.
  std::string when;           ///< Condition of a rule; empty: calls for which no condition is true.
  std::string before, after;  ///< Ids; empty: no candidate is left.
  std::string by;             ///< Rule that causes it: `"broken-driver" (policy.yaml:12)`.
};

/// Result of Runtime::check_policy(), which is what `opmux check` prints.
///
///   const std::string_view text = "opmux: 1\nrules:\n  - {op: softmax, deny: [vendor]}\n";
///   opmux::Result<opmux::PolicyCheck> check = runtime.check_policy(text, "policy.yaml");
///   if (!check) std::cerr << check.error().message() << "\n";
///   if (check) {
///     for (const opmux::PolicyFinding& finding : check->findings) {
///       std::cout << finding.where << ": " << finding.text << "\n";
///     }
///   }
struct PolicyCheck {
  size_t rules = 0;                          ///< Number of rules in the text.
  std::vector<PolicyFinding> findings = {};  ///< In the order of the rules.
  std::vector<DecisionChange> changes = {};  ///< By operator.
};

/// Options of Runtime::check_policy().
struct PolicyCheckOptions {
  bool strict_names = false;  ///< As `names: strict` in the file.
  /// Implementations of the target machine, as Runtime::list() returned them there; empty: this
  /// process.
  std::vector<OperatorInfo> machine = {};
};

}  // namespace opmux
