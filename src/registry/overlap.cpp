#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "registry/arguments.hpp"

namespace opmux::registry {
namespace {

using base::concat;
__extension__ typedef __int128 Wide;

/// Larger than every address, and small enough that sums and products of it fit in a Wide.
constexpr Wide kFar = Wide{1} << 90;

struct Range {
  Wide begin;
  Wide end;
};

/// Byte range from the lowest to the highest element, relative to address 0 or to the start of a
/// handle's memory. Negative strides extend it below the first element.
Range range_of(const TensorView& tensor) {
  Wide lowest = 0, highest = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    const Wide reach = std::clamp(Wide{tensor.stride(i)} * (tensor.dim(i) - 1), -kFar, kFar);
    (reach < 0 ? lowest : highest) += reach;
  }
  const Wide size = tensor.dtype().size_bytes();
  const Wide first = has_handles(tensor.device())
                         ? Wide{tensor.c().byte_offset}
                         : static_cast<Wide>(reinterpret_cast<uintptr_t>(tensor.data()));
  return {first + lowest * size, first + (highest + 1) * size};
}

bool identical(const TensorView& a, const TensorView& b) {
  return a.same_start(b) && a.dtype() == b.dtype() && a.rank() == b.rank() &&
         std::equal(a.shape_words(), a.shape_words() + a.rank(), b.shape_words()) &&
         std::equal(a.stride_words(), a.stride_words() + a.rank(), b.stride_words());
}

struct Placed {
  int arg;
  const TensorView* tensor;
};

std::vector<Placed> tensors_of(const Arguments& arguments) {
  std::vector<Placed> all;
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const int arg = static_cast<int>(i);
    if (arguments.tags[i] == ArgTag::tensor) all.push_back({arg, arguments.values[i].tensor});
    if (arguments.tags[i] != ArgTag::tensor_list) continue;
    const opmux_list& list = *arguments.values[i].list;
    const auto* tensors = static_cast<const TensorView* const*>(list.data);
    for (uint64_t k = 0; k < list.size; ++k) all.push_back({arg, tensors[k]});
  }
  return all;
}

bool may_alias(const Schema& schema, const Placed& a, const Placed& b) {
  const bool declared =
      schema.args[a.arg].alias_of == b.arg || schema.args[b.arg].alias_of == a.arg;
  return declared && identical(*a.tensor, *b.tensor);
}

Status fail_overlap(const Schema& schema, const Placed& written, const Placed& other) {
  const std::string& output = schema.args[written.arg].name;
  const std::string& name = schema.args[other.arg].name;
  const bool declared = schema.args[written.arg].alias_of == other.arg;
  return {Code::invalid_argument, "schema.overlap",
          concat(schema.name, ": '", output, "' is written and overlaps '", name, "'",
                 declared ? "; only exactly the same memory, shape and strides are allowed" : "")};
}

}  // namespace

bool overlap(const TensorView& a, const TensorView& b) {
  if (!a.present() || !b.present() || a.device() != b.device()) return false;
  if (a.elements() == 0 || b.elements() == 0) return false;
  // Different handles may belong to one allocation, but only the driver knows, so they count as
  // disjoint.
  if (has_handles(a.device()) && a.c().data != b.c().data) return false;
  const Range first = range_of(a), second = range_of(b);
  return first.begin < second.end && second.begin < first.end;
}

Status check_overlap(const Schema& schema, const Arguments& arguments) {
  const std::vector<Placed> tensors = tensors_of(arguments);
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = i + 1; j < tensors.size(); ++j) {
      const Placed &a = tensors[i], &b = tensors[j];
      const bool a_written = schema.args[a.arg].written();
      if (!a_written && !schema.args[b.arg].written()) continue;
      if (!overlap(*a.tensor, *b.tensor) || may_alias(schema, a, b)) continue;
      return a_written ? fail_overlap(schema, a, b) : fail_overlap(schema, b, a);
    }
  }
  return {};
}

}  // namespace opmux::registry
