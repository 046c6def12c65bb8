#include "torch_getters.hpp"

#include <dlfcn.h>

namespace opmux::python {
namespace {

/// The numbers of the types (c10::DeviceType) that torch has autocast for: CPU, CUDA, MAIA, XLA,
/// XPU, MPS, HPU, IPU, MTIA and PrivateUse1.
constexpr int8_t kDeviceTypes[] = {0, 1, 8, 9, 12, 13, 15, 18, 19, 20};

/// A function of a library that is already loaded; null if there is none.
template <class Function>
bool find_in(const char* library, const char* symbol, Function& function) {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return false;
  function = reinterpret_cast<Function>(dlsym(loaded, symbol));
  dlclose(loaded);  // torch keeps it loaded
  return function != nullptr;
}

}  // namespace

void TorchGetters::find() {
  constexpr const char *kC10 = "libc10.so", *kTorch = "libtorch_cpu.so";
  void* (*context)() = nullptr;
  if (!find_in(kC10, "_ZN3c108GradMode10is_enabledEv", grad_) ||
      !find_in(kC10, "_ZN3c1013InferenceMode10is_enabledEv", inference_) ||
      !find_in(kTorch, "_ZN2at13globalContextEv", context) ||
      !find_in(kTorch, "_ZNK2at7Context23deterministicAlgorithmsEv", deterministic_) ||
      !find_in(kTorch, "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE", autocast_)) {
    return;
  }
  context_ = context();
  device_count_ = 0;
  for (const int8_t type : kDeviceTypes) {
    try {
      static_cast<void>(autocast_(type));
    } catch (...) {
      continue;  // this torch has no autocast for the type
    }
    devices_[device_count_++] = type;
  }
  found_ = true;
}

}  // namespace opmux::python
