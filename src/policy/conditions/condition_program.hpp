#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "base/system/cpu_features.hpp"
#include "schema/dependencies.hpp"
#include "schema/expressions/expression.hpp"

namespace opmux::policy {

/// A condition compiled against a schema: predicates on facts with jumps between them, so that `&&`
/// and `||` short-circuit. Immutable.
class ConditionProgram {
 public:
  /// Returns nullopt if the condition names an argument or dimension that the schema does not have,
  /// or compares incompatible types. `problem` then has the message and, for a parsed condition,
  /// the position. `cpu`: the features that cpu() finds.
  static std::optional<ConditionProgram> compile(
      const Condition& condition, const schema::Schema& schema,
      schema::ExpressionProblem* problem = nullptr,
      const base::CpuFeatures& cpu = base::cpu_features());

  /// Whether the answer is yes. Absent facts, overflow and division by zero make it unknown.
  bool holds(const schema::Signature& signature) const {
    return answer(signature) == schema::Answer::yes;
  }
  schema::Answer answer(const schema::Signature& signature) const;
  /// Whether the condition is true for no call in this process, because the processor lacks a
  /// feature: cpu("sve").
  bool never() const;

  void add_dependencies(schema::Dependencies& into) const;

 private:
  enum class Op : uint8_t {
    constant,     ///< sets the answer to `index`
    ask,          ///< evaluates `question`
    compute,      ///< evaluates formula `index`
    match_tag,    ///< matches the tag with pattern `index`
    negate,       ///< negates the answer
    skip_if_no,   ///< jumps to step `index`, else pushes the answer
    skip_if_yes,  ///< jumps to step `index`, else pushes the answer
    join_and,     ///< pops an answer and combines it with the last
    join_or,
  };
  struct Step {
    Op op = Op::ask;
    uint32_t index = 0;
    schema::Predicate question = {};
  };
  class Compiler;
  /// `ask_call` answers the steps that depend on the call.
  template <class Ask>
  schema::Answer evaluate(const Ask& ask_call) const;

  std::vector<Step> steps_;
  std::vector<schema::Formula> formulas_;
  std::vector<std::string> patterns_;
};

/// Checks a condition independently of an operator. Returns an error text for an unknown ambient
/// word, a multiple of zero, an alignment that is not a power of two, a layout that is not a
/// permutation, or a tree that is too deep or too large. Empty if the condition is valid.
std::string condition_problem(const Condition& condition);

}  // namespace opmux::policy
