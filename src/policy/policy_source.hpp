#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "policy/rules/policy_set.hpp"
#include "registry/record.hpp"

namespace opmux::policy {

/// Gives access to the policies of a runtime. Thread-safe.
class PolicySource {
 public:
  virtual ~PolicySource() = default;
  /// All layers except scopes, strongest first.
  virtual std::shared_ptr<const PolicySet> set() const = 0;
};

/// The plugins that a runtime has found and not loaded yet. Thread-safe.
class DeferredPlugins {
 public:
  virtual ~DeferredPlugins() = default;
  /// Loads all deferred plugins.
  virtual void warm_up() = 0;
  /// The implementations of an operator in deferred plugins, without functions, capabilities and
  /// priorities.
  virtual std::vector<registry::ImplementationPtr> implementations_of(
      std::string_view op) const = 0;
  /// Marks the operators that have implementations in deferred plugins, so that the engine loads
  /// them on demand.
  virtual void mark_waiting() = 0;
};

}  // namespace opmux::policy
