/* rms_norm/acme.scalar: an implementation of rms_norm for f32, and its capabilities. */
#include <math.h>
#include <string.h>

#include <opmux/abi.h>

#ifndef ACME_VERSION
#define ACME_VERSION "0.1.0"
#endif

/* The first element of a tensor argument; null if the argument was omitted. */
static float* elements(const opmux_call* call, uint32_t position) {
  const opmux_arg* arg = &call->args[position];
  if (arg->tag != OPMUX_ARG_TENSOR) return NULL;
  return (float*)((char*)arg->value.tensor->data + arg->value.tensor->byte_offset);
}

static void normalise(float* y, const float* x, const float* weight, int64_t width, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += (double)x[i] * x[i];
  const double scale = 1 / sqrt(squares / (double)width + eps);
  for (int64_t i = 0; i < width; ++i) y[i] = (float)(x[i] * scale * (weight ? weight[i] : 1));
}

/* Arguments are in the order of the signature below: y, x, weight, eps, round_before_weight. */
static int32_t run(void* user_data, const opmux_call* call) {
  const opmux_tensor* x = call->args[1].value.tensor;
  const int64_t width = x->shape[x->ndim - 1];
  int64_t rows = 1;
  (void)user_data;
  for (int32_t d = 0; d + 1 < x->ndim; ++d) rows *= x->shape[d];
  for (int64_t row = 0; row < rows; ++row) {
    normalise(elements(call, 0) + row * width, elements(call, 1) + row * width, elements(call, 2),
              width, call->args[3].value.f64);
  }
  return OPMUX_OK;
}

static int32_t refuse(opmux_error* why, const char* code, const char* text) {
  const opmux_str words = opmux_str_of(text);
  why->outcome = OPMUX_DECLINED;
  why->code = opmux_str_of(code);
  why->text_size = words.size < why->text_capacity ? words.size : why->text_capacity;
  if (why->text) memcpy(why->text, words.data, why->text_size);
  return OPMUX_DECLINED;
}

/* Checks conditions that capabilities cannot express. Cheap and pure: it gets facts, not data. */
static int32_t verify(void* user_data, const opmux_facts* facts, opmux_error* why) {
  const opmux_str name = OPMUX_STR("eps");
  int64_t bits = 0;
  double eps = 0;
  (void)user_data;
  if (!facts->get(facts->context, OPMUX_FACT_SCALAR, name, &bits)) return OPMUX_OK;
  memcpy(&eps, &bits, sizeof eps);
  if (eps > 0) return OPMUX_OK;
  return refuse(why, "acme.eps", "eps must be above 0, a row of zeros has no norm");
}

static const opmux_fact verify_reads[] = {
    {sizeof(opmux_fact), OPMUX_FACT_SCALAR, OPMUX_STR("eps")}};

/* The host checks and explains these capabilities without calling the plugin. */
static const opmux_dtype f32[] = {{OPMUX_DTYPE_FLOAT, 32, 1}};
static const opmux_dtype_rule dtypes[] = {{sizeof(opmux_dtype_rule), 1, OPMUX_STR(""), f32}};
static const opmux_tensor_rule tensors[] = {
    {.struct_size = sizeof(opmux_tensor_rule), .flags = OPMUX_TENSOR_CONTIGUOUS}};
static const int64_t no[] = {0};
static const opmux_scalar_rule scalars[] = {
    {sizeof(opmux_scalar_rule), 1, OPMUX_STR("round_before_weight"), no}};
static const opmux_caps caps = {.struct_size = sizeof(opmux_caps),
                                .dtypes = dtypes,
                                .dtype_count = 1,
                                .dtype_stride = sizeof dtypes[0],
                                .tensors = tensors,
                                .tensor_count = 1,
                                .tensor_stride = sizeof tensors[0],
                                .scalars = scalars,
                                .scalar_count = 1,
                                .scalar_stride = sizeof scalars[0]};

static const opmux_impl impls[] = {
    {.struct_size = sizeof(opmux_impl),
     .flags = OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT,
     .op = OPMUX_STR("rms_norm"),
     .variant = OPMUX_STR("scalar"),
     .signature = OPMUX_STR("rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], "
                            "float eps = 1e-6, bool round_before_weight = false)"),
     .priority = -1, /* the default of a vendor: 100 */
     .caps = &caps,
     .verify = verify,
     .verify_reads = verify_reads,
     .verify_reads_count = 1,
     .verify_reads_stride = sizeof verify_reads[0],
     .run = run}};

static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("acme"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("acme"),
                                          .priority = -1,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof impls[0]}};

static const opmux_plugin plugin = {.struct_size = sizeof(opmux_plugin),
                                    .abi_major = OPMUX_ABI_MAJOR,
                                    .abi_minor = OPMUX_ABI_MINOR,
                                    .name = OPMUX_STR("acme"),
                                    .version = OPMUX_STR(ACME_VERSION),
                                    .vendor = OPMUX_STR("acme"),
                                    .backends = backends,
                                    .backend_count = 1,
                                    .backend_stride = sizeof backends[0]};

/* Writes only the fields that the host knows, because an older host has a shorter struct. */
OPMUX_PLUGIN_ENTRY(acme) {
  const uint32_t room = out->struct_size;
  (void)host;
  memcpy(out, &plugin, room < sizeof plugin ? room : sizeof plugin);
  if (room < sizeof plugin) out->struct_size = room;
  return OPMUX_OK;
}
