/* Implementations of silu_and_mul (CPU, f32) with one error each; correct with TWIN. */
#include <opmux/abi.h>

#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#if defined(DEED_LEAVE_ROUNDING) || defined(DEED_LEAVE_FLUSHING) || defined(DEED_LEAVE_X87) || \
    defined(DEED_LEAVE_SIGNALS) || defined(DEED_LEAVE_FOLDER)
#define LEAVES
#endif

static int64_t elements_of(const opmux_tensor* tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count;
}

static float* floats_of(const opmux_tensor* tensor) {
  return (float*)((char*)tensor->data + tensor->byte_offset);
}

/* Leaves a state of the thread or the process changed; the twin restores it. */
#if defined(DEED_LEAVE_ROUNDING)
static void leave(void) {
  const int before = fegetround();
  fesetround(FE_UPWARD);
#ifdef TWIN
  fesetround(before);
#else
  (void)before;
#endif
}
#elif defined(DEED_LEAVE_FLUSHING)
static void leave(void) {
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);
#ifdef TWIN
  __builtin_ia32_ldmxcsr(before);
#endif
}
#elif defined(DEED_LEAVE_X87)
static void leave(void) {
  unsigned short before, single;
  __asm__ volatile("fnstcw %0" : "=m"(before));
  single = before & ~0x0300; /* rounds to 24 bits */
  __asm__ volatile("fldcw %0" : : "m"(single));
#ifdef TWIN
  __asm__ volatile("fldcw %0" : : "m"(before));
#endif
}
#elif defined(DEED_LEAVE_SIGNALS)
static void leave(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#ifdef TWIN
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
}
#elif defined(DEED_LEAVE_FOLDER)
static void leave(void) {
  char before[4096];
  if (getcwd(before, sizeof before) == NULL || chdir("/") != 0) return;
#ifdef TWIN
  if (chdir(before) != 0) return;
#endif
}
#endif

static int32_t run(void* user_data, const opmux_call* call) {
  const opmux_tensor* out = call->args[0].value.tensor;
  const opmux_tensor* in = call->args[1].value.tensor;
  const int64_t count = elements_of(out);
  const int64_t width = out->ndim > 0 ? out->shape[out->ndim - 1] : 1;
  float* y = floats_of(out);
  const float* x = floats_of(in);
  (void)user_data;
  for (int64_t i = 0; i < count; ++i) {
    const float* gate = x + i / width * 2 * width + i % width;
    y[i] = gate[0] / (1.0f + expf(-gate[0])) * gate[width];
  }
#if defined(LEAVES)
  leave();
#elif !defined(TWIN)
#if defined(DEED_OUT_OF_BOUNDS)
  y[count] = 1.0f;
#elif defined(DEED_NAN)
  if (count > 0) y[count - 1] = NAN;
#elif defined(DEED_NONDETERMINISTIC)
  static atomic_uint calls;
  if (count > 0) y[0] = nextafterf(y[0], (atomic_fetch_add(&calls, 1) & 1) ? 2e9f : -2e9f);
#else
#error "no such deed"
#endif
#endif
  return OPMUX_OK;
}

OPMUX_PLUGIN_ENTRY(hostile) {
  static const opmux_dtype floats[] = {{OPMUX_DTYPE_FLOAT, 32, 1}};
  static const opmux_dtype_rule dtypes[] = {{sizeof(opmux_dtype_rule), 1, {NULL, 0}, floats}};
  static const opmux_tensor_rule tensors[] = {
      {.struct_size = sizeof(opmux_tensor_rule), .flags = OPMUX_TENSOR_CONTIGUOUS}};
  static const opmux_caps caps = {.struct_size = sizeof(opmux_caps),
                                  .dtypes = dtypes,
                                  .dtype_count = 1,
                                  .dtype_stride = sizeof(opmux_dtype_rule),
                                  .tensors = tensors,
                                  .tensor_count = 1,
                                  .tensor_stride = sizeof(opmux_tensor_rule)};
  static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                      .flags = OPMUX_IMPL_DETERMINISTIC,
                                      .op = OPMUX_STR("silu_and_mul"),
                                      .variant = OPMUX_STR("f32"),
                                      .priority = -1,
                                      .caps = &caps,
                                      .run = run}};
  static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                            .name = OPMUX_STR(NAME),
                                            .kind = OPMUX_KIND_VENDOR,
                                            .device_type = OPMUX_DEVICE_CPU,
                                            .vendor = OPMUX_STR("stranger"),
                                            .priority = -1,
                                            .impls = impls,
                                            .impl_count = 1,
                                            .impl_stride = sizeof(opmux_impl)}};
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of(NAME);
  out->version = opmux_str_of("1");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  return OPMUX_OK;
}
