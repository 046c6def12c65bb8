#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schema/arguments.hpp"
#include "schema/schema.hpp"

namespace opmux::schema {

/// Kinds of facts that a decision may depend on; values are those of OPMUX_FACT_*.
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
  inner_contiguous = 32,  ///< the last dimension has stride 1; not in the ABI
  is_default = 33,        ///< a string or list has its default value; not in the ABI
  threads = 34,           ///< number of threads that the call may use; not in the ABI
};

inline constexpr uint8_t kRowsDim = kMaxDims;  ///< index of "rows" among the dimensions

/// Bits of Signature::ambient, in the order of kAmbientNames.
inline constexpr uint32_t kGrad = 1, kCapturing = 2, kDeterministic = 4, kTraining = 8,
                          kInference = 16, kAutocast = 32;
inline constexpr std::array<std::string_view, 7> kAmbientNames{
    "grad", "capturing", "deterministic", "training", "inference", "autocast", "instance"};
/// Index of "instance": whether the call goes through an Instance. It has no bit, because the
/// arguments say it.
inline constexpr uint8_t kInstanceFact = 6;
/// Whether rules and verifiers know an ambient fact by this name.
constexpr bool is_ambient(std::string_view name) {
  return std::find(kAmbientNames.begin(), kAmbientNames.end(), name) != kAmbientNames.end();
}

/// Ambient facts that are numbers. Their indices follow those of kAmbientNames.
inline constexpr std::array<std::string_view, 2> kRankNames{"rank", "tp_size"};
inline constexpr uint8_t kFirstRank = kAmbientNames.size();

/// One fact of one schema: a kind and the argument, dimension or ambient bit it is about.
struct Fact {
  FactKind kind = FactKind::dtype;
  uint8_t index = 0;
  friend constexpr auto operator<=>(const Fact&, const Fact&) = default;
};

/// Whether the fact is one of kRankNames.
constexpr bool is_rank(Fact fact) {
  return fact.kind == FactKind::ambient && fact.index >= kFirstRank;
}

/// A fact by name, before resolve_fact().
struct FactName {
  FactKind kind = FactKind::dtype;
  std::string name;
  friend bool operator==(const FactName&, const FactName&) = default;
};

/// Whether a bare name in a condition or lockfile is an ambient fact. Schemas that are older than
/// "inference", "autocast", "instance" and kRankNames may have an argument or dimension of that
/// name, which it then means.
bool means_ambient(const Schema& schema, std::string_view name);

/// Resolves a name in a schema; nullopt if the schema has no such argument or dimension, or if the
/// kind does not apply to it.
std::optional<Fact> resolve_fact(const Schema& schema, FactKind kind, std::string_view name);

/// A fact as explain prints it: "dtype(x)", "H", "contiguous(x)", "eps", "deterministic".
std::string describe(const Schema& schema, Fact fact);

/// The value of facts about absent tensors, unbound dimensions and strings.
inline constexpr int64_t kAbsent = INT64_MIN;

/// The place of this process among those that share a model, as the program states it: the facts
/// kRankNames. Thread-safe.
class RankFacts {
 public:
  /// Numbers are at most this, so that a class key holds them in 16 bits.
  static constexpr int kHighest = 65'000;

  /// nullopt: not stated.
  void set(std::optional<int> rank, std::optional<int> tp_size) {
    const auto word = [](std::optional<int> value) {
      return value ? static_cast<uint64_t>(*value) + 1 : 0;
    };
    stated_.store(word(rank) | word(tp_size) << 32, std::memory_order_release);
  }
  /// The value of the fact with this index in kRankNames.
  int64_t value(size_t index) const {
    const auto word = static_cast<uint32_t>(stated_.load(std::memory_order_acquire) >> 32 * index);
    return word == 0 ? kAbsent : int64_t{word} - 1;
  }

 private:
  std::atomic<uint64_t> stated_{0};  ///< both, so that a decision sees them change together
};

/// The inputs of a decision: checked arguments, bound dimensions, the thread's ambient flags and
/// tag. Borrows everything.
struct Signature {
  const Schema* schema = nullptr;
  const Arguments* arguments = nullptr;
  const BoundDims* dims = nullptr;
  uint32_t ambient = 0;
  uint32_t tag = 0;
  const RankFacts* ranks = nullptr;  ///< null: not stated
  int32_t threads = 0;               ///< that the call may use; 0: not known
};

/// The word of a float: its bits. -0.0 gives those of 0.0, because the bits of -0.0 are kAbsent.
inline int64_t float_fact(double value) { return value == 0 ? 0 : std::bit_cast<int64_t>(value); }

/// The value of any fact except a dimension; kAbsent if it has none. A float gives float_fact().
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

/// Whether an argument of a checked call has the value that omitting it would give.
bool has_default(const ArgSpec& spec, ArgTag tag, ArgValue value);

/// Function object that returns a signature's value of a fact.
struct FactsOf {
  const Signature& signature;
  int64_t operator()(Fact fact) const { return value_of(signature, fact); }
};

/// A fact about one tensor (dtype, rank, device, contiguous, alignment, layout ...).
int64_t tensor_fact(const TensorView& tensor, FactKind kind);

/// Dimensions of a tensor in descending order of stride, four bits each; the dimension with the
/// largest stride is in the lowest bits.
int64_t layout_of(const TensorView& tensor);
/// Parses an order such as "0213" into that form; nullopt if it is not a permutation of at most 8
/// dimensions.
std::optional<int64_t> parse_layout(std::string_view order);

/// The largest power of two up to 4096 that divides the address of the first element.
int64_t alignment_of(const TensorView& tensor);

enum class Relation : uint8_t {
  at_least = OPMUX_AT_LEAST,
  at_most = OPMUX_AT_MOST,
  multiple_of = OPMUX_MULTIPLE_OF,
  equals = OPMUX_EQUALS,
};

/// A comparison of one fact with a constant. False if the fact is absent.
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

}  // namespace opmux::schema
