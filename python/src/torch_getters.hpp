#pragma once

#include <cstdint>

/// torch's C++ functions that return its modes, found by their symbols in the libraries that torch
/// has loaded. They take a few nanoseconds, its Python functions up to 150.
namespace opmux::python {

class TorchGetters {
 public:
  /// Looks the functions up. Call it once torch is imported.
  void find();
  /// Whether all of them were found; if not, the others must not be called.
  bool found() const { return found_; }

  bool grad() const { return grad_(); }
  bool inference() const { return inference_(); }
  bool deterministic() const { return deterministic_(context_); }
  bool autocast() const {
    for (uint32_t i = 0; i < device_count_; ++i) {
      if (autocast_(devices_[i])) return true;
    }
    return false;
  }

 private:
  bool found_ = false;
  bool (*grad_)() = nullptr;
  bool (*inference_)() = nullptr;
  bool (*deterministic_)(const void* context) = nullptr;
  bool (*autocast_)(int8_t device) = nullptr;
  const void* context_ = nullptr;
  int8_t devices_[10] = {};  ///< the types of devices that autocast supports
  uint32_t device_count_ = 0;
};

}  // namespace opmux::python
