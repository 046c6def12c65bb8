#include "replay/placed_call.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/text.hpp"
#include "replay/recording.hpp"

namespace opmux::replay {
namespace {

constexpr int64_t kRoom = 64;   ///< padding in bytes before and after every tensor
constexpr int kPattern = 0xff;  ///< fill byte; a NaN in every float type

Status too_much() {
  return {Code::resource, "replay.size",
          base::concat("the tensors need more than ", kMostPlacedBytes >> 20, " MB")};
}

Status not_here(const RecordedArgument& argument) {
  return {Code::unsupported, "replay.device",
          base::concat(argument.name, " was on ", opmux::name_of(argument.tensor.device),
                       "; only calls on the CPU can be replayed")};
}

bool same_layout(const RecordedTensor& a, const RecordedTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace

PlacedCall::PlacedCall(const std::vector<RecordedArgument>& arguments)
    : recorded_(&arguments), first_(arguments.size()), tensors_(arguments.size()) {}

Result<PlacedCall> PlacedCall::place(const std::vector<RecordedArgument>& arguments) {
  PlacedCall call(arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].tag != ArgTag::tensor) continue;
    if (Status status = call.place_tensor(i); !status.ok()) return status;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& other = arguments[i].tensor.same_as;
    if (arguments[i].tag != ArgTag::tensor || other.empty()) continue;
    const auto at = std::ranges::find(arguments, other, &RecordedArgument::name);
    if (same_layout(at->tensor, arguments[i].tensor)) {
      call.first_[i] = call.first_[static_cast<size_t>(at - arguments.begin())];
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) call.add(i);
  return call;
}

std::byte* PlacedCall::memory_for(const RecordedTensor& tensor, int64_t bytes, int64_t before) {
  const int64_t step = 2 * tensor.alignment;
  const auto size = static_cast<size_t>(bytes + 2 * kRoom + 2 * step);
  memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
  std::byte* const memory = memory_.back().get();
  std::memset(memory, kPattern, size);
  // Align the first element to exactly the recorded alignment, not better.
  const auto lowest = reinterpret_cast<uintptr_t>(memory) + static_cast<uintptr_t>(kRoom + before);
  const auto unit = static_cast<uintptr_t>(step);
  const uintptr_t first = (lowest + unit - 1) / unit * unit + unit / 2;
  return memory + (first - reinterpret_cast<uintptr_t>(memory));
}

Status PlacedCall::place_tensor(size_t argument) {
  const RecordedTensor& tensor = (*recorded_)[argument].tensor;
  if (tensor.device.type != OPMUX_DEVICE_CPU) return not_here((*recorded_)[argument]);
  ElementRange range;
  int64_t bytes = 0;
  const int64_t size = tensor.dtype.size_bytes();
  if (!range_of(tensor.shape, tensor.strides, range) ||
      __builtin_sub_overflow(range.highest, range.lowest, &bytes) ||
      __builtin_add_overflow(bytes, 1, &bytes) || __builtin_mul_overflow(bytes, size, &bytes) ||
      bytes > left_ || tensor.elements() > kMostPlacedBytes) {
    return too_much();
  }
  left_ -= bytes;
  first_[argument] = memory_for(tensor, bytes, -range.lowest * size);
  if (!tensor.bytes.empty()) {
    scatter(tensor.bytes.data(), tensor.shape, tensor.strides, static_cast<size_t>(size),
            first_[argument]);
  }
  return {};
}

void PlacedCall::add(size_t argument) {
  const RecordedArgument& from = (*recorded_)[argument];
  opmux_arg arg{};
  arg.tag = static_cast<uint32_t>(from.tag);
  switch (from.tag) {
    case ArgTag::none: break;
    case ArgTag::tensor:
      // The const_casts are safe, because kernels do not write to shapes or strides. DLPack's
      // struct has no const.
      tensors_[argument] = {
          first_[argument],
          {OPMUX_DEVICE_CPU, 0},
          static_cast<int32_t>(from.tensor.shape.size()),
          {from.tensor.dtype.code, from.tensor.dtype.bits, from.tensor.dtype.lanes},
          const_cast<int64_t*>(from.tensor.shape.data()),
          const_cast<int64_t*>(from.tensor.strides.data()),
          0};
      arg.value.tensor = &tensors_[argument];
      break;
    case ArgTag::floating: arg.value.f64 = from.f64; break;
    case ArgTag::string: arg.value.list = {from.text.data(), from.text.size()}; break;
    case ArgTag::integer_list: arg.value.list = {from.list.data(), from.list.size()}; break;
    default: arg.value.i64 = from.i64; break;
  }
  args_.push_back(arg);
}

std::vector<std::byte> PlacedCall::elements(size_t argument) const {
  const RecordedTensor& tensor = (*recorded_)[argument].tensor;
  const auto size = static_cast<size_t>(tensor.dtype.size_bytes());
  std::vector<std::byte> packed(static_cast<size_t>(tensor.elements()) * size);
  gather(first_[argument], tensor.shape, tensor.strides, size, packed.data());
  return packed;
}

Status check_recorded(const schema::Schema& schema, const std::vector<RecordedArgument>& arguments,
                      schema::BoundDims& dims) {
  CallSite site;
  std::vector<ArgValue> values;
  std::deque<TensorView> views;
  std::deque<opmux_list> lists;
  for (const RecordedArgument& argument : arguments) {
    ArgValue value{};
    site.push(argument.tag);
    if (argument.tag == ArgTag::tensor) {
      const RecordedTensor& tensor = argument.tensor;
      value.tensor =
          &views.emplace_back(nullptr, tensor.dtype, tensor.shape, tensor.strides, tensor.device);
    } else if (argument.tag == ArgTag::string) {
      value.list = &lists.emplace_back(opmux_list{argument.text.data(), argument.text.size()});
    } else if (argument.tag == ArgTag::integer_list) {
      value.list = &lists.emplace_back(opmux_list{argument.list.data(), argument.list.size()});
    } else if (argument.tag == ArgTag::floating) {
      value.f64 = argument.f64;
    } else {
      value.i64 = argument.i64;
    }
    values.push_back(value);
  }
  schema::Arguments normal;
  if (Status status = normalise(schema, site, values.data(), normal); !status.ok()) return status;
  return check_arguments(schema, normal, dims);
}

}  // namespace opmux::replay
