#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "policy/rules/policy_set.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"
#include "registry/snapshot.hpp"
#include "schema/dependencies.hpp"

namespace opmux::policy {

inline constexpr size_t kMaxCandidates = 256;  ///< implementations per operator
using CandidateSet = std::bitset<kMaxCandidates>;

/// The source of a policy effect. describe() prints it as `"broken-driver" (policy.yaml:12,
/// kernels@example.com, until 2027-02-01; wrong sums)`, `OPMUX_PREFER (environment)`,
/// `set_policy (code)`, `prefer (policy.yaml)` or `scope`. Points into the layer.
struct Origin {
  const PolicyLayer* layer = nullptr;
  const Rule* rule = nullptr;  ///< null = the layer's general fields
  const char* field = "";      ///< "prefer", "deny", "allow_vendors" ...
};
std::string describe(const Origin& origin);

/// Result of evaluating an operator's policy for one call. Candidates are indexed as in
/// OperatorRecord::implementations.
struct PolicyView {
  struct Drop {
    registry::Reason reason = registry::Reason::none;
    Origin by;
  };
  /// Per candidate: why the policy drops it; reason `none` if it does not.
  std::vector<Drop> drops;
  /// Per candidate: position in the winning order or prefer list; unlisted candidates come last.
  std::vector<uint16_t> tiers;
  /// Per candidate: the hint that applies to the call, or null.
  std::vector<const registry::CompiledHint*> hints;
  /// Per candidate: clamp((priority + adds) * multipliers, 0, 10^6), with the priority of the hint
  /// if one applies.
  std::vector<double> scores;
  bool strict = false;
  uint8_t transforms = 0;  ///< allowed transforms: bits of transform_words.hpp
  bool has_list = false;   ///< the tiers come from an order or prefer list
  bool allow_none = false;
  Origin strict_by, list_by;
  /// Origins of the `require` lists that apply, for the error when no candidate is left.
  std::vector<Origin> requires_by;
  /// Whether there are candidates and all of them are dropped.
  bool nothing_left() const;
  /// Scratch space of evaluate().
  std::vector<double> multipliers;
};

class RunnableCandidates;
class DeferredPlugins;

/// Whether a policy leaves candidates that can run on this machine. unknown: that depends on
/// plugins that are not loaded yet.
enum class Left : uint8_t { something, nothing, unknown };

/// The policy of one operator, compiled from all sources and one scope: token lists become sets of
/// candidates, conditions become programs over facts. Immutable.
class OperatorPolicy {
 public:
  /// `scope` may be null. Keeps the layers and the record alive.
  static std::shared_ptr<const OperatorPolicy> compile(
      const PolicySet& set, PolicyLayerPtr scope,
      std::shared_ptr<const registry::OperatorRecord> op);

  /// Evaluates the conditions for a call and combines the layers as described in docs/policy.md and
  /// docs/dev/decisions/003-policy-combination.md. Pure.
  void evaluate(const schema::Signature& signature, PolicyView& view) const;

  /// Like evaluate(), for a hypothetical call in which only rules with this condition, as
  /// Condition::to_string() writes it, and those without one apply. Empty: no condition is true.
  /// Capabilities accept the call, and each candidate has its best priority.
  void assume(std::string_view condition, PolicyView& view) const;

  /// The distinct conditions, those of the strongest rules first.
  std::vector<std::string> conditions() const;
  /// The least that is left of the candidates that can run, when no condition is true and when
  /// exactly one is, apart from calls for which a rule has allow_none. Unless something is left,
  /// `view` and `condition` describe such a call.
  Left least_left(RunnableCandidates& runnable, PolicyView& view, std::string& condition) const;

  /// Candidates by descending priority, that of the best hint if it has hints, then by id.
  const std::vector<uint16_t>& by_priority() const;

  /// The facts that the conditions read.
  const schema::Dependencies& dependencies() const;
  /// Whether the policy allows transforms for any calls.
  bool may_transform() const;
  /// Whether measured speeds count.
  Tuning tuning() const;

  ~OperatorPolicy();

 private:
  OperatorPolicy();
  struct Data;
  std::unique_ptr<const Data> data_;
};

/// Checks that each rule's condition compiles for at least one of the existing operators of the
/// rule.
Status check_conditions(const Policy& policy, const registry::RegistrySnapshot& registry);

/// Checks that a policy leaves every operator an implementation that can run on this machine, where
/// no condition applies and for each condition alone, or sets allow_none. Operators for which
/// `next` and `now` have the same effect are skipped, and so are those of which nothing can run
/// anyway. Fails with "policy.no_candidates". `plugins`: also considers the implementations of
/// deferred plugins; sets `undecided` if these must be loaded first, because nothing else is left.
Status dry_run(const PolicySet& next, const PolicySet& now,
               const registry::RegistrySnapshot& registry, const DeferredPlugins* plugins = nullptr,
               bool* undecided = nullptr);

}  // namespace opmux::policy
