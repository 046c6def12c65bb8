// Kernels that work in tiles of 16 and handle the remainder incorrectly, and one that fails.
#include <opmux/plugin.hpp>

#include <cmath>
#include <stdexcept>

namespace op = opmux::plugin;

namespace {

constexpr int64_t kTile = 16;

int64_t whole_tiles(int64_t width) { return width / kTile * kTile; }

/// Computes the factor of a row from whole tiles only.
void norm_without_tail(const op::Call& call) {
  const op::TensorArg y = call.tensor(0), x = call.tensor(1);
  const int64_t width = x.dim(-1), rows = width == 0 ? 0 : x.elements() / width;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * width;
    double sum = 0;
    for (int64_t i = 0; i < whole_tiles(width); ++i) sum += double{in[i]} * in[i];
    const double factor = 1 / std::sqrt(sum / static_cast<double>(width) + call.f64(3, 1e-6));
    for (int64_t i = 0; i < width; ++i) {
      const float by = call.present(2) ? call.tensor(2).data<float>()[i] : 1.0F;
      y.data<float>()[row * width + i] = static_cast<float>(in[i] * factor) * by;
    }
  }
}

/// Uses the previous tile's last element of the second half, if there is one.
void gate_with_old_tail(const op::Call& call) {
  const op::TensorArg y = call.tensor(0), x = call.tensor(1);
  const int64_t width = y.dim(-1), rows = width == 0 ? 0 : y.elements() / width;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * 2 * width;
    for (int64_t i = 0; i < width; ++i) {
      const bool stale = i >= whole_tiles(width) && i >= kTile;
      const float gate = in[i] / (1 + std::exp(-in[i]));
      y.data<float>()[row * width + i] = gate * in[width + (stale ? i - kTile : i)];
    }
  }
}

void fails_with_a_tail(const op::Call& call) {
  if (call.tensor(1).dim(-1) % kTile != 0)
    throw std::runtime_error("what is left over is not handled");
  throw std::runtime_error("nothing is handled");
}

op::Backend faulty() {
  op::Backend backend{"faulty", OPMUX_KIND_DEFAULT};
  const op::Caps caps = op::Caps{}.dtypes({op::f32}).contiguous();
  backend.add(op::Impl{"rms_norm", "tail"}
                  .priority(900)
                  .signature("rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], "
                             "float eps = 1e-6)")
                  .caps(caps)
                  .run(norm_without_tail));
  backend.add(
      op::Impl{"silu_and_mul", "tail"}
          .priority(900)
          .signature("silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H")
          .caps(caps)
          .run(gate_with_old_tail));
  backend.add(op::Impl{"softmax", "tail"}
                  .priority(900)
                  .signature("softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)")
                  .caps(caps)
                  .run(fails_with_a_tail));
  return backend;
}

}  // namespace

OPMUX_PLUGIN_ENTRY(faulty) {
  return op::answer(host, out, [] { return op::Plugin{"faulty", "1"}.add(faulty()); });
}
