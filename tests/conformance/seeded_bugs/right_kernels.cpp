#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

/// Correct kernels whose bits differ from the reference, because every sum runs backwards.

/// An argument and a dimension that are reversed together.
struct Axis {
  size_t argument;
  int dim;
};

int32_t backwards(Faulty& f, std::initializer_list<Axis> axes) {
  for (const Axis& axis : axes) {
    if (!f.has(axis.argument)) continue;
    f.shift(axis.argument,
            (f.dim(axis.argument, axis.dim) - 1) * f.stride(axis.argument, axis.dim));
    f.stride(axis.argument, axis.dim) *= -1;
  }
  return f.right();
}

/// Sums without blocking, so that errors grow as in the simplest loop.
int32_t plain_product(Faulty& f) {
  const int64_t height = f.dim(1, -2), depth = f.dim(1, -1), width = f.dim(2, -1);
  for (int64_t e = 0; e < f.elements(0); ++e) {
    const int64_t row = e / width, pair = row / height;
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      sum += f.get(1, row * depth + k) * f.get(2, (pair * depth + k) * width + e % width);
    }
    f.put(0, e, sum);
  }
  return OPMUX_OK;
}

}  // namespace

std::vector<Bug> right_kernels() {
  return {
      {"rms_norm", "backwards", [](Faulty& f) { return backwards(f, {{0, -1}, {1, -1}, {2, 0}}); }},
      {"fused_add_rms_norm", "backwards",
       [](Faulty& f) { return backwards(f, {{0, -1}, {1, -1}, {2, 0}}); }},
      {"layer_norm", "backwards",
       [](Faulty& f) { return backwards(f, {{0, -1}, {1, -1}, {2, 0}, {3, 0}}); }},
      {"softmax", "backwards", [](Faulty& f) { return backwards(f, {{0, -1}, {1, -1}}); }},
      {"matmul", "backwards", [](Faulty& f) { return backwards(f, {{1, -1}, {2, -2}}); }},
      {"matmul", "plain", plain_product},
      {"linear", "backwards", [](Faulty& f) { return backwards(f, {{1, -1}, {2, -1}}); }},
      {"linear_w8a8", "backwards", [](Faulty& f) { return backwards(f, {{1, -1}, {2, -1}}); }},
      {"attention", "depth_backwards", [](Faulty& f) { return backwards(f, {{1, 3}, {2, 3}}); }},
      {"attention", "keys_backwards",
       [](Faulty& f) {
         const bool ordered = f.i64(5) != 0 || f.i64(7) != 0;
         if (ordered) return f.right();
         if (f.has(4) && f.dim(4, -1) > 1) return backwards(f, {{2, 1}, {3, 1}, {4, -1}});
         return backwards(f, {{2, 1}, {3, 1}});
       }},
      {"paged_attention", "depth_backwards",
       [](Faulty& f) { return backwards(f, {{1, 2}, {2, 3}}); }},
      {"fused_moe", "backwards",
       [](Faulty& f) { return backwards(f, {{0, -1}, {1, -1}, {2, 2}, {3, 1}}); }},
  };
}

}  // namespace opmux::seeded
