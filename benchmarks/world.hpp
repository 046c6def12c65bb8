#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

namespace opmux::bench {

/// The kernel of every benchmark: does nothing, but the compiler cannot know.
int32_t nothing(void* user_data, const opmux_call* call);

/// A runtime with operators `op0` ... of one schema, each with several implementations that do nothing.
class World {
 public:
  static constexpr int kOperators = 300;
  static constexpr int kImplementations = 4;

  World();

  Runtime runtime;
  std::vector<Operator> operators;

 private:
  std::vector<Registration> registrations_;
};

/// Three tensors of one call: y, x [rows, h] and w [h], or all of rank 4.
struct Tensors {
  Tensors(int64_t rows, int64_t h)
      : y(buffer, f32, {rows, h}), x(buffer, f32, {rows, h}), w(buffer, f32, {h}) {}
  static Tensors rank4(int64_t a, int64_t b, int64_t c, int64_t h) {
    Tensors t(1, h);
    t.y = TensorView(buffer, f32, {a, b, c, h});
    t.x = t.y;
    t.w = TensorView(buffer, f32, {1, 1, 1, h});
    return t;
  }
  static inline char buffer[64];
  TensorView y, x, w;
};

}  // namespace opmux::bench
