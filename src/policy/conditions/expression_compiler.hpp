#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <opmux/policy.hpp>

#include "base/system/cpu_features.hpp"
#include "schema/expressions/expression.hpp"
#include "schema/expressions/formula.hpp"
#include "schema/facts.hpp"
#include "schema/schema.hpp"

namespace opmux::policy {

using schema::Expression;
using schema::ExpressionProblem;
using schema::ExprOp;

/// A predicate, or its negation.
struct SignedQuestion {
  schema::Predicate question;
  bool negated = false;
};

/// The predicate that a formula is equivalent to, if it only compares one fact with a constant:
/// `T > 8192`, `16 <= H`, `H % 16 == 0`, `dtype(x) != "f16"`, `causal`.
std::optional<SignedQuestion> as_question(const schema::Formula& formula);

/// The operation that compares floats as `op` compares integers; `op` itself if it is not a
/// comparison.
schema::WhereExpression::Op real_step(schema::WhereExpression::Op op);

/// The predicate for a comparison with a number. For != it is equality, which the caller negates.
schema::Predicate question_of(schema::Fact fact, Compare compare, int64_t value);

using base::CpuFeatures;

/// Compiles parts of a condition to formulas over the facts of one schema. Values are typed:
/// integers, floats, booleans and words (dtypes, devices, layouts, enum values, tags). Words are
/// comparable only with words of the same type, floats also with integers. The constructor's
/// arguments must outlive this object.
class ExpressionCompiler {
 public:
  ExpressionCompiler(const Expression& expression, const schema::Schema& schema,
                     const CpuFeatures& cpu)
      : expression_(expression), schema_(schema), cpu_(cpu) {}

  /// Compiles a boolean expression. On an error returns nullopt and sets problem().
  std::optional<schema::Formula> question(uint32_t node);
  /// Compiles the comparison of two nodes, for one element of a list after `in`.
  std::optional<schema::Formula> equality(uint32_t left, uint32_t right, size_t at);
  /// The pattern if the node is glob(tag, "pattern"), which a formula cannot express.
  std::optional<std::string> tag_pattern(uint32_t node);

  const ExpressionProblem& problem() const { return problem_; }

 private:
  using ExprNode = Expression::Node;
  using Step = schema::WhereExpression::Step;
  using Code = schema::WhereExpression::Op;
  enum class Domain : uint8_t {
    integer,
    floating,
    boolean,
    dtype,
    device,
    layout,
    enumeration,
    tag
  };
  struct Type {
    Domain domain = Domain::integer;
    int arg = -1;  ///< argument index of an enumeration
    friend bool operator==(const Type&, const Type&) = default;
  };

  std::optional<Type> fail(size_t at, std::string text, bool name = false);
  void push(Step step) { formula_.steps.push_back(step); }
  void push_constant(int64_t value) { push({Code::constant, 0, value}); }
  void push_real(double value) { push({Code::real, 0, schema::float_fact(value)}); }
  bool push_fact(const ExprNode& node, schema::FactKind kind, std::string_view name);
  std::optional<schema::Formula> finish(const std::optional<Type>& type, size_t at);

  std::optional<Type> emit(uint32_t index);
  std::optional<Type> emit_unary(const ExprNode& node);
  std::optional<Type> emit_binary(const ExprNode& node);
  std::optional<Type> emit_conditional(const ExprNode& node);
  std::optional<Type> emit_in(const ExprNode& node);
  std::optional<Type> emit_relation(const ExprNode& node);
  std::optional<Type> emit_equal(uint32_t left, uint32_t right, size_t at);
  std::optional<Type> emit_sides(uint32_t left, uint32_t right, Type& other);
  std::optional<Type> emit_texts(const ExprNode& node);
  std::optional<Type> emit_name(const ExprNode& node);
  std::optional<Type> emit_argument(const ExprNode& node, int arg);
  std::optional<Type> emit_call(const ExprNode& node);
  std::optional<Type> emit_tensor_fact(const ExprNode& node, schema::FactKind kind, Type type);
  std::optional<Type> emit_aligned(const ExprNode& node);
  std::optional<Type> emit_cpu(const ExprNode& node);
  std::optional<Type> emit_glob(const ExprNode& node);
  bool emit_word(const ExprNode& literal, Type type);

  const ExprNode* argument_name(const ExprNode& call, size_t count);
  std::optional<Type> unknown_name(const ExprNode& node, bool tensor);
  std::vector<std::pair<std::string, int64_t>> words_of(Type type) const;
  std::string shown(Type type) const;
  bool is_text(uint32_t index) const { return expression_[index].op == Expression::Op::text; }

  const Expression& expression_;
  const schema::Schema& schema_;
  const CpuFeatures& cpu_;
  schema::Formula formula_;
  ExpressionProblem problem_;
};

/// CPU features that conditions may name even if this machine lacks them.
const CpuFeatures& known_cpu_features();

}  // namespace opmux::policy
