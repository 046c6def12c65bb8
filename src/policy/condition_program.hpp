#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/expression.hpp"
#include "registry/dependencies.hpp"

namespace opmux::policy {

/// A condition compiled against a schema: questions about facts with jumps between them, so that
/// `&&` and `||` ask no more than they must. Immutable.
class ConditionProgram {
 public:
  /// Nothing if the condition names something that the schema does not have, or compares what
  /// cannot be compared; `problem` then says what and, for a text, where.
  static std::optional<ConditionProgram> compile(const Condition& condition,
                                                 const registry::Schema& schema,
                                                 ExpressionProblem* problem = nullptr);

  /// Whether the answer is yes: what is absent, overflows or divides by zero makes it unknown.
  bool holds(const registry::Signature& signature) const {
    return answer(signature) == registry::Answer::yes;
  }
  registry::Answer answer(const registry::Signature& signature) const;

  void add_dependencies(registry::Dependencies& into) const;

 private:
  enum class Op : uint8_t {
    constant,     ///< the answer `index`
    ask,          ///< the question
    compute,      ///< the formula `index`
    match_tag,    ///< whether the tag's word matches the pattern `index`
    negate,       ///< the last answer
    skip_if_no,   ///< to step `index`, else keep the answer
    skip_if_yes,  ///< to step `index`, else keep the answer
    join_and,     ///< the kept answer with the last
    join_or,
  };
  struct Step {
    Op op = Op::ask;
    uint32_t index = 0;
    registry::Predicate question = {};
  };
  class Compiler;

  std::vector<Step> steps_;
  std::vector<registry::Formula> formulas_;
  std::vector<std::string> patterns_;
};

}  // namespace opmux::policy
