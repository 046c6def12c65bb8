#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "registry/arguments.hpp"
#include "registry/schema.hpp"

namespace opmux::registry {

/// What a decision may look at; the numbers of OPMUX_FACT_*.
enum class FactKind : uint8_t {
  dtype = OPMUX_FACT_DTYPE,
  rank = OPMUX_FACT_RANK,
  present = OPMUX_FACT_PRESENT,
  dim = OPMUX_FACT_DIM,
  contiguous = OPMUX_FACT_CONTIGUOUS,
  alignment = OPMUX_FACT_ALIGNMENT,
  layout = OPMUX_FACT_LAYOUT,
  scalar = OPMUX_FACT_SCALAR,
  device = OPMUX_FACT_DEVICE,
  ambient = OPMUX_FACT_AMBIENT,
  tag = OPMUX_FACT_TAG,
  inner_contiguous = 32,  ///< last dimension has stride 1; internal
  is_default = 33,        ///< a string or list is what the schema gives it; internal
};

inline constexpr uint8_t kRowsDim = kMaxDims;  ///< index of "rows" among the dimensions

/// Bits of the ambient word, in the order of their names below.
inline constexpr uint32_t kGrad = 1, kCapturing = 2, kDeterministic = 4, kTraining = 8;

/// One fact of one schema: a kind and the argument, dimension or ambient bit it is about.
struct Fact {
  FactKind kind = FactKind::dtype;
  uint8_t index = 0;
  friend constexpr auto operator<=>(const Fact&, const Fact&) = default;
};

/// A fact by name, before it meets a schema.
struct FactName {
  FactKind kind = FactKind::dtype;
  std::string name;
  friend bool operator==(const FactName&, const FactName&) = default;
};

/// The fact that a name means in this schema; nothing if the schema has no such thing.
std::optional<Fact> resolve_fact(const Schema& schema, FactKind kind, std::string_view name);

/// "dtype(x)", "H", "contiguous(x)", "eps", "deterministic": as explain prints it.
std::string describe(const Schema& schema, Fact fact);

/// A call as a decision sees it: checked arguments, their dimensions, and what surrounds them.
struct Signature {
  const Schema* schema = nullptr;
  const Arguments* arguments = nullptr;
  const BoundDims* dims = nullptr;
  uint32_t ambient = 0;
  uint32_t tag = 0;
};

/// What absent tensors, unbound dimensions and strings read as.
inline constexpr int64_t kAbsent = INT64_MIN;

/// The value of a fact that is no dimension; kAbsent if it has none. Floats give their bits.
int64_t value_beside_dims(const Signature& signature, Fact fact);

inline int64_t dim_value(const BoundDims& dims, uint8_t index) {
  if (index == kRowsDim) return dims.leading_rank < 0 ? kAbsent : dims.rows;
  return dims.values[index] < 0 ? kAbsent : dims.values[index];
}

/// The value of a fact.
inline int64_t value_of(const Signature& signature, Fact fact) {
  return fact.kind == FactKind::dim ? dim_value(*signature.dims, fact.index)
                                    : value_beside_dims(signature, fact);
}

/// Whether an argument of a checked call is what leaving it out would have made it.
bool has_default(const ArgSpec& spec, ArgTag tag, ArgValue value);

/// A signature as a function of facts.
struct FactsOf {
  const Signature& signature;
  int64_t operator()(Fact fact) const { return value_of(signature, fact); }
};

/// A fact about one tensor (dtype, rank, device, contiguous, alignment, layout ...).
int64_t tensor_fact(const TensorView& tensor, FactKind kind);

/// Dimensions of a tensor by falling stride, four bits each, the largest first in the lowest bits.
int64_t layout_of(const TensorView& tensor);
/// "0213" in that form; nothing if it is no order of at most 8 dimensions.
std::optional<int64_t> parse_layout(std::string_view order);

/// Largest power of two that divides the address of the first element, at most 4096.
int64_t alignment_of(const TensorView& tensor);

enum class Relation : uint8_t {
  at_least = OPMUX_AT_LEAST,
  at_most = OPMUX_AT_MOST,
  multiple_of = OPMUX_MULTIPLE_OF,
  equals = OPMUX_EQUALS,
};

/// A yes/no question about one fact. An absent fact answers no.
struct Predicate {
  Fact fact;
  Relation relation = Relation::equals;
  int64_t value = 0;
  friend constexpr auto operator<=>(const Predicate&, const Predicate&) = default;
};

inline bool holds(const Predicate& predicate, int64_t fact_value) {
  if (fact_value == kAbsent) return false;
  switch (predicate.relation) {
    case Relation::at_least: return fact_value >= predicate.value;
    case Relation::at_most: return fact_value <= predicate.value;
    case Relation::multiple_of: return predicate.value != 0 && fact_value % predicate.value == 0;
    case Relation::equals: return fact_value == predicate.value;
  }
  return false;
}
inline bool holds(const Predicate& predicate, const Signature& signature) {
  return holds(predicate, value_of(signature, predicate.fact));
}

}  // namespace opmux::registry
