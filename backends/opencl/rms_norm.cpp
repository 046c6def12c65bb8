#include "backends/common/rows.hpp"
#include "backends/opencl/implementations.hpp"
#include "backends/opencl/kernel_texts.hpp"
#include "backends/opencl/launch.hpp"
#include "backends/opencl/row_layout.hpp"

namespace opmux::backends::opencl {
namespace {

std::shared_ptr<Launch> plan_rms_norm(const plugin::Call& call) {
  const plugin::TensorArg x = call.tensor(1), weight = call.optional_tensor(2);
  Device& device = Driver::get().device(call.c().device.id);
  auto launch = std::make_shared<Launch>(
      device, kRmsNormText, "rms_norm",
      options(kRowItems,
              {{"X", word_of(x.dtype())}, {"W", word_of((weight ? weight : x).dtype())}}));
  wait_for(launch->enqueue(device.stream(nullptr).queue(), grid_for(1, kRowItems), NoTensor{},
                           RowLayout{}, NoTensor{}, RowLayout{}, NoTensor{}, RowLayout{},
                           cl_long{0}, cl_long{0}, cl_float{0}, cl_int{0}, cl_int{0}));
  return launch;
}

int32_t run_rms_norm(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.optional_tensor(2);
  const cl_long rows = Rows(x.c()).count();
  return on_stream(call, [&](cl_command_queue queue, Pending&) {
    return call.prepared<Launch>()->enqueue(
        queue, grid_for(rows, kRowItems), y, layout_of(y), x, layout_of(x), weight,
        weight ? layout_of(weight) : RowLayout{}, rows, cl_long{x.dim(-1)},
        cl_float(call.f64(3, 1e-6)), cl_int{weight.present()}, cl_int{call.boolean(4)});
  });
}

}  // namespace

void add_rms_norm(plugin::Backend& backend) {
  backend.add(implementation({.name = "rms_norm",
                              .signature = "rms_norm(out Tensor y[..., H], Tensor x[..., H], "
                                           "Tensor? weight[H], float eps = 1e-6, "
                                           "bool round_before_weight = false)",
                              .alike = {dtype_of("x"), dtype_of("y")}})
                  .plan(plan_rms_norm, {device_of("x"), dtype_of("x"), dtype_of("weight")})
                  .run(run_rms_norm));
}

}  // namespace opmux::backends::opencl
