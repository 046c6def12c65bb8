#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "registry/argument_errors.hpp"
#include "registry/arguments.hpp"

namespace opmux::registry {

/// Reads what `where` can read.
void read_scalars(const Arguments& arguments, Scalars& scalars);

/// Compares arguments with a schema one by one, giving dimensions to names on the way. The parts of
/// check_arguments, for those who check only some of the arguments.
class DimBinder {
 public:
  DimBinder(const Schema& schema, const Arguments& arguments, BoundDims& dims);

  /// Presence, size, shape and dtype of one argument against those seen before.
  Status bind(size_t index);
  /// Every condition of `where` whose dimensions and arguments are all known.
  Status check_where() const;

 private:
  Status check_size(size_t index, const TensorView& tensor) const;
  Status bind_tensor(size_t index, const TensorView& tensor);
  Status bind_list(size_t index);
  Status bind_leading(const TensorView& tensor, int leading_rank);
  Status bind_dtype(size_t index, const TensorView& tensor);

  const Schema& schema_;
  const Arguments& arguments_;
  BoundDims& dims_;
  std::array<uint32_t, OPMUX_MAX_ARGS> dtypes_;  ///< by variable; 0 = not seen
};

}  // namespace opmux::registry
