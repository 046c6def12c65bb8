#include "torch_getters.hpp"

#include <dlfcn.h>

#include <system_error>
#include <thread>

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

/// The dispatch keys that a new thread excludes until autocast is enabled for every type of device.
/// 0 if no thread can be started. Uses a new thread, because enabling autocast changes the thread.
uint64_t keys_of_autocast(bool (*excludes)(uint64_t), void (*enable)(int8_t, bool)) {
  const auto excluded = [&] {
    uint64_t keys = 0;
    for (int bit = 0; bit < 64; ++bit) {
      if (excludes(uint64_t{1} << bit)) keys |= uint64_t{1} << bit;
    }
    return keys;
  };
  uint64_t keys = 0;
  const auto look = [&] {
    const uint64_t before = excluded();
    for (const int8_t type : kDeviceTypes) {
      try {
        enable(type, true);
      } catch (...) {
        continue;  // this torch has no autocast for the type
      }
    }
    keys = before & ~excluded();
  };
  try {
    std::thread(look).join();
  } catch (const std::system_error&) {
    return 0;
  }
  return keys;
}

}  // namespace

void TorchGetters::find() {
  constexpr const char *kC10 = "libc10.so", *kTorch = "libtorch_cpu.so";
  void* (*context)() = nullptr;
  void (*enable)(int8_t, bool) = nullptr;
  if (!find_in(kC10, "_ZN3c108GradMode10is_enabledEv", grad_) ||
      !find_in(kC10, "_ZN3c1013InferenceMode10is_enabledEv", inference_) ||
      !find_in(kC10, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", count_modes_) ||
      !find_in(kC10, "_ZN3c104impl31tls_is_dispatch_keyset_excludedENS_14DispatchKeySetE",
               excludes_) ||
      !find_in(kTorch, "_ZN2at13globalContextEv", context) ||
      !find_in(kTorch, "_ZNK2at7Context23deterministicAlgorithmsEv", deterministic_) ||
      !find_in(kTorch, "_ZN2at8autocast20set_autocast_enabledEN3c1010DeviceTypeEb", enable)) {
    return;
  }
  context_ = context();
  autocast_keys_ = keys_of_autocast(excludes_, enable);
  found_ = autocast_keys_ != 0;
}

}  // namespace opmux::python
