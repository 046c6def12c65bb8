#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Where a value comes from; strongest first.
enum class Source : uint8_t { scope, code, file, environment, platform, builtin };

/// "scope", "code", "file", "environment", "platform", "built-in".
std::string_view name_of(Source source);

/// One source's policy, validated and indexed by operator. Immutable.
class PolicyLayer {
 public:
  /// Fails as validate() does.
  static Result<std::shared_ptr<const PolicyLayer>> make(Source source, Policy policy,
                                                         std::string name);

  Source source() const { return source_; }
  const Policy& policy() const { return policy_; }
  /// What to call it in messages: "environment", "policy.yaml", "set_policy".
  const std::string& name() const { return name_; }
  /// The layer of Policy::outer: same source, next in strength. Null if it stands alone.
  const std::shared_ptr<const PolicyLayer>& outer() const { return outer_; }

  /// Rules whose `op` matches, higher rank first, then list order. Without those of outer().
  std::vector<const Rule*> rules_for(std::string_view op) const;
  /// Of everything in this layer and outer() that can concern the operator: equal hashes mean equal
  /// effect. Names, owners, reasons and places of rules are not in it. 0 if nothing concerns it.
  uint64_t hash_for(std::string_view op) const;
  /// A layer that says the same about the operator and nothing about others: who keeps it does not
  /// keep the whole. Null if nothing concerns the operator.
  std::shared_ptr<const PolicyLayer> part_for(std::string_view op) const;

 private:
  using Positions = std::vector<uint32_t>;
  struct Pattern {
    std::string glob;
    Positions rules;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void index();
  Positions positions_for(std::string_view op) const;

  Source source_ = Source::code;
  Policy policy_;
  std::string name_;
  std::shared_ptr<const PolicyLayer> outer_;
  std::vector<const Rule*> ordered_;   ///< all rules, higher rank first
  std::vector<uint64_t> rule_hashes_;  ///< by position in ordered_
  uint64_t general_hash_ = 0;
  std::unordered_map<std::string, Positions, TextHash, std::equal_to<>> by_operator_;
  std::vector<Pattern> by_pattern_;  ///< each different glob once
};

using PolicyLayerPtr = std::shared_ptr<const PolicyLayer>;

/// All sources in force but scopes. Immutable.
struct PolicySet {
  std::vector<PolicyLayerPtr> layers;  ///< strongest first

  uint64_t hash_for(std::string_view op) const;
  /// What each layer says about one operator; see PolicyLayer::part_for().
  PolicySet part_for(std::string_view op) const;
};

}  // namespace opmux::policy
