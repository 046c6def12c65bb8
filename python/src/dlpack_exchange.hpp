#pragma once

#include <cstdint>

#include <opmux/abi.h>

/// Declarations of the DLPack 1.3 C exchange API (the type attribute `__dlpack_c_exchange_api__`)
/// and of the structs inside `__dlpack__` capsules. opmux_tensor has the layout of a DLTensor; a
/// test compares all layouts with the real dlpack.h.
namespace opmux::python {

struct DlpackVersion {
  uint32_t major, minor;
};

inline constexpr uint32_t kDlpackMajor = 1;

struct ManagedTensor {
  opmux_tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

struct VersionedTensor {
  DlpackVersion version;
  void* context;
  void (*deleter)(VersionedTensor* self);
  uint64_t flags;
  opmux_tensor tensor;
};

inline constexpr uint64_t kDlpackReadOnly = 1;

struct ExchangeApi {
  DlpackVersion version;
  ExchangeApi* previous;
  int (*allocate)(opmux_tensor* prototype, VersionedTensor** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, VersionedTensor** out);
  int (*object_from_managed)(VersionedTensor* tensor, void** object);
  int (*borrow_from_object)(void* object, opmux_tensor* out);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace opmux::python
