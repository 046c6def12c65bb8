// A no-op called through c10's unboxed dispatch, compiled against torch's headers.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include "figures.hpp"

namespace {

void noop(const at::Tensor& y, const at::Tensor& x, const at::Tensor& w, double eps) {
  asm volatile("" : : "r"(&y), "r"(&x), "r"(&w), "x"(eps) : "memory");
}

TORCH_LIBRARY(opmux_bench, library) {
  library.def("noop(Tensor y, Tensor x, Tensor w, float eps) -> ()");
}
TORCH_LIBRARY_IMPL(opmux_bench, CPU, library) { library.impl("noop", noop); }

}  // namespace

namespace opmux::bench {

std::optional<Subject> c10_subject() {
  using Signature = void(const at::Tensor&, const at::Tensor&, const at::Tensor&, double);
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("opmux_bench::noop", "").typed<Signature>();
  const at::Tensor y = at::empty({32, 4096}), x = at::empty({32, 4096}), w = at::empty({4096});
  return Subject{"c10", [=](int count) {
                   // Excludes autograd's dispatch keys, as inference engines do.
                   const c10::InferenceMode inference;
                   for (int i = 0; i < count; ++i) op.call(y, x, w, 1e-6);
                 }};
}

}  // namespace opmux::bench
