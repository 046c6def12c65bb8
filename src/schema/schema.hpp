#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/call_site.hpp>
#include <opmux/status.hpp>

#include "schema/expressions/where.hpp"

/// The schema of an operator, and the names that may occur in it.
/// registry/implementation/implementation_id.hpp has the names of providers and implementations.
namespace opmux::schema {

inline constexpr size_t kMaxNameBytes = 64;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_word_part(char c) { return is_word_start(c) || is_digit(c); }
bool is_upper_name(std::string_view word);  ///< [A-Z][A-Z0-9]*: a dimension or dtype variable
bool is_schema_keyword(std::string_view word);

std::string quote(std::string_view text);
/// Inverse of quote(); returns false for an unknown escape.
bool unquote(std::string_view quoted, std::string& text);

inline constexpr int kMaxDims = 32;  ///< named dimensions per schema

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
  int64_t constant = 0;  ///< the size if name < 0
};

/// A default value; `tag` says which member holds it. `none` = absent.
struct DefaultValue {
  ArgTag tag = ArgTag::none;
  int64_t i64 = 0;  ///< also holds a bool or an enum position
  double f64 = 0;
  std::string text;
  std::vector<int64_t> list;
  opmux_list span{};  ///< `text` or `list` as it is passed to kernels; points into this object

  DefaultValue() = default;
  DefaultValue(const DefaultValue& other) { *this = other; }
  DefaultValue& operator=(const DefaultValue& other);
  ~DefaultValue() = default;
  void point_inside();  ///< updates `span` after `text` or `list` was set
};

/// One argument of a schema.
struct ArgSpec {
  std::string name;
  ArgType type = ArgType::tensor;
  Access access = Access::in;
  bool optional = false;
  bool constant = false;           ///< `const`: kernels may keep a packed copy
  bool integer = false;            ///< this output is inferred as i64, whatever the inputs' dtypes
  bool any_shape = false;          ///< `[*]` or no brackets
  bool leading = false;            ///< starts with `...`
  std::vector<DimSpec> dims;       ///< dimensions after the leading ones
  int dtype_variable = -1;         ///< arguments with the same variable have the same dtype
  int alias_of = -1;               ///< `out(x) y`: y may be exactly the same memory as x
  std::vector<std::string> words;  ///< values of an enum
  std::optional<DefaultValue> default_value;  ///< optional arguments without one default to absent

  bool is_tensor() const { return type == ArgType::tensor; }
  bool written() const { return access != Access::in; }
  bool read() const { return access != Access::out; }
  /// Whether a caller may leave the argument out.
  bool omittable() const { return optional || default_value.has_value(); }
  /// The default as written in a schema; empty if there is none.
  std::string default_text() const;
};

/// The signature of one operator. All argument checks and shape inference derive from it. Immutable
/// once parsed.
class Schema {
 public:
  std::string name;
  std::vector<ArgSpec> args;
  std::vector<std::string> dims;  ///< names in order of first appearance
  std::vector<std::string> dtype_variables;
  std::vector<WhereExpression> where;  ///< conjuncts of the where clause
  /// The tensors of a call may be on several devices. Set by a line `#! mixed_devices` of the text;
  /// not part of the canonical spelling.
  bool mixed_devices = false;
  /// Only a language binding knows the arguments and results, and passes the tensors among the
  /// arguments as facts. Set by a line `#! opaque`, which also allows several devices; not part of
  /// the canonical spelling.
  bool opaque = false;

  int arg_index(std::string_view arg) const;  ///< -1 if unknown
  int dim_index(std::string_view dim) const;  ///< -1 if unknown
  bool has_leading() const;
  /// The names of sizes: the dimensions and, with leading ones, "rows".
  std::vector<std::string> size_names() const;

  /// The canonical spelling of one argument: "Tensor? weight[H]".
  std::string argument_text(size_t index) const;

  /// The canonical spelling: two texts define the same operator if these are equal.
  std::string canonical() const;
  /// Hash of the name and the first `count` arguments with their dimension names, without `where`.
  uint64_t prefix_hash(size_t count) const;
};

/// Parses one schema; `#` starts a comment. A line `#! mixed_devices` sets Schema::mixed_devices,
/// a line `#! opaque` sets Schema::opaque;
/// other words after `#!` have no effect here. Fails with `invalid_argument`; the message starts
/// with "line:column: ", says what was expected and suggests the nearest valid word for a misspelt
/// one. Reasons: "schema.syntax", "schema.unknown_type", "schema.name", "schema.duplicate_name",
/// "schema.unknown_name", "schema.access", "schema.argument_order", "schema.shape",
/// "schema.default", "schema.enum_word", "schema.where_type", "schema.limit".
Result<Schema> parse_schema(std::string_view text);

/// Checks that an implementation built for `older` can serve `current`: `current` may only add
/// trailing arguments that callers may leave out, and `where` conditions on those. Fails with
/// reason "schema.difference" and the first difference.
Status check_evolution(const Schema& older, const Schema& current);

/// Whether a name is `[a-z][a-z0-9_]*` and at most 64 bytes.
bool valid_name(std::string_view name);
/// Whether a name is an operator's: one valid name, or `vendor.name`.
bool valid_operator_name(std::string_view name);
/// Whether a name consists of valid names with dots between them: "gemm.tile_n".
bool valid_dotted_name(std::string_view name);

}  // namespace opmux::schema
