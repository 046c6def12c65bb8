#include "kernels.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>

namespace opmux::test {
namespace {

std::atomic<uint64_t> runs{0};
opmux_runtime* runtime_of_kernel = nullptr;

const opmux_tensor& tensor(const opmux_call& call, uint32_t i) {
  return *reinterpret_cast<const opmux_arg*>(reinterpret_cast<const char*>(call.args) +
                                             size_t{i} * call.arg_stride)
              ->value.tensor;
}

void compute(const opmux_call& call) {
  const opmux_tensor& y = tensor(call, 0);
  const auto* const x = static_cast<const float*>(tensor(call, 1).data);
  auto* const out = static_cast<float*>(y.data);
  const int64_t rows = y.shape[0], columns = y.shape[1];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) {
      const float gate = x[row * 2 * columns + i];
      out[row * columns + i] = gate / (1 + std::exp(-gate)) * x[row * 2 * columns + columns + i];
    }
  }
}

/// Calls rms_norm. A failure of that call is one of the kernel.
int32_t call_norm() {
  std::array<float, 4> x{1, 2, 3, 4}, y{};
  std::array<int64_t, 2> shape{1, 4};
  const opmux_dtype f32{OPMUX_DTYPE_FLOAT, 32, 1};
  const opmux_tensor tx{x.data(), {OPMUX_DEVICE_CPU, 0}, 2, f32, shape.data(), nullptr, 0};
  const opmux_tensor ty{y.data(), {OPMUX_DEVICE_CPU, 0}, 2, f32, shape.data(), nullptr, 0};
  const opmux_arg args[] = {opmux_arg_tensor(&ty), opmux_arg_tensor(&tx)};
  opmux_operator* norm = nullptr;
  const int32_t found =
      opmux_operator_get(runtime_of_kernel, OPMUX_STR("rms_norm"), &norm, nullptr);
  return found == OPMUX_OK ? opmux_call_operator(norm, args, 2, nullptr) : found;
}

/// Counts on the threads that the caller lends.
bool count_in_parallel(const opmux_call& call) {
  std::atomic<int> count{0};
  const auto add = [](void* to, int64_t) { static_cast<std::atomic<int>*>(to)->fetch_add(1); };
  if (call.parallel_for == nullptr) return true;
  call.parallel_for(call.pool, 64, &count, add);
  return count.load() == 64;
}

template <Behaviour kBehaviour>
int32_t run(void*, const opmux_call* call) {
  runs.fetch_add(1);
  switch (kBehaviour) {
    case Behaviour::fails: return OPMUX_FAILED;
    case Behaviour::declines: return OPMUX_DECLINED;
    case Behaviour::lacks_memory: return OPMUX_RESOURCE;
    case Behaviour::uses_workspace:
      if (call->workspace == nullptr) return OPMUX_FAILED;
      break;
    case Behaviour::uses_a_prepared_state:
      if (call->prepared == nullptr) return OPMUX_FAILED;
      break;
    case Behaviour::uses_threads:
      if (!count_in_parallel(*call)) return OPMUX_FAILED;
      break;
    case Behaviour::calls_an_operator:
      if (const int32_t outcome = call_norm(); outcome != OPMUX_OK) return outcome;
      break;
    case Behaviour::computes:
    case Behaviour::asks_whether_it_is_available: break;
  }
  compute(*call);
  return OPMUX_OK;
}

int32_t (*run_of(Behaviour behaviour))(void*, const opmux_call*) {
  switch (behaviour) {
    case Behaviour::computes: return run<Behaviour::computes>;
    case Behaviour::fails: return run<Behaviour::fails>;
    case Behaviour::declines: return run<Behaviour::declines>;
    case Behaviour::lacks_memory: return run<Behaviour::lacks_memory>;
    case Behaviour::uses_workspace: return run<Behaviour::uses_workspace>;
    case Behaviour::uses_a_prepared_state: return run<Behaviour::uses_a_prepared_state>;
    case Behaviour::uses_threads: return run<Behaviour::uses_threads>;
    case Behaviour::asks_whether_it_is_available: return run<Behaviour::computes>;
    case Behaviour::calls_an_operator: break;
  }
  return run<Behaviour::calls_an_operator>;
}

uint64_t workspace(void*, const opmux_call*) { return 4096; }

int32_t plan(void*, const opmux_call*, void** prepared) {
  *prepared = std::malloc(16);
  return *prepared == nullptr ? OPMUX_RESOURCE : OPMUX_OK;
}
void plan_free(void*, void* prepared) { std::free(prepared); }

int32_t is_available(void*, opmux_error*) { return OPMUX_OK; }

}  // namespace

int32_t implement_silu(opmux_runtime* runtime, Behaviour behaviour,
                       opmux_registration** registration, opmux_error* error) {
  runtime_of_kernel = runtime;
  opmux_impl impl{};
  impl.struct_size = sizeof impl;
  impl.op = OPMUX_STR("silu_and_mul");
  impl.variant = OPMUX_STR("v");
  impl.priority = 900;
  impl.run = run_of(behaviour);
  if (behaviour == Behaviour::uses_workspace) impl.workspace = workspace;
  if (behaviour == Behaviour::uses_a_prepared_state) {
    impl.plan = plan;
    impl.plan_free = plan_free;
  }
  opmux_backend backend{};
  backend.struct_size = sizeof backend;
  backend.name = OPMUX_STR("mine");
  backend.kind = OPMUX_KIND_VENDOR;
  backend.device_type = OPMUX_DEVICE_CPU;
  backend.vendor = OPMUX_STR("me");
  backend.priority = -1;
  if (behaviour == Behaviour::asks_whether_it_is_available) backend.is_available = is_available;
  backend.impls = &impl;
  backend.impl_count = 1;
  backend.impl_stride = sizeof impl;
  return opmux_implement(runtime, &backend, registration, error);
}

uint64_t runs_of_silu() { return runs.load(); }

}  // namespace opmux::test
