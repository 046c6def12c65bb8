// Two operators on CUDA: an example of a plugin for a device with streams.
#include <opmux/plugin.hpp>

#include "device_table.hpp"
#include "errors.hpp"
#include "kernels.hpp"

namespace op = opmux::plugin;

namespace cuda_example {
namespace {

Element element_of(opmux_dtype dtype) {
  if (op::same(dtype, op::f32)) return Element::f32;
  return op::same(dtype, op::f16) ? Element::f16 : Element::bf16;
}

// Whether all tensors are on the call's device.
bool on_one_device(const op::Call& call) {
  const opmux_device wanted = call.c().device;
  for (uint32_t i = 0; i < call.c().arg_count; ++i) {
    if (!call.holds_tensor(i)) continue;
    const opmux_device device = call.tensor(i).c().device;
    if (device.type != wanted.type || device.id != wanted.id) return false;
  }
  return true;
}

// Calls enqueue(stream) on the call's device and watches the commands that it enqueued.
template <class Enqueue>
int32_t enqueued(const op::Call& call, const Enqueue& enqueue) {
  if (!on_one_device(call)) {
    return op::decline(call.error(), "cuda.device", "all tensors must be on one device");
  }
  auto* stream = static_cast<cudaStream_t>(call.stream());
  const opmux_device device = call.c().device;
  int before = 0;
  cudaGetDevice(&before);
  cudaError_t error = cudaSetDevice(device.id);
  if (error == cudaSuccess) error = enqueue(stream);
  if (error == cudaSuccess) error = watch(device, stream);
  cudaSetDevice(before);
  return report(call.error(), error);
}

int32_t run_rms_norm(const op::Call& call) {
  const op::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.optional_tensor(2);
  const RmsNorm what{y.data(),
                     x.data(),
                     weight ? weight.data() : nullptr,
                     x.elements() / x.dim(-1),
                     x.dim(-1),
                     static_cast<float>(call.f64(3, 1e-6)),
                     call.boolean(4)};
  return enqueued(
      call, [&](cudaStream_t stream) { return rms_norm(element_of(x.dtype()), what, stream); });
}

int32_t run_silu_and_mul(const op::Call& call) {
  const op::TensorArg y = call.tensor(0), x = call.tensor(1);
  const SiluAndMul what{y.data(), x.data(), y.elements() / y.dim(-1), y.dim(-1)};
  return enqueued(
      call, [&](cudaStream_t stream) { return silu_and_mul(element_of(x.dtype()), what, stream); });
}

op::Impl kernel(std::string_view name, std::string_view signature, op::Impl::Reads alike) {
  op::Impl impl{name, "kernel"};
  impl.signature(signature)
      .flags(OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT)
      .caps(op::Caps{}.dtypes({op::f32, op::f16, op::bf16}).contiguous())
      .same_dtype(alike);
  return impl;
}

int32_t available(opmux_error* why) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) return op::decline(why, "cuda.missing", cudaGetErrorString(error));
  return devices > 0 ? OPMUX_OK : op::decline(why, "cuda.missing", "no CUDA device found");
}

}  // namespace
}  // namespace cuda_example

OPMUX_PLUGIN_ENTRY(cuda_example) {
  return op::answer(host, out, [] {
    using namespace cuda_example;
    op::Backend backend{"cuda_example", OPMUX_KIND_VENDOR, OPMUX_DEVICE_CUDA};
    backend.vendor("example")
        .flags(OPMUX_BACKEND_STREAM | OPMUX_BACKEND_FORK_LOST)
        .device(&kDeviceTable)
        .available(available)
        .add(kernel("rms_norm",
                    "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], "
                    "float eps = 1e-6, bool round_before_weight = false)",
                    {op::dtype_of("x"), op::dtype_of("y"), op::dtype_of("weight")})
                 .run(run_rms_norm))
        .add(kernel("silu_and_mul",
                    "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H",
                    {op::dtype_of("x"), op::dtype_of("y")})
                 .run(run_silu_and_mul));
    return op::Plugin{"cuda_example", "0.1"}.add(backend).init(
        [](const opmux_host* told) { set_host(told); });
  });
}
