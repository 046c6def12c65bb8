#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Where a value comes from, strongest first.
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

  /// Rules whose `op` matches, higher rank first, then list order.
  std::vector<const Rule*> rules_for(std::string_view op) const;
  /// Of everything in this layer that can concern the operator; equal hashes mean equal effect.
  uint64_t hash_for(std::string_view op) const;

 private:
  Source source_ = Source::code;
  Policy policy_;
  std::string name_;
  // index: rules by exact operator name, rules with a glob apart, content hash of each rule
};

using PolicyLayerPtr = std::shared_ptr<const PolicyLayer>;

/// All sources in force but scopes. Immutable.
struct PolicySet {
  std::vector<PolicyLayerPtr> layers;  ///< strongest first

  uint64_t hash_for(std::string_view op) const;
};

}  // namespace opmux::policy
