#include "schema/expressions/where.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace opmux::schema {
namespace {

using Op = WhereExpression::Op;

/// A number, or unknown. Trivial, so that an uninitialized array of values costs nothing.
struct Value {
  int64_t number;
  bool known;
};

Value known(int64_t number) { return {number, true}; }

/// A negative index becomes a large unsigned one and so is out of range.
Value read(std::span<const int64_t> values, int index) {
  const auto place = static_cast<size_t>(index);
  if (place >= values.size() || values[place] == std::numeric_limits<int64_t>::min()) return {};
  return known(values[place]);
}

Value read_dim(std::span<const int64_t> dims, int index) {
  const Value dim = read(dims, index);
  return dim.known && dim.number < 0 ? Value{} : dim;
}

Value quotient(Op op, int64_t a, int64_t b) {
  if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1)) return {};
  return known(op == Op::divide ? a / b : a % b);
}

/// Floats compare as in IEEE 754: with a NaN, only != is true.
Value compare_reals(Op op, double a, double b) {
  switch (op) {
    case Op::equal_real: return known(a == b);
    case Op::less_real: return known(a < b);
    case Op::less_equal_real: return known(a <= b);
    case Op::greater_real: return known(a > b);
    case Op::greater_equal_real: return known(a >= b);
    default: return {};
  }
}

Value to_real(int64_t number) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (number < -kExact || number > kExact) return {};
  return known(std::bit_cast<int64_t>(static_cast<double>(number)));
}

Value arithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::add: return __builtin_add_overflow(a, b, &result) ? Value{} : known(result);
    case Op::subtract: return __builtin_sub_overflow(a, b, &result) ? Value{} : known(result);
    case Op::multiply: return __builtin_mul_overflow(a, b, &result) ? Value{} : known(result);
    case Op::divide:
    case Op::modulo: return quotient(op, a, b);
    case Op::equal: return known(a == b);
    case Op::not_equal: return known(a != b);
    case Op::less: return known(a < b);
    case Op::less_equal: return known(a <= b);
    case Op::greater: return known(a > b);
    case Op::greater_equal: return known(a >= b);
    default: return compare_reals(op, std::bit_cast<double>(a), std::bit_cast<double>(b));
  }
}

/// One known side can decide alone: false for &&, true for ||.
Value logical(Op op, Value a, Value b) {
  const bool deciding = op == Op::logical_or;
  if ((a.known && (a.number != 0) == deciding) || (b.known && (b.number != 0) == deciding)) {
    return known(deciding);
  }
  return {!deciding, a.known && b.known};
}

Value binary(Op op, Value a, Value b) {
  if (op == Op::logical_and || op == Op::logical_or) return logical(op, a, b);
  return a.known && b.known ? arithmetic(op, a.number, b.number) : Value{};
}

Value unary(Op op, Value a) {
  if (!a.known) return a;
  if (op == Op::to_real) return to_real(a.number);
  return op == Op::negate ? arithmetic(Op::subtract, 0, a.number) : known(a.number == 0);
}

}  // namespace

std::optional<int64_t> evaluate(std::span<const WhereExpression::Step> steps,
                                std::span<const int64_t> dims, std::span<const int64_t> scalars) {
  Value stack[WhereExpression::kMaxSteps];
  size_t size = 0;
  if (steps.size() > WhereExpression::kMaxSteps) return std::nullopt;
  for (const WhereExpression::Step& step : steps) {
    switch (step.op) {
      case Op::constant:
      case Op::real: stack[size++] = known(step.value); break;
      case Op::dim: stack[size++] = read_dim(dims, step.index); break;
      case Op::scalar: stack[size++] = read(scalars, step.index); break;
      case Op::negate:
      case Op::logical_not:
      case Op::to_real:
        if (size < 1) return std::nullopt;
        stack[size - 1] = unary(step.op, stack[size - 1]);
        break;
      case Op::conditional: {
        if (size < 3) return std::nullopt;
        size -= 2;
        const Value chosen = stack[size - 1].number != 0 ? stack[size] : stack[size + 1];
        stack[size - 1] = stack[size - 1].known ? chosen : Value{};
        break;
      }
      default:
        if (size < 2) return std::nullopt;
        --size;
        stack[size - 1] = binary(step.op, stack[size - 1], stack[size]);
    }
  }
  if (size != 1 || !stack[0].known) return std::nullopt;
  return stack[0].number;
}

bool WhereExpression::holds(std::span<const int64_t> dims, std::span<const int64_t> scalars) const {
  return evaluate(steps, dims, scalars).value_or(0) != 0;
}

bool WhereExpression::mentions(Op kind, int index) const {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& s) { return s.op == kind && s.index == index; });
}

}  // namespace opmux::schema
