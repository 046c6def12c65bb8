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
  /// Whether a dispatch mode, such as a tracer, is active.
  bool dispatch() const { return count_modes_() > 0; }
  /// Whether autocast is enabled for a type of device.
  bool autocast() const { return !excludes_(autocast_keys_); }

 private:
  bool found_ = false;
  bool (*grad_)() = nullptr;
  bool (*inference_)() = nullptr;
  int64_t (*count_modes_)() = nullptr;
  bool (*deterministic_)(const void* context) = nullptr;
  /// Whether this thread excludes all of these dispatch keys.
  bool (*excludes_)(uint64_t keys) = nullptr;
  const void* context_ = nullptr;
  uint64_t autocast_keys_ = 0;  ///< the keys that torch excludes while no autocast is enabled
};

}  // namespace opmux::python
