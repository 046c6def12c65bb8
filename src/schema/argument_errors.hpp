#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "schema/arguments.hpp"

namespace opmux::schema {

/// Values of int, bool and enum arguments by index, for `where`. Other elements are unspecified.
using Scalars = std::array<int64_t, OPMUX_MAX_ARGS>;

/// Errors for invalid arguments, with messages that name the argument. Called only for calls that
/// fail.
[[gnu::cold]] Status fail(const Schema& schema, std::string_view reason, std::string_view message);
Status fail_missing(const Schema& schema, size_t index);
Status fail_size(const Schema& schema, size_t index, const TensorView& tensor);
Status fail_rank(const Schema& schema, size_t index, const TensorView& tensor);
Status fail_constant(const Schema& schema, size_t index, size_t dim, int64_t found, int64_t wanted);
Status fail_dim(const Schema& schema, const Arguments& arguments, int name);
Status fail_leading(const Schema& schema, const Arguments& arguments);
Status fail_dtype(const Schema& schema, const Arguments& arguments, int variable);
Status fail_device(const Schema& schema, size_t index, Device device, size_t other,
                   Device other_device);
Status fail_data(const Schema& schema, size_t index, const TensorView& tensor);
Status fail_where(const Schema& schema, const WhereExpression& condition, const BoundDims& dims,
                  const Scalars& scalars);

}  // namespace opmux::schema
