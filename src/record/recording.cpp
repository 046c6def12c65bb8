#include "record/recording.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.hpp"

namespace opmux::record {
namespace {

constexpr std::array<std::string_view, 2> kCauses{"failed", "diverged"};
constexpr std::array<std::string_view, 5> kContents{"known", "written", "unknown", "elsewhere",
                                                    "large"};

bool row_major(const RecordedTensor& tensor) {
  int64_t step = 1;
  for (size_t i = tensor.shape.size(); i > 0; --i) {
    if (tensor.shape[i - 1] != 1 && tensor.strides[i - 1] != step) return false;
    if (__builtin_mul_overflow(step, std::max<int64_t>(tensor.shape[i - 1], 1), &step))
      return false;
  }
  return true;
}

std::string tensor_text(const RecordedTensor& tensor) {
  std::string text = base::concat(name_of(tensor.dtype), "[", base::join(tensor.shape, ","), "]");
  if (row_major(tensor)) return text;
  return base::concat(text, "{", base::join(tensor.strides, ","), "}");
}

std::string value_text(const RecordedArgument& argument) {
  switch (argument.tag) {
    case ArgTag::tensor: return tensor_text(argument.tensor);
    case ArgTag::floating: return base::number_text(argument.f64);
    case ArgTag::logical: return argument.i64 != 0 ? "true" : "false";
    case ArgTag::string: return "'" + argument.text + "'";
    case ArgTag::integer_list: return "[" + base::join(argument.list, ",") + "]";
    case ArgTag::none: return "none";
    default: return std::to_string(argument.i64);
  }
}

}  // namespace

std::string_view name_of(Cause cause) { return kCauses[static_cast<size_t>(cause)]; }
std::string_view name_of(Contents contents) { return kContents[static_cast<size_t>(contents)]; }

int64_t RecordedTensor::elements() const {
  int64_t all = 1;
  for (const int64_t size : shape) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(all, size, &all)) return std::numeric_limits<int64_t>::max();
  }
  return all;
}

const RecordedArgument* Recording::find(std::string_view argument) const {
  const auto found = std::ranges::find(arguments, argument, &RecordedArgument::name);
  return found == arguments.end() ? nullptr : &*found;
}

bool Recording::complete() const {
  return std::ranges::all_of(arguments, [](const RecordedArgument& argument) {
    const RecordedTensor& tensor = argument.tensor;
    if (argument.tag != ArgTag::tensor || tensor.contents == Contents::written) return true;
    return !tensor.bytes.empty() || tensor.elements() == 0;
  });
}

std::string Recording::arguments_text() const {
  std::string text;
  for (const RecordedArgument& argument : arguments) {
    if (!text.empty()) text += " ";
    text += argument.name + "=" + value_text(argument);
  }
  return text;
}

}  // namespace opmux::record
