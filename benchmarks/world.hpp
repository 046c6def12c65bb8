#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

#include "kernel.hpp"

namespace opmux::bench {

/// Throws the status as an Error.
[[noreturn, gnu::cold]] void give_up(const Status& status);

/// Throws if a call failed, which ends the benchmark.
inline void must(const Status& status) {
  if (!status.ok()) [[unlikely]]
    give_up(status);
}

/// The packed copy of every constant: one object that nothing frees.
inline int32_t make_instance(void*, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
  static int made;
  *instance = &made;
  return OPMUX_OK;
}
inline void keep_instance(void*, void*) {}

/// A runtime with 300 operators `op0`, `op1`, ... of one schema, each with several empty
/// implementations.
class World {
 public:
  static constexpr int kOperators = 300;
  static constexpr int kImplementations = 4;

  World();

  Runtime runtime;
  std::vector<Operator> operators;
  std::vector<Operator> wide;  ///< one operator whose weight has as many dimensions as x and y

 private:
  Operator add(const std::string& name, const std::string& weight);
  std::vector<Registration> registrations_;
};

/// The three tensors of a call: y and x [rows, h] and w [h], or all of rank 4. The data pointers
/// are invalid, because the kernels do not read them.
struct Tensors {
  Tensors(int64_t rows, int64_t h)
      : y(memory(1), f32, {rows, h}), x(memory(2), f32, {rows, h}), w(memory(3), f32, {h}) {}
  static Tensors rank4(int64_t a, int64_t b, int64_t c, int64_t h) {
    Tensors t(1, h);
    t.y = TensorView(memory(1), f32, {a, b, c, h});
    t.x = TensorView(memory(2), f32, {a, b, c, h});
    t.w = TensorView(memory(3), f32, {a, b, c, h});
    return t;
  }
  static void* memory(uintptr_t which) { return reinterpret_cast<void*>(which << 36); }

  TensorView y, x, w;
};

}  // namespace opmux::bench
