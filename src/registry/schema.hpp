#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/call_site.hpp>
#include <opmux/status.hpp>

#include "registry/where.hpp"

namespace opmux::registry {

inline constexpr int kMaxDims = 32;  ///< named dimensions of one schema

enum class ArgType : uint8_t {
  tensor,
  tensor_list,
  integer,
  floating,
  boolean,
  enumeration,
  string,
  int_list,
};

enum class Access : uint8_t { in, out, inout };

/// One dimension of a tensor argument: a name (index into Schema::dims) or a number.
struct DimSpec {
  int name = -1;
  int64_t constant = 0;  ///< if name < 0
};

/// A default; which member counts follows from the argument's type. `none` = absent.
struct DefaultValue {
  ArgTag tag = ArgTag::none;
  int64_t i64 = 0;  ///< also bool and enum position
  double f64 = 0;
  std::string text;
  std::vector<int64_t> list;
  opmux_list span{};  ///< text or list in the form in which it travels; points into this value

  DefaultValue() = default;
  DefaultValue(const DefaultValue& other) { *this = other; }
  DefaultValue& operator=(const DefaultValue& other);
  ~DefaultValue() = default;
  void point_inside();  ///< after text or list were set
};

struct ArgSpec {
  std::string name;
  ArgType type = ArgType::tensor;
  Access access = Access::in;
  bool optional = false;
  bool constant = false;           ///< `const`: may be packed, given an owner
  bool integer = false;            ///< an output that is made of integers, whatever is read
  bool any_shape = false;          ///< `[*]`, or no brackets at all
  bool leading = false;            ///< starts with `...`
  std::vector<DimSpec> dims;       ///< after the leading ones
  int dtype_variable = -1;         ///< arguments with the same number have one dtype
  int alias_of = -1;               ///< `out(x) y`: may be the very same memory as argument x
  std::vector<std::string> words;  ///< of an enum
  std::optional<DefaultValue> default_value;  ///< an optional without one defaults to absent

  bool is_tensor() const { return type == ArgType::tensor; }
  bool written() const { return access != Access::in; }
  bool read() const { return access != Access::out; }
  /// May be left out by a caller.
  bool omittable() const { return optional || default_value.has_value(); }
  /// The default as a schema spells it; empty if there is none.
  std::string default_text() const;
};

/// The signature of one operator, the only source of argument checks and shape inference.
/// Immutable once parsed.
class Schema {
 public:
  std::string name;
  std::vector<ArgSpec> args;
  std::vector<std::string> dims;  ///< names in order of first appearance
  std::vector<std::string> dtype_variables;
  std::vector<WhereExpression> where;  ///< conjuncts

  int arg_index(std::string_view arg) const;  ///< -1 if unknown
  int dim_index(std::string_view dim) const;  ///< -1 if unknown
  bool has_leading() const;

  /// The canonical spelling of one argument: "Tensor? weight[H]".
  std::string argument_text(size_t index) const;

  /// The one spelling of this schema: two texts mean the same operator if these are equal.
  std::string canonical() const;
  /// Of name and the first `count` arguments, names of dimensions included; `where` excluded.
  uint64_t prefix_hash(size_t count) const;
};

/// Parses one schema; `#` starts a comment. Failure is `invalid_argument` whose message starts with
/// "line:column: ", says what was expected there and, for a misspelt word, the nearest valid one.
/// Reasons: "schema.syntax", "schema.unknown_type", "schema.name", "schema.duplicate_name",
/// "schema.unknown_name", "schema.access", "schema.argument_order", "schema.shape",
/// "schema.default", "schema.enum_word", "schema.where_type", "schema.limit".
Result<Schema> parse_schema(std::string_view text);

/// Whether an implementation written against `older` can serve `current`: `older` must be `current`
/// without some trailing arguments that may be left out; `where` may grow only by conditions on
/// those. Spells out the first difference. Reason "schema.difference".
Status check_evolution(const Schema& older, const Schema& current);

}  // namespace opmux::registry
