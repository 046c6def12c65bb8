#include "conformance/case.hpp"

#include <algorithm>
#include <cstdio>

#include "conformance/draft.hpp"
#include "verify/bounds.hpp"

namespace opmux::conformance {
namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) all *= size;
  return all;
}

std::string list_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) {
    if (!text.empty()) text += ",";
    text += std::to_string(number);
  }
  return text;
}

bool row_major(const CaseTensor& tensor) {
  int64_t step = 1;
  for (size_t i = tensor.shape.size(); i > 0; --i) {
    if (tensor.strides[i - 1] != step) return false;
    step *= std::max<int64_t>(tensor.shape[i - 1], 1);
  }
  return true;
}

std::string tensor_text(const CaseTensor& tensor) {
  std::string text = name_of(tensor.dtype) + "[" + list_text(tensor.shape) + "]";
  return row_major(tensor) ? text : text + "{" + list_text(tensor.strides) + "}";
}

std::string value_text(const CaseArgument& argument) {
  if (!argument.present) return "none";
  switch (argument.info->type) {
    case ArgTag::tensor: return tensor_text(argument.tensor);
    case ArgTag::enumeration: return argument.info->words[static_cast<size_t>(argument.i64)];
    case ArgTag::logical: return argument.i64 != 0 ? "true" : "false";
    case ArgTag::floating: {
      char text[32];
      std::snprintf(text, sizeof text, "%g", argument.f64);
      return text;
    }
    default: return std::to_string(argument.i64);
  }
}

}  // namespace

int64_t CaseTensor::elements() const { return product(shape); }

int64_t CaseTensor::extent() const {
  if (elements() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  return last + 1;
}

void CaseTensor::pack() {
  const auto size = static_cast<size_t>(dtype.size_bytes());
  packed.resize(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = verify::rounded(values[i], dtype);
    verify::write_element(packed.data() + i * size, dtype, values[i]);
  }
}

const CaseArgument& Case::argument(std::string_view name) const {
  return *std::ranges::find_if(arguments,
                               [&](const CaseArgument& a) { return a.info->name == name; });
}

CaseArgument& Case::argument(std::string_view name) {
  return const_cast<CaseArgument&>(std::as_const(*this).argument(name));
}

int64_t Case::rows() const { return product(leading); }

bool Case::empty() const {
  return std::ranges::none_of(arguments, [](const CaseArgument& argument) {
    return argument.written() && argument.tensor.elements() > 0;
  });
}

verify::CallView Case::view() const {
  verify::CallView view{op, {}};
  for (const CaseArgument& argument : arguments) {
    const bool is_tensor = argument.is_tensor() && argument.present;
    view.arguments.push_back({argument.info->name, argument.present,
                              is_tensor ? &argument.tensor : nullptr, argument.written(),
                              !argument.info->dtype_variable.empty(), argument.i64, argument.f64});
  }
  return view;
}

std::string Case::text() const {
  std::string text;
  for (const CaseArgument& argument : arguments) {
    // A scalar that takes its default is not printed.
    if (!argument.present && argument.info->type != ArgTag::tensor) continue;
    if (!text.empty()) text += " ";
    text += argument.info->name + "=" + value_text(argument);
  }
  return text;
}

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
