/* silu_and_mul in f32; DEFECT selects one defect. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opmux/abi.h>

#define RIGHT 0
#define WRITES_OUT_OF_BOUNDS 1
#define RETURNS_NAN 2
#define IS_NONDETERMINISTIC 3
#define HANGS 4
#define ABORTS 5
#define EXITS 6
#define CRASHES_WHEN_LOADED 7
#define HAS_HIGH_PRIORITY 8
#define IS_NOT_AVAILABLE 9
#define HAS_A_BAD_NEIGHBOUR 10
#define MAKES_NO_INSTANCE 11

static float* elements(const opmux_call* call, uint32_t i) {
  const opmux_tensor* tensor = call->args[i].value.tensor;
  return (float*)((char*)tensor->data + tensor->byte_offset);
}

static void bend(float* y, int64_t count) {
#if DEFECT == WRITES_OUT_OF_BOUNDS
  y[-1] = 1;
#elif DEFECT == RETURNS_NAN
  if (count > 8) y[count - 1] = NAN;
#elif DEFECT == IS_NONDETERMINISTIC
  static int calls = 0;
  y[0] *= 1 + (float)(calls++ % 7) * 0x1p-23F;
#elif DEFECT == HANGS
  for (;;) pause();
#elif DEFECT == ABORTS
  abort();
#elif DEFECT == EXITS
  _exit(7);
#endif
  (void)y;
  (void)count;
}

static int32_t run(void* user_data, const opmux_call* call) {
  const opmux_tensor* out = call->args[0].value.tensor;
  const int64_t half = out->shape[out->ndim - 1];
  int64_t rows = 1;
  (void)user_data;
  for (int32_t d = 0; d + 1 < out->ndim; ++d) rows *= out->shape[d];
  for (int64_t r = 0; r < rows; ++r) {
    const float *gate = elements(call, 1) + r * 2 * half, *up = gate + half;
    float* y = elements(call, 0) + r * half;
    for (int64_t i = 0; i < half; ++i) y[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
  }
  bend(elements(call, 0), rows * half);
  return OPMUX_OK;
}

#if DEFECT == CRASHES_WHEN_LOADED
__attribute__((constructor)) static void crash(void) { raise(SIGSEGV); }
#endif

static int32_t available(void* user_data, opmux_error* why) {
  (void)user_data;
  (void)why;
  return DEFECT == IS_NOT_AVAILABLE ? OPMUX_DECLINED : OPMUX_OK;
}

#if DEFECT == MAKES_NO_INSTANCE
static int32_t create(void* user_data, const opmux_arg* options, uint32_t count, void** instance,
                      opmux_error* error) {
  (void)options;
  (void)count;
  (void)error;
  *instance = user_data;
  return OPMUX_OK;
}
static void destroy(void* user_data, void* instance) {
  (void)user_data;
  (void)instance;
}
#endif

static const opmux_dtype f32[] = {{OPMUX_DTYPE_FLOAT, 32, 1}};
static const opmux_dtype_rule dtypes[] = {{sizeof(opmux_dtype_rule), 1, OPMUX_STR(""), f32}};
static const opmux_tensor_rule tensors[] = {
    {.struct_size = sizeof(opmux_tensor_rule), .flags = OPMUX_TENSOR_CONTIGUOUS}};
static const opmux_caps caps = {.struct_size = sizeof(opmux_caps),
                                .dtypes = dtypes,
                                .dtype_count = 1,
                                .dtype_stride = sizeof dtypes[0],
                                .tensors = tensors,
                                .tensor_count = 1,
                                .tensor_stride = sizeof tensors[0]};
static const opmux_impl impls[] = {
    {.struct_size = sizeof(opmux_impl),
     .flags = OPMUX_IMPL_DETERMINISTIC,
     .op = OPMUX_STR("silu_and_mul"),
     .variant = OPMUX_STR("v1"),
     .signature =
         OPMUX_STR("silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H"),
     .priority = DEFECT == HAS_HIGH_PRIORITY ? 900 : -1,
     .caps = &caps,
#if DEFECT == MAKES_NO_INSTANCE
     .create = create,
     .destroy = destroy,
#endif
     .run = run}};

#define BACKEND(text, of_kind)           \
  {.struct_size = sizeof(opmux_backend), \
   .name = OPMUX_STR(text),              \
   .kind = of_kind,                      \
   .device_type = OPMUX_DEVICE_CPU,      \
   .vendor = OPMUX_STR("checked"),       \
   .priority = -1,                       \
   .is_available = available,            \
   .impls = impls,                       \
   .impl_count = 1,                      \
   .impl_stride = sizeof impls[0]}
static const opmux_backend backends[] = {BACKEND("checked", OPMUX_KIND_VENDOR),
                                         BACKEND("neighbour", 77)};

OPMUX_PLUGIN_ENTRY(checked) {
  (void)host;
  if (out->struct_size < sizeof *out) return OPMUX_INVALID_ARGUMENT;
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("checked");
  out->version = opmux_str_of("1.2");
  out->vendor = opmux_str_of("checked");
  out->backends = backends;
  out->backend_count = DEFECT == HAS_A_BAD_NEIGHBOUR ? 2 : 1;
  out->backend_stride = sizeof backends[0];
  return OPMUX_OK;
}
