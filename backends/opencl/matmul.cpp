#include "backends/common/rows.hpp"
#include "backends/opencl/implementations.hpp"
#include "backends/opencl/kernel_texts.hpp"
#include "backends/opencl/launch.hpp"
#include "backends/opencl/row_layout.hpp"

namespace opmux::backends::opencl {
namespace {

constexpr size_t kTile = 16;

// Must match kernels/matmul.cl.
struct Sizes {
  cl_long matrices, height, width, depth;
  cl_long y_row, a_row, b_row;
};

std::shared_ptr<Launch> plan_matmul(const plugin::Call& call) {
  Device& device = Driver::get().device(call.c().device.id);
  auto launch = std::make_shared<Launch>(device, kMatmulText, "matmul",
                                         options(kTile, {{"X", word_of(call.tensor(0).dtype())}}));
  wait_for(launch->enqueue(device.stream(nullptr).queue(), grid_for(1, kTile, true), NoTensor{},
                           RowLayout{}, NoTensor{}, RowLayout{}, NoTensor{}, RowLayout{}, Sizes{}));
  return launch;
}

int32_t run_matmul(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  const Sizes sizes{Rows(y.c(), 2).count(), y.dim(-2),    y.dim(-1),   a.dim(-1),
                    y.stride(-2),           a.stride(-2), b.stride(-2)};
  constexpr auto kSide = static_cast<cl_long>(kTile);
  const cl_long tiles =
      sizes.matrices * ((sizes.height + kSide - 1) / kSide) * ((sizes.width + kSide - 1) / kSide);
  return on_stream(call, [&](cl_command_queue queue, Pending&) {
    return call.prepared<Launch>()->enqueue(queue, grid_for(tiles, kTile, true), y, layout_of(y, 2),
                                            a, layout_of(a, 2), b, layout_of(b, 2), sizes);
  });
}

}  // namespace

void add_matmul(plugin::Backend& backend) {
  backend.add(
      implementation(
          {.name = "matmul",
           .signature = "matmul(out Tensor y[..., M, N], Tensor a[..., M, K], Tensor b[..., K, N])",
           .alike = {dtype_of("y"), dtype_of("a"), dtype_of("b")}})
          .plan(plan_matmul, {device_of("y"), dtype_of("y")})
          .run(run_matmul));
}

}  // namespace opmux::backends::opencl
