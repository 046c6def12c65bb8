#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "schema/argument_errors.hpp"
#include "schema/arguments.hpp"

namespace opmux::schema {

/// Fills in the int, bool and enum arguments, which `where` conditions read.
void read_scalars(const Arguments& arguments, Scalars& scalars);

/// Checks arguments against a schema one by one and binds dimension names to sizes. These are the
/// steps of check_arguments(), for callers that check only some of the arguments.
class DimBinder {
 public:
  DimBinder(const Schema& schema, const Arguments& arguments, BoundDims& dims);

  /// Checks presence, size, shape, dtype and device of one argument against those bound before.
  Status bind(size_t index);
  /// Checks every condition of `where` whose dimensions and arguments are all known.
  Status check_where() const;

 private:
  Status check_size(size_t index, const TensorView& tensor) const;
  Status bind_tensor(size_t index, const TensorView& tensor);
  Status bind_list(size_t index);
  Status bind_leading(const TensorView& tensor, int leading_rank);
  Status bind_dtype(size_t index, const TensorView& tensor);
  Status bind_device(size_t index, const TensorView& tensor);

  const Schema& schema_;
  const Arguments& arguments_;
  BoundDims& dims_;
  std::array<uint32_t, OPMUX_MAX_ARGS> dtypes_;  ///< packed dtype by variable; 0 = not bound
  Device device_;                                ///< of the tensors, as bound by `device_arg_`
  int device_arg_ = -1;                          ///< -1 = not bound
};

}  // namespace opmux::schema
