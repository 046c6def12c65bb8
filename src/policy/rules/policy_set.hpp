#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Source of a policy; the strongest first.
enum class Source : uint8_t { scope, code, file, environment, platform, builtin };

/// The name of a source: "scope", "code", "file", "environment", "platform" or "built-in".
std::string_view name_of(Source source);

/// The policy of one source, validated and indexed by operator. Immutable.
class PolicyLayer {
 public:
  /// Fails like validate().
  static Result<std::shared_ptr<const PolicyLayer>> make(Source source, Policy policy,
                                                         std::string name);

  Source source() const { return source_; }
  const Policy& policy() const { return policy_; }
  /// The name used in messages: "environment", "policy.yaml", "set_policy".
  const std::string& name() const { return name_; }
  /// The layer of Policy::outer, which has the same source and is next in strength. Null if there
  /// is none.
  const std::shared_ptr<const PolicyLayer>& outer() const { return outer_; }

  /// Rules whose `op` matches, by descending rank, then in list order. Excludes rules of outer().
  std::vector<const Rule*> rules_for(std::string_view op) const;
  /// Hash of everything in this layer and outer() that affects the operator: equal hashes mean
  /// equal effect. Excludes names, owners, reasons and locations of rules. 0 if nothing affects it.
  uint64_t hash_for(std::string_view op) const;
  /// A copy with only the parts that affect the operator, so that holding it does not keep the
  /// whole layer alive. Null if nothing affects the operator.
  std::shared_ptr<const PolicyLayer> part_for(std::string_view op) const;
  /// Adds the operators that this layer and outer() name; the views are valid as long as the layer.
  /// False if it may affect operators that it does not name.
  bool add_named(std::vector<std::string_view>& operators) const;

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
  std::vector<const Rule*> ordered_;   ///< all rules, by descending rank
  std::vector<uint64_t> rule_hashes_;  ///< by position in ordered_
  uint64_t general_hash_ = 0;
  std::unordered_map<std::string, Positions, TextHash, std::equal_to<>> by_operator_;
  std::vector<Pattern> by_pattern_;  ///< each distinct glob once
};

using PolicyLayerPtr = std::shared_ptr<const PolicyLayer>;

/// The layers of all sources except scopes. Immutable.
struct PolicySet {
  std::vector<PolicyLayerPtr> layers;  ///< strongest first

  /// Whether both have the same layers. Layers are immutable and compared by address.
  bool operator==(const PolicySet&) const = default;
  uint64_t hash_for(std::string_view op) const;
  /// The parts of all layers that affect one operator; see PolicyLayer::part_for().
  PolicySet part_for(std::string_view op) const;
  /// The operators for which hash_for() of the two sets may differ, sorted; nullopt if that may be
  /// any operator. The views are valid as long as the layers of both sets.
  std::optional<std::vector<std::string_view>> differing(const PolicySet& other) const;
};

/// Serializes policies unambiguously: equal bytes mean equal values. Strings are written with their
/// length.
class ContentWriter {
 public:
  void add(std::string_view text);
  void add(const std::vector<std::string>& list);
  void add_number(int64_t number);
  void add_real(double number);
  void add(const std::optional<bool>& flag);
  void add(const Condition& condition);
  /// Adds the effect of a rule, without its name, owner, reason and location.
  void add_effect(const Rule& rule);
  /// Adds the fields that apply to all operators: everything except allow_none, per_op and rules.
  void add_general(const Policy& policy);
  /// Adds the whole policy with names, owners and locations of rules, and its outer policies.
  void add_all(const Policy& policy);

  const std::string& bytes() const { return bytes_; }
  uint64_t hash() const;

 private:
  std::string bytes_;
};

/// Marks rules as expired whose last day is over, including those of outer policies. Returns true
/// if it marked any. Never unmarks a rule.
bool mark_expired(Policy& policy, std::chrono::sys_seconds now);

/// The time at which the next rule expires; nullopt if none will.
std::optional<std::chrono::sys_seconds> next_expiry(const Policy& policy);

}  // namespace opmux::policy
