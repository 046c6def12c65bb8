#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <opmux/call_site.hpp>
#include <opmux/status.hpp>

#include "registry/schema.hpp"

namespace opmux::registry {

/// All arguments of a call in schema order, defaults filled in. What is absent has the tag `none`;
/// the value of an absent tensor still points to a view, one that is not present().
struct Arguments {
  uint32_t count = 0;
  std::array<ArgTag, OPMUX_MAX_ARGS> tags{};
  std::array<ArgValue, OPMUX_MAX_ARGS> values{};
  uint32_t constants = 0;  ///< bit i: tensor i is a constant, with an owner of packed copies
};

/// The dimensions that a call's tensors give to a schema's names.
struct BoundDims {
  std::array<int64_t, kMaxDims> values;  ///< -1 = not bound (only absent optionals mention it)
  std::array<int64_t, OPMUX_MAX_RANK> leading;
  int leading_rank = -1;  ///< -1 = no argument with `...` is present
  int64_t rows = 1;       ///< product of the leading dimensions
};

/// What an argument of this type travels as.
ArgTag tag_of(ArgType type);

/// Puts what a caller passed into schema order: fills defaults, converts int to float where the
/// schema wants one, and a string to an enum's position. Fails with `invalid_argument`, reason
/// "schema.argument_count", "schema.argument_type", "schema.argument_missing", "schema.enum_word",
/// naming the argument, what was given and what is wanted. A required tensor that is given but not
/// present() passes: that is how outputs to be inferred look. `out` owns nothing: it points to the
/// caller's values and, for defaults of type str and int[], into the schema.
Status normalise(const Schema& schema, const CallSite& site, const ArgValue* values,
                 Arguments& out);

/// Everything a schema asks of its arguments: presence, ranks (<= 8), non-negative dimensions whose
/// product in bytes fits in 63 bits (zeros counted as ones, so that strides fit too), equal
/// dimensions by name, numbers, dtype ties, `where`. A condition about a dimension or argument that
/// is absent is not asked. Allocates only to fail. Fails with `invalid_argument`; the message names
/// both arguments and both numbers. `dims.values` is filled for the schema's own names. Reasons:
/// "schema.argument_missing", "schema.rank", "schema.dim_negative", "schema.size_overflow",
/// "schema.dim_mismatch", "schema.leading_mismatch", "schema.dtype_tie", "schema.where".
Status check_arguments(const Schema& schema, const Arguments& arguments, BoundDims& dims);

/// The equalities of check_arguments for arguments whose presence and ranks are those of `example`:
/// what has to be compared again when only dimensions changed.
struct DimEquality {
  uint8_t arg_a, dim_a, arg_b, dim_b;
};
struct DimConstant {
  uint8_t arg, dim;
  int64_t value;
};
struct DimChecks {
  std::vector<DimEquality> equalities;
  std::vector<DimConstant> constants;
  /// Where each name is read from: argument and dimension, arg = 255 if not bound.
  std::array<uint8_t, kMaxDims> source_arg{};
  std::array<uint8_t, kMaxDims> source_dim{};
};
DimChecks resolve_dim_checks(const Schema& schema, const Arguments& example);

/// Whether the byte ranges that two tensors span have a byte in common.
bool overlap(const TensorView& a, const TensorView& b);

/// Outputs may not overlap anything they are not declared to alias; `out(x) y` allows exactly the
/// same memory and strides. Reason "schema.overlap".
Status check_overlap(const Schema& schema, const Arguments& arguments);

/// Shape and dtype of a tensor that a call would write.
struct InferredTensor {
  int arg = 0;
  DType dtype;
  std::vector<int64_t> shape;
};

/// Shapes and dtypes of all `out` tensors from the other arguments (outputs in `arguments` may be
/// absent). A dimension that only outputs mention is solved from `where` equalities such as
/// H2 == 2 * H; `out(x) y[*]` has the shape of x. A dtype comes from its tie, else from the first
/// tensor that is read. Optional outputs that cannot be inferred are left out. Fails like
/// check_arguments, or with reason "schema.not_inferable", naming the dimension.
Result<std::vector<InferredTensor>> infer_outputs(const Schema& schema, const Arguments& arguments);

}  // namespace opmux::registry
