#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/operator.hpp>
#include <opmux/tensor.hpp>

#include "verify/call_copy.hpp"

namespace opmux::conformance {

/// A tensor of a case: values, layout and placement, but not the memory that a call uses.
struct CaseTensor : verify::Tensor {
  std::vector<int64_t> strides;   ///< in elements; never negative
  std::vector<std::byte> packed;  ///< the values in the tensor's dtype, contiguous
  bool at_end = true;             ///< place the last byte directly before a guard page
  int64_t skip = 0;               ///< if not at_end: elements between guard page and tensor

  int64_t elements() const;
  /// Elements from the first to the last in memory, inclusive; 0 if the tensor is empty.
  int64_t extent() const;
  /// Rounds the values to the dtype and packs them.
  void pack();
};

/// One argument of a case.
struct CaseArgument {
  const ArgumentInfo* info = nullptr;
  bool present = false;
  CaseTensor tensor;
  int64_t i64 = 0;  ///< also holds a bool or an enum position
  double f64 = 0;

  bool is_tensor() const { return info->type == ArgTag::tensor; }
  bool written() const { return is_tensor() && present && (info->output || info->updated); }
  bool read() const { return is_tensor() && present && !info->output; }
};

/// One generated call. The infos that its arguments point to must outlive it.
struct Case {
  std::string op;
  uint64_t seed = 0, number = 0;
  std::vector<CaseArgument> arguments;
  std::vector<int64_t> leading;  ///< the dimensions of "..."
  /// The data violate a rule of the operator, so that `invalid_argument` is the correct result.
  bool invalid = false;

  /// Finds an argument by name. The argument must exist; tensor() requires a present tensor.
  const CaseArgument& argument(std::string_view name) const;
  CaseArgument& argument(std::string_view name);
  const CaseTensor& tensor(std::string_view name) const { return argument(name).tensor; }
  bool has(std::string_view name) const { return argument(name).present; }
  int64_t rows() const;
  /// Whether all outputs are empty, so that no implementation runs.
  bool empty() const;

  /// The view of the case that the verifier judges.
  verify::CallView view() const;

  /// The case in the syntax of `opmux explain`: "x=bf16[3,5]{8,1} weight=none eps=1e-06".
  std::string text() const;
};

/// Calls visit(offset in elements) for each innermost row of a strided tensor, in row-major order.
template <class Visit>
void for_each_run(const CaseTensor& tensor, Visit&& visit) {
  if (tensor.elements() == 0) return;
  const size_t rank = tensor.shape.empty() ? 0 : tensor.shape.size() - 1;
  std::vector<int64_t> index(rank, 0);
  for (int64_t offset = 0;;) {
    visit(offset);
    size_t i = rank;
    for (; i > 0; --i) {
      offset += tensor.strides[i - 1];
      if (++index[i - 1] < tensor.shape[i - 1]) break;
      offset -= index[i - 1] * tensor.strides[i - 1];
      index[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

/// The number of independent rows of a case: those of "...", or of the dimension `batch`.
int64_t batch_size(const Case& c, std::string_view batch);

/// A copy of the case with only one row in each tensor that has rows.
Case alone(const Case& c, std::string_view batch, int64_t row);

/// The bytes of one row of a tensor's packed elements; all bytes if the tensor has no rows.
std::vector<std::byte> row_of(const CaseArgument& argument, const Case& c, std::string_view batch,
                              int64_t row, const std::vector<std::byte>& packed);

}  // namespace opmux::conformance
