#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/policy_set.hpp"
#include "registry/dependencies.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"

namespace opmux::policy {

inline constexpr size_t kMaxCandidates = 256;  ///< implementations of one operator
using CandidateSet = std::bitset<kMaxCandidates>;

/// Who said it: enough to print `"broken-driver" (policy.yaml:12, kernels@example.com, until
/// 2027-02-01)`, `OPMUX_PREFER (environment)`, `set_policy (code)`, `prefer (policy.yaml)` or
/// `scope`. Points into the layer that it came from.
struct Origin {
  const PolicyLayer* layer = nullptr;
  const Rule* rule = nullptr;  ///< null: the layer's own fields
  const char* field = "";      ///< "prefer", "deny", "allow_vendors" ...
};
std::string describe(const Origin& origin);

/// What the policy of one operator says about one call. Indices are those of
/// OperatorRecord::implementations.
struct PolicyView {
  struct Drop {
    registry::Reason reason = registry::Reason::none;
    Origin by;
  };
  /// Per candidate: why policy drops it, reason none if it does not.
  std::vector<Drop> drops;
  /// Per candidate: position in the winning order or prefer list; unlisted last.
  std::vector<uint16_t> tiers;
  /// Per candidate: clamp((priority + adds) * multipliers, 0, 10^6).
  std::vector<double> scores;
  bool strict = false;
  uint8_t transforms = 0;  ///< that are allowed: bits of transform_words.hpp
  bool has_list = false;   ///< an order or prefer list gave the tiers
  bool allow_none = false;
  Origin strict_by, list_by;
  /// The require groups in force, for the error that names them when nothing is left.
  std::vector<Origin> requires_by;
  /// Whether every candidate is dropped, and there is one.
  bool nothing_left() const;
  /// Room that evaluate() works in.
  std::vector<double> multipliers;
};

/// The policy of one operator, compiled once for all sources and one scope: lists turned into sets
/// of candidates, conditions into questions about facts. Immutable.
class OperatorPolicy {
 public:
  /// `scope` may be null. Keeps the layers and the record alive.
  static std::shared_ptr<const OperatorPolicy> compile(
      const PolicySet& set, PolicyLayerPtr scope,
      std::shared_ptr<const registry::OperatorRecord> op);

  /// Evaluates conditions and combines, exactly as semantics.md says. Pure.
  void evaluate(const registry::Signature& signature, PolicyView& view) const;

  /// As evaluate(), of calls about which nothing is known but that the condition of `rule` is true
  /// and no other is; null: none is.
  void assume(const Rule* rule, PolicyView& view) const;

  /// The rules with a condition, strongest first.
  std::vector<const Rule*> conditional() const;
  /// Whether nothing is left where no condition is true, or just one rule's; `view` is then that.
  bool starves(PolicyView& view, const Rule** rule) const;

  /// The candidates by falling priority, equal ones by id.
  const std::vector<uint16_t>& by_priority() const;

  /// What the conditions look at.
  const registry::Dependencies& dependencies() const;
  /// Whether some calls may have their tensors transformed.
  bool may_transform() const;

  ~OperatorPolicy();

 private:
  OperatorPolicy();
  struct Data;
  std::unique_ptr<const Data> data_;
};

}  // namespace opmux::policy
