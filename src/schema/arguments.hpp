#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <opmux/detail/call_site.hpp>
#include <opmux/status.hpp>

#include "schema/schema.hpp"

namespace opmux::schema {

/// Values of a call: its arguments, and the view of the instance that it goes through.
inline constexpr size_t kMaxValues = OPMUX_MAX_ARGS + 1;

/// All arguments of a call in schema order, with defaults filled in. Absent arguments have the tag
/// `none`; the value of an absent tensor still points to a view, which is not present().
struct Arguments {
  uint32_t count = 0;
  std::array<ArgTag, OPMUX_MAX_ARGS> tags{};
  std::array<ArgValue, kMaxValues> values{};
  /// Bit i: the caller passed argument i as a constant tensor. Bit `count`: the call goes through
  /// an instance, whose view is values[count].
  uint32_t constants = 0;

  bool has_instance() const { return (constants >> count & 1) != 0; }
};

/// Sizes that a call's tensors bind to a schema's dimension names.
struct BoundDims {
  std::array<int64_t, kMaxDims> values;  ///< -1 = not bound, because only absent tensors have it
  std::array<int64_t, OPMUX_MAX_RANK> leading;
  int leading_rank = -1;  ///< -1 = no argument with `...` is present
  int64_t rows = 1;       ///< product of the leading dimensions
};

/// The tag of an argument of this type.
ArgTag tag_of(ArgType type);

/// Brings a caller's arguments into schema order: fills in defaults, converts int to float where
/// the schema has a float, and a string to an enum's position. Fails with `invalid_argument`,
/// reason "schema.argument_count", "schema.argument_type", "schema.argument_missing" or
/// "schema.enum_word"; the message names the argument, the given and the expected value. A required
/// tensor that is passed but not present() is accepted, because outputs that are to be inferred
/// look like that. `out` owns nothing: it points to the caller's values and, for defaults of type
/// str and int[], into the schema.
Status normalise(const Schema& schema, const CallSite& site, const ArgValue* values,
                 Arguments& out);

/// Converts given arguments as normalise() does, so that they have the kinds of the schema: an int
/// for a float, the word of an enum, none for a scalar. Returns true if arguments were converted;
/// `exact` and `converted`, which has room for kMaxValues, then hold all given arguments.
/// Returns false if there is nothing to convert, or if normalise() would fail.
bool convert_given(const Schema& schema, const CallSite& site, const ArgValue* values,
                   CallSite& exact, ArgValue* converted);

/// The position of an argument by name. Fails with `not_found`, "schema.unknown_argument", and
/// suggests the nearest name.
Result<size_t> find_argument(const Schema& schema, std::string_view name);

/// Converts one given argument to the kind of the schema as normalise() does.
Status normalise_one(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value);
/// Sets an argument that was not given to its default, or to absent. Fails if it is required.
Status fill_in_one(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value);

/// Checks everything that a schema demands: presence, ranks (<= 8), non-negative dimensions whose
/// product in bytes fits in 63 bits (zeros counted as ones, so that strides fit too), equal sizes
/// for equal dimension names, constant dimensions, dtype ties, one device for all tensors (unless
/// Schema::mixed_devices), `where`. Memory that the CPU and a device share counts as both. A
/// condition that reads an absent dimension or argument is skipped. Allocates only for an error.
/// Fails with `invalid_argument`; the message names both arguments and both sizes. Fills
/// `dims.values` for the schema's dimension names. Reasons: "schema.argument_missing",
/// "schema.rank", "schema.dim_negative", "schema.size_overflow", "schema.dim_mismatch",
/// "schema.leading_mismatch", "schema.dtype_tie", "schema.device_mismatch", "schema.where".
Status check_arguments(const Schema& schema, const Arguments& arguments, BoundDims& dims);

/// True if a kernel could not access the elements of a tensor, because its data pointer is null.
inline bool lacks_data(const TensorView& tensor) {
  return tensor.c().data == nullptr && tensor.present() && tensor.elements() != 0;
}
/// Fails with `invalid_argument`, "schema.null_data", if a tensor lacks_data(). Called before a
/// kernel runs; a decision needs no data, so check_arguments() accepts such tensors.
Status check_data(const Schema& schema, const Arguments& arguments);

/// Two dimensions of two arguments that must be equal.
struct DimEquality {
  uint8_t arg_a, dim_a, arg_b, dim_b;
};
/// A dimension that must have a constant size.
struct DimConstant {
  uint8_t arg, dim;
  int64_t value;
};
/// The dimension checks of check_arguments(), for repeated calls in which only sizes change.
struct DimChecks {
  std::vector<DimEquality> equalities;
  std::vector<DimConstant> constants;
  /// Argument and dimension from which each name is read; arg = 255 if the name is not bound.
  std::array<uint8_t, kMaxDims> source_arg{};
  std::array<uint8_t, kMaxDims> source_dim{};
};
/// The checks for arguments that have the same presence and ranks as `example`.
DimChecks resolve_dim_checks(const Schema& schema, const Arguments& example);

/// Whether the byte ranges that two tensors span intersect.
bool overlap(const TensorView& a, const TensorView& b);

/// Fails with reason "schema.overlap" if an output overlaps another argument. `out(x) y` allows y
/// to be exactly the same memory as x, with the same shape and strides.
Status check_overlap(const Schema& schema, const Arguments& arguments);

/// Shape and dtype of a tensor that a call would write.
struct InferredTensor {
  int arg = 0;
  DType dtype;
  std::vector<int64_t> shape;
};

/// Infers shapes and dtypes of all `out` tensors from the other arguments; outputs in `arguments`
/// may be absent. A dimension that only outputs have is solved from `where` equalities such as
/// H2 == 2 * H. `out(x) y[*]` has the shape of x. The dtype is that of an input with the same dtype
/// variable, else that of the first input tensor. Optional outputs that cannot be inferred are left
/// out. Fails like check_arguments(), or with reason "schema.not_inferable" and the name of the
/// dimension.
Result<std::vector<InferredTensor>> infer_outputs(const Schema& schema, const Arguments& arguments);

}  // namespace opmux::schema
