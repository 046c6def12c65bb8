#include "backends/common/rows.hpp"
#include "backends/opencl/implementations.hpp"
#include "backends/opencl/kernel_texts.hpp"
#include "backends/opencl/launch.hpp"
#include "backends/opencl/row_layout.hpp"

namespace opmux::backends::opencl {
namespace {

std::shared_ptr<Launch> plan_silu_and_mul(const plugin::Call& call) {
  Device& device = Driver::get().device(call.c().device.id);
  auto launch =
      std::make_shared<Launch>(device, kSiluAndMulText, "silu_and_mul",
                               options(kRowItems, {{"X", word_of(call.tensor(1).dtype())}}));
  wait_for(launch->enqueue(device.stream(nullptr).queue(), grid_for(1, kRowItems), NoTensor{},
                           RowLayout{}, NoTensor{}, RowLayout{}, cl_long{0}, cl_long{0}));
  return launch;
}

int32_t run_silu_and_mul(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const cl_long rows = Rows(x.c()).count();
  return on_stream(call, [&](cl_command_queue queue, Pending&) {
    return call.prepared<Launch>()->enqueue(queue, grid_for(rows, kRowItems), y, layout_of(y), x,
                                            layout_of(x), rows, cl_long{y.dim(-1)});
  });
}

}  // namespace

void add_silu_and_mul(plugin::Backend& backend) {
  backend.add(
      implementation(
          {.name = "silu_and_mul",
           .signature = "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H",
           .alike = {dtype_of("x"), dtype_of("y")}})
          .plan(plan_silu_and_mul, {device_of("x"), dtype_of("x")})
          .run(run_silu_and_mul));
}

}  // namespace opmux::backends::opencl
