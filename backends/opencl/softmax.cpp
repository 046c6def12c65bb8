#include "backends/common/rows.hpp"
#include "backends/opencl/implementations.hpp"
#include "backends/opencl/kernel_texts.hpp"
#include "backends/opencl/launch.hpp"
#include "backends/opencl/row_layout.hpp"

namespace opmux::backends::opencl {
namespace {

std::shared_ptr<Launch> plan_softmax(const plugin::Call& call) {
  Device& device = Driver::get().device(call.c().device.id);
  auto launch =
      std::make_shared<Launch>(device, kSoftmaxText, "softmax",
                               options(kRowItems, {{"X", word_of(call.tensor(1).dtype())}}));
  wait_for(launch->enqueue(device.stream(nullptr).queue(), grid_for(1, kRowItems), NoTensor{},
                           RowLayout{}, NoTensor{}, RowLayout{}, cl_long{0}, cl_long{0},
                           cl_float{0}));
  return launch;
}

int32_t run_softmax(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const cl_long rows = Rows(x.c()).count();
  return on_stream(call, [&](cl_command_queue queue, Pending&) {
    return call.prepared<Launch>()->enqueue(queue, grid_for(rows, kRowItems), y, layout_of(y), x,
                                            layout_of(x), rows, cl_long{x.dim(-1)},
                                            cl_float(call.f64(2, 1)));
  });
}

}  // namespace

void add_softmax(plugin::Backend& backend) {
  backend.add(implementation(
                  {.name = "softmax",
                   .signature = "softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)",
                   .alike = {dtype_of("x"), dtype_of("y")}})
                  .plan(plan_softmax, {device_of("x"), dtype_of("x")})
                  .run(run_softmax));
}

}  // namespace opmux::backends::opencl
