#include "conformance/placed.hpp"

#include <algorithm>
#include <cstring>

namespace opmux::conformance {
namespace {

constexpr int64_t kMargin = 2048;  ///< watched bytes on either side

/// Calls copy(strided offset, packed offset, size), in bytes, for the contiguous parts of a tensor.
template <class Copy>
void for_each_element(const CaseTensor& tensor, Copy&& copy) {
  const int64_t size = tensor.dtype.size_bytes();
  const int64_t count = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t stride = tensor.shape.empty() ? 1 : tensor.strides.back();
  int64_t packed = 0;
  for_each_run(tensor, [&](int64_t offset) {
    if (stride == 1) {
      copy(offset * size, packed, static_cast<size_t>(count * size));
    } else {
      for (int64_t i = 0; i < count; ++i) {
        copy((offset + i * stride) * size, packed + i * size, static_cast<size_t>(size));
      }
    }
    packed += count * size;
  });
}

}  // namespace

Placed::Placed(Arenas& arenas, const Case& c, std::byte pattern, DeviceSide* side)
    : case_(&c), side_(side), regions_(c.arguments.size()), tensors_(c.arguments.size()) {
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    if (c.arguments[i].is_tensor() && c.arguments[i].present) place(arenas.at(i), pattern, i);
    describe(i);
  }
}

/// Device memory has no guard pages, so a margin on either side is watched instead. A tensor with
/// at_end ends at a multiple of 64 bytes there.
std::byte* Placed::first_of(const Arena& arena, const CaseTensor& tensor) const {
  constexpr int64_t kRound = 64;
  const int64_t size = tensor.dtype.size_bytes(), bytes = tensor.extent() * size;
  if (side_ == nullptr) {
    return tensor.at_end ? arena.end() - bytes : arena.begin() + tensor.skip * size;
  }
  const int64_t end = (kMargin + bytes + kRound - 1) / kRound * kRound;
  return arena.begin() + (tensor.at_end ? end - bytes : kMargin + tensor.skip * size);
}

void Placed::place(Arena& arena, std::byte pattern, size_t argument) {
  const CaseTensor& tensor = case_->arguments[argument].tensor;
  Region& region = regions_[argument];
  const int64_t size = tensor.dtype.size_bytes();
  const int64_t bytes = tensor.extent() * size;
  region.first = first_of(arena, tensor);
  region.low = std::max(arena.begin(), region.first - kMargin);
  std::byte* high = std::min(arena.end(), region.first + bytes + kMargin);
  std::memset(region.low, static_cast<int>(pattern), static_cast<size_t>(high - region.low));
  if (case_->arguments[argument].read()) {
    for_each_element(tensor, [&](int64_t at, int64_t packed, size_t count) {
      std::memcpy(region.first + at, tensor.packed.data() + packed, count);
    });
  }
  region.pristine.assign(region.low, high);
}

void Placed::describe(size_t argument) {
  const CaseArgument& from = case_->arguments[argument];
  opmux_arg arg{};
  arg.tag = from.present ? static_cast<uint32_t>(from.info->type) : OPMUX_ARG_NONE;
  if (from.info->type == ArgTag::floating) {
    arg.value.f64 = from.f64;
  } else if (!from.is_tensor()) {
    arg.value.i64 = from.i64;
  } else if (from.present) {
    tensors_[argument] = tensor_of(argument);
    arg.value.tensor = &tensors_[argument];
  }
  args_.push_back(arg);
}

opmux_tensor Placed::tensor_of(size_t argument) {
  const CaseTensor& tensor = case_->arguments[argument].tensor;
  const Region& region = regions_[argument];
  // DLPack's struct lacks const; shapes and strides are not written.
  opmux_tensor placed{region.first,
                      {OPMUX_DEVICE_CPU, 0},
                      static_cast<int32_t>(tensor.shape.size()),
                      {tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes},
                      const_cast<int64_t*>(tensor.shape.data()),
                      const_cast<int64_t*>(tensor.strides.data()),
                      0};
  if (side_ == nullptr) return placed;
  const Result<void*> handle = side_->send(argument, region.low, region.pristine.size());
  if (!handle && ready_.ok()) ready_ = handle.error();
  placed.data = handle ? *handle : nullptr;
  placed.device = {side_->device().type, side_->device().id};
  placed.byte_offset = static_cast<uint64_t>(region.first - region.low);
  return placed;
}

Status Placed::fetch() {
  const Status ended = side_->synchronize();
  Status fetched;
  for (size_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    if (region.first == nullptr || !fetched.ok()) continue;
    fetched = side_->fetch(i, region.low, region.pristine.size());
  }
  const Status copied = side_->synchronize();
  if (!ended.ok()) return ended;
  return fetched.ok() ? copied : fetched;
}

std::vector<std::byte> Placed::elements(size_t argument) const {
  const CaseTensor& tensor = case_->arguments[argument].tensor;
  std::vector<std::byte> all(static_cast<size_t>(tensor.elements() * tensor.dtype.size_bytes()));
  for_each_element(tensor, [&](int64_t at, int64_t packed, size_t count) {
    std::memcpy(all.data() + packed, regions_[argument].first + at, count);
  });
  return all;
}

std::optional<Problem> Placed::damage() const {
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (auto problem = regions_[i].first != nullptr ? damage_of(i) : std::nullopt) return problem;
  }
  return {};
}

bool Placed::untouched() const {
  return std::ranges::all_of(regions_, [](const Region& r) {
    return r.first == nullptr || std::memcmp(r.low, r.pristine.data(), r.pristine.size()) == 0;
  });
}

std::optional<Problem> Placed::damage_of(size_t argument) const {
  const CaseArgument& arg = case_->arguments[argument];
  const Region& region = regions_[argument];
  std::vector<std::byte> now(region.low, region.low + region.pristine.size());
  if (std::memcmp(now.data(), region.pristine.data(), now.size()) == 0) return {};
  const int64_t first = region.first - region.low;
  std::vector<bool> inside;
  if (!arg.written()) inside.resize(now.size());
  for_each_element(arg.tensor, [&](int64_t at, int64_t, size_t count) {
    if (arg.written()) {
      std::memcpy(now.data() + first + at, region.pristine.data() + first + at, count);
    } else {
      std::fill_n(inside.begin() + first + at, count, true);
    }
  });
  const auto differ = std::ranges::mismatch(now, region.pristine).in1;
  if (differ == now.end()) return {};
  const int64_t at = differ - now.begin();
  const bool input = !inside.empty() && inside[static_cast<size_t>(at)];
  return Problem{input ? "input_changed" : "out_of_bounds",
                 arg.info->name + ": byte " + std::to_string(at - first) +
                     ", counted from its first element, was written" +
                     (input ? ", but the tensor is an input" : ", but belongs to no element")};
}

}  // namespace opmux::conformance
