#include "conformance/slice.hpp"

#include <algorithm>

#include "conformance/layout.hpp"

namespace opmux::conformance {
namespace {

/// Position of the rows in a tensor's packed form: `outer` x `rows` x `inner` elements.
struct Split {
  int64_t outer = 1, rows = 1, inner = 1;
  bool has_rows = false;
};

Split split_of(const CaseArgument& argument, const Case& c, std::string_view batch) {
  Split split;
  const std::vector<std::string>& dims = argument.info->dims;
  const std::vector<int64_t>& shape = argument.tensor.shape;
  const bool leading = !dims.empty() && dims[0] == "...";
  const size_t skip = leading ? c.leading.size() : 0;
  if (batch.empty()) {
    split.has_rows = leading;
    if (leading) split.rows = c.rows();
    for (size_t i = skip; i < shape.size(); ++i) split.inner *= shape[i];
    return split;
  }
  const auto at = std::ranges::find(dims, batch);
  split.has_rows = at != dims.end();
  const auto position = static_cast<size_t>(at - dims.begin());
  for (size_t i = 0; i < shape.size(); ++i) {
    (i < position ? split.outer : i == position ? split.rows : split.inner) *= shape[i];
  }
  if (!split.has_rows) split = {1, 1, split.outer, false};
  return split;
}

template <class T>
std::vector<T> cut(const Split& split, int64_t row, const std::vector<T>& all, size_t unit) {
  std::vector<T> part;
  const size_t block = static_cast<size_t>(split.inner) * unit;
  for (int64_t o = 0; o < split.outer; ++o) {
    const auto from = all.begin() + (o * split.rows + row) * static_cast<int64_t>(block);
    part.insert(part.end(), from, from + static_cast<int64_t>(block));
  }
  return part;
}

std::vector<int64_t> one_row(const CaseArgument& argument, const Case& c, std::string_view batch) {
  std::vector<int64_t> shape = argument.tensor.shape;
  if (batch.empty()) {
    std::fill_n(shape.begin(), c.leading.size(), 1);
  } else {
    const std::vector<std::string>& dims = argument.info->dims;
    shape[static_cast<size_t>(std::ranges::find(dims, batch) - dims.begin())] = 1;
  }
  return shape;
}

}  // namespace

int64_t batch_size(const Case& c, std::string_view batch) {
  for (const CaseArgument& argument : c.arguments) {
    if (!argument.written()) continue;
    const Split split = split_of(argument, c, batch);
    return split.has_rows ? split.rows : 1;
  }
  return 1;
}

Case alone(const Case& c, std::string_view batch, int64_t row) {
  Case single = c;
  for (CaseArgument& argument : single.arguments) {
    if (!argument.is_tensor() || !argument.present) continue;
    const Split split = split_of(argument, c, batch);
    if (!split.has_rows) continue;
    if (argument.read()) {
      argument.tensor.values = cut(split, row, argument.tensor.values, 1);
      argument.tensor.pack();
    }
    argument.tensor.shape = one_row(argument, c, batch);
  }
  if (batch.empty()) std::ranges::fill(single.leading, 1);
  return single;
}

std::vector<std::byte> row_of(const CaseArgument& argument, const Case& c, std::string_view batch,
                              int64_t row, const std::vector<std::byte>& packed) {
  const Split split = split_of(argument, c, batch);
  if (!split.has_rows) return packed;
  return cut(split, row, packed, static_cast<size_t>(argument.tensor.dtype.size_bytes()));
}

}  // namespace opmux::conformance
