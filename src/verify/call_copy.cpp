#include "verify/call_copy.hpp"

#include <cstring>

#include "verify/bounds.hpp"
#include "verify/expected.hpp"

namespace opmux::verify {
namespace {

const opmux_arg& argument_of(const opmux_call& call, uint32_t i) {
  const auto* first = reinterpret_cast<const std::byte*>(call.args);
  return *reinterpret_cast<const opmux_arg*>(first + size_t{i} * call.arg_stride);
}

size_t packed_size(const TensorView& tensor) {
  return static_cast<size_t>(tensor.elements()) * static_cast<size_t>(tensor.dtype().size_bytes());
}

/// packed_size() rounded up to 64 bytes, so that the next copy is aligned.
size_t place_of(const TensorView& tensor) {
  constexpr size_t kRound = 64;
  return (packed_size(tensor) + kRound - 1) / kRound * kRound;
}

/// Copies the elements of a tensor, row-major, to packed memory.
void pack(const TensorView& tensor, std::byte* to) {
  const auto size = static_cast<size_t>(tensor.dtype().size_bytes());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  if (tensor.contiguous()) {
    std::memcpy(to, from, packed_size(tensor));
    return;
  }
  const int rank = tensor.rank(), last = rank - 1;
  const int64_t count = tensor.dim(last), stride = tensor.stride(last);
  int64_t index[OPMUX_MAX_RANK] = {};
  int64_t offset = 0;
  for (int dim = 0; dim >= 0;) {
    const std::byte* run = from + offset * static_cast<int64_t>(size);
    if (stride == 1) {
      std::memcpy(to, run, static_cast<size_t>(count) * size);
      to += static_cast<size_t>(count) * size;
    } else {
      for (int64_t i = 0; i < count; ++i, to += size)
        std::memcpy(to, run + i * stride * static_cast<int64_t>(size), size);
    }
    for (dim = last - 1; dim >= 0; --dim) {
      offset += tensor.stride(dim);
      if (++index[dim] < tensor.dim(dim)) break;
      offset -= index[dim] * tensor.stride(dim);
      index[dim] = 0;
    }
  }
}

CopiedArgument facts_of(const opmux_arg& arg) {
  CopiedArgument copied;
  copied.tag = arg.tag;
  if (arg.tag == OPMUX_ARG_F64) {
    copied.f64 = arg.value.f64;
  } else if (arg.tag != OPMUX_ARG_TENSOR && arg.tag != OPMUX_ARG_NONE) {
    copied.i64 = arg.value.i64;
  }
  if (arg.tag != OPMUX_ARG_TENSOR) return copied;
  const TensorView tensor(*arg.value.tensor);
  copied.read = (arg.flags & OPMUX_ACCESS_IN) != 0;
  copied.written = (arg.flags & OPMUX_ACCESS_OUT) != 0;
  copied.dtype = tensor.dtype();
  copied.device = tensor.device();
  copied.rank = static_cast<uint32_t>(tensor.rank());
  for (int i = 0; i < tensor.rank(); ++i) {
    copied.shape[static_cast<size_t>(i)] = tensor.dim(i);
    copied.strides[static_cast<size_t>(i)] = tensor.stride(i);
  }
  copied.misalignment = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(tensor.data()) % 4096);
  return copied;
}

}  // namespace

NoCopy CallCopy::obstacle(const opmux_call& call) {
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    const opmux_arg& arg = argument_of(call, i);
    if (arg.tag >= OPMUX_ARG_STR) return NoCopy::arguments;
    if (arg.tag != OPMUX_ARG_TENSOR) continue;
    const TensorView tensor(*arg.value.tensor);
    if (tensor.device().type != OPMUX_DEVICE_CPU) return NoCopy::device;
    if (!comparable(tensor.dtype())) return NoCopy::arguments;
  }
  return NoCopy::none;
}

size_t CallCopy::bytes_of(const opmux_call& call) {
  size_t all = 0;
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    const opmux_arg& arg = argument_of(call, i);
    if (arg.tag != OPMUX_ARG_TENSOR) continue;
    const size_t size = place_of(TensorView(*arg.value.tensor));
    all += size * ((arg.flags & OPMUX_ACCESS_INOUT) == OPMUX_ACCESS_INOUT ? 2 : 1);
  }
  return all;
}

CallCopy::CallCopy(const opmux_call& call)
    : bytes_(bytes_of(call)), tag_(static_cast<uint32_t>(call.tag)) {
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes_);
  arguments_.reserve(call.arg_count);
  std::byte* free = memory_.get();
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    const opmux_arg& arg = argument_of(call, i);
    CopiedArgument& copied = arguments_.emplace_back(facts_of(arg));
    if (!copied.is_tensor()) continue;
    const TensorView tensor(*arg.value.tensor);
    const size_t size = packed_size(tensor), place = place_of(tensor);
    if (copied.read) {
      copied.before = {free, size};
      if (size != 0) pack(tensor, free);
      free += place;
    }
    if (copied.written) {
      copied.after = {free, size};
      free += place;
    }
  }
}

void CallCopy::take_outputs(const opmux_call& call) {
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    CopiedArgument& copied = arguments_[i];
    if (!copied.written || copied.after.empty()) continue;
    pack(TensorView(*argument_of(call, i).value.tensor), copied.after.data());
  }
}

std::vector<std::vector<std::byte>> CallCopy::outputs() const {
  std::vector<std::vector<std::byte>> all;
  for (const CopiedArgument& argument : arguments_) {
    if (argument.written) all.emplace_back(argument.after.begin(), argument.after.end());
  }
  return all;
}

JudgedCall::JudgedCall(const schema::Schema& schema, const CallCopy& copy)
    : tensors_(copy.arguments().size()) {
  view_.op = schema.name;
  for (size_t i = 0; i < copy.arguments().size(); ++i) {
    const CopiedArgument& from = copy.arguments()[i];
    const bool present = from.tag != OPMUX_ARG_NONE;
    if (from.is_tensor()) {
      const std::span<const int64_t> shape = from.dims();
      tensors_[i] = {from.dtype, {shape.begin(), shape.end()}, {}};
      if (from.read) tensors_[i].values = values_of(from.before, from.dtype);
    }
    view_.arguments.push_back({schema.args[i].name, present,
                               from.is_tensor() ? &tensors_[i] : nullptr, from.written,
                               schema.args[i].dtype_variable >= 0, from.i64, from.f64});
  }
}

void JudgedCall::tie_outputs() {
  for (ArgumentView& argument : view_.arguments) argument.tied = true;
}

}  // namespace opmux::verify
