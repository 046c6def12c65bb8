// A torch backend for PrivateUse1 in the memory of the protected devices: tensors, copies, streams
// of each thread. `torch.ops.protected_device.use(address)` gives it the driver. Operators that it
// lacks are computed by the CPU with copies.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "protected_device.hpp"

namespace {

using protected_device::Driver;

const Driver* driver = nullptr;
thread_local c10::DeviceIndex current = 0;
thread_local int64_t streams[protected_device::kDevices] = {};

const Driver& the_driver() {
  TORCH_CHECK(driver != nullptr, "call torch.ops.protected_device.use() first");
  return *driver;
}

void check(int32_t outcome, const char* what) {
  TORCH_CHECK(outcome == OPMUX_OK, "protected device: ", what, " returned ", outcome);
}

void* stream_of(c10::DeviceIndex on) {
  return reinterpret_cast<void*>(streams[static_cast<size_t>(on)]);
}

/// The object that a DataPtr owns: enough to free the memory.
struct Owned {
  const Driver* driver;
  c10::DeviceIndex device;
  void* memory;
};

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    const c10::Device on(c10::DeviceType::PrivateUse1, current);
    if (size == 0) return {nullptr, on};
    void* memory = nullptr;
    check(the_driver().allocate(current, size, &memory), "allocate");
    return {memory, new Owned{driver, current, memory}, &release, on};
  }
  static void release(void* context) {
    auto* const owned = static_cast<Owned*>(context);
    owned->driver->free(owned->device, owned->memory, stream_of(owned->device));
    delete owned;
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    check(the_driver().copy(current, to, from, size, 1, 1, stream_of(current)), "copy");
    check(the_driver().synchronize(current, stream_of(current)), "synchronize");
  }
};
Allocator allocator;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  // The name that torch demands.
  // NOLINTNEXTLINE(readability-identifier-naming)
  static constexpr c10::DeviceType static_type = c10::DeviceType::PrivateUse1;
  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device next) const override {
    const c10::Device before = getDevice();
    setDevice(next);
    return before;
  }
  c10::Device getDevice() const override { return {static_type, current}; }
  void setDevice(c10::Device next) const override { uncheckedSetDevice(next); }
  void uncheckedSetDevice(c10::Device next) const noexcept override {
    if (next.has_index()) current = next.index();
  }
  c10::Stream getStream(c10::Device on) const override {
    return c10::Stream(c10::Stream::UNSAFE, on, streams[static_cast<size_t>(on.index())]);
  }
  c10::Stream getDefaultStream(c10::Device on) const override {
    return c10::Stream(c10::Stream::UNSAFE, on, 0);
  }
  c10::Stream getNewStream(c10::Device on, int) const override {
    void* const made = the_driver().create_stream(on.index());
    return c10::Stream(c10::Stream::UNSAFE, on, reinterpret_cast<int64_t>(made));
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const c10::Stream before = getStream(next.device());
    streams[static_cast<size_t>(next.device_index())] = next.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(stream.id());
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(the_driver().synchronize(stream.device_index(), reinterpret_cast<void*>(stream.id())),
          "synchronize");
  }
  c10::DeviceIndex deviceCount() const noexcept override { return protected_device::kDevices; }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return protected_device::kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex next) const override { current = next; }
};

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::SymIntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout>, std::optional<c10::Device> on, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(on);
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator, kKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                         std::optional<c10::Device> on, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(on);
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size),
                                           C10_AS_INTARRAYREF_SLOW(stride), &allocator, kKeys,
                                           c10::dtype_or_default(dtype));
}

/// Copies between the storage of a tensor and memory of the CPU, after the work on the current
/// stream, and waits.
void transfer(const at::Tensor& tensor, void* bytes, bool inwards) {
  const c10::DeviceIndex on = tensor.device().index();
  void* const there = tensor.storage().mutable_data();
  check(the_driver().copy(on, inwards ? there : bytes, inwards ? bytes : there,
                          tensor.storage().nbytes(), inwards, !inwards, stream_of(on)),
        "copy");
  check(the_driver().synchronize(on, stream_of(on)), "synchronize");
}

/// A CPU tensor with the layout and the elements of a tensor of the device.
at::Tensor to_cpu(const at::Tensor& tensor) {
  auto* const bytes = new char[std::max<size_t>(tensor.storage().nbytes(), 1)];
  if (tensor.storage().nbytes() != 0) transfer(tensor, bytes, false);
  const auto offset = static_cast<size_t>(tensor.storage_offset()) * tensor.itemsize();
  return at::from_blob(
      bytes + offset, tensor.sizes(), tensor.strides(), [bytes](void*) { delete[] bytes; },
      at::TensorOptions().dtype(tensor.dtype()));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  const at::Tensor here = from.is_cpu() ? from : to_cpu(from);
  if (to.is_cpu()) {
    to.copy_(here);
  } else if (to.numel() != 0) {
    const at::Tensor next = to_cpu(to);
    next.copy_(here);
    const auto offset = static_cast<size_t>(to.storage_offset()) * to.itemsize();
    transfer(to, static_cast<char*>(next.data_ptr()) - offset, true);
  }
  return to;
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  const std::optional<int64_t> start = offset ? std::optional(offset->expect_int()) : std::nullopt;
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size),
                                           C10_AS_INTARRAYREF_SLOW(stride), start);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  return at::native::set_(self, std::move(source));
}

at::Tensor& set_part(at::Tensor& self, at::Storage source, c10::SymInt offset,
                     c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(source), offset.expect_int(),
                                      C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

at::Scalar item(const at::Tensor& self) { return to_cpu(self).item(); }

void by_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

void use(int64_t address) { driver = reinterpret_cast<const Driver*>(address); }

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

TORCH_LIBRARY(protected_device, library) {
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  library.def("use(int address) -> ()", &use);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_part);
  library.impl("_local_scalar_dense", &item);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_cpu>());
}
