#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <opmux/policy.hpp>

#include "registry/facts.hpp"

namespace opmux::policy {

/// A condition compiled against a schema: questions about facts with jumps between them, so that
/// `&&` and `||` ask no more than they must. Immutable.
class ConditionProgram {
 public:
  /// Nothing if the condition names something that the schema does not have.
  static std::optional<ConditionProgram> compile(const Condition& condition,
                                                 const registry::Schema& schema);

  /// A comparison with an absent fact answers no; `!=` is the negation of `==`.
  bool holds(const registry::Signature& signature) const;

  void add_dependencies(registry::Dependencies& into) const;

 private:
  enum class Op : uint8_t { ask, negate, skip_if_false, skip_if_true };
  struct Step {
    Op op = Op::ask;
    uint32_t target = 0;  ///< of a skip: the step to go on with
    registry::Predicate question = {};
  };
  class Compiler;

  std::vector<Step> steps_;
};

}  // namespace opmux::policy
