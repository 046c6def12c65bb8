#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/operator.hpp>
#include <opmux/tensor.hpp>

#include "verify/call_view.hpp"

namespace opmux::conformance {

/// A tensor of a case: what it looks like and where it shall lie, not the memory itself.
struct CaseTensor : verify::Tensor {
  std::vector<int64_t> strides;   ///< in elements, never negative
  std::vector<std::byte> packed;  ///< the values as they lie in memory without gaps
  bool at_end = true;             ///< its last byte stands before a page that traps
  int64_t skip = 0;               ///< elements after such a page, if it stands at the front

  int64_t elements() const;
  /// Elements from the first to the last in memory, both counted; 0 if there is none.
  int64_t extent() const;
  /// Rounds the values to the dtype and packs them.
  void pack();
};

struct CaseArgument {
  const ArgumentInfo* info = nullptr;
  bool present = false;
  CaseTensor tensor;
  int64_t i64 = 0;  ///< also bool and enum position
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
  std::vector<int64_t> leading;  ///< what "..." stands for
  /// The data break a rule that the operator states: `invalid_argument` is the right answer.
  bool invalid = false;

  /// By name. The argument must exist; a tensor must be present.
  const CaseArgument& argument(std::string_view name) const;
  CaseArgument& argument(std::string_view name);
  const CaseTensor& tensor(std::string_view name) const { return argument(name).tensor; }
  bool has(std::string_view name) const { return argument(name).present; }
  int64_t rows() const;
  /// No output has an element: nothing runs.
  bool empty() const;

  /// As whoever judges it sees it.
  verify::CallView view() const;

  /// "x=bf16[3,5]{8,1} weight=none eps=1e-06": as `opmux explain` takes it.
  std::string text() const;
};

/// Visits the innermost runs of a strided tensor: visit(offset in elements), row-major.
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

}  // namespace opmux::conformance
