/*
 * softmax/harbor.online in C: f32, one pass over each row for maximum and sum, rows divided
 * over the engine's threads, a probe that says why the backend is unavailable, and a self-test.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <opmux/abi.h>

/* ---- The kernel ---------------------------------------------------------------------------- */

typedef struct rows {
  float* y;
  const float* x;
  int64_t y_stride, x_stride, width;
  float scale;
} rows;

/* Result of a row without a finite value: zeros; of a row with NaN or +infinity: NaN. */
static void fill(float* y, int64_t width, float value) {
  for (int64_t i = 0; i < width; ++i) y[i] = value;
}

static void one_row(void* context, int64_t row) {
  const rows* all = context;
  const float* x = all->x + row * all->x_stride;
  float *y = all->y + row * all->y_stride, most = -INFINITY;
  double sum = 0;
  for (int64_t i = 0; i < all->width; ++i) {
    const float value = x[i] * all->scale;
    if (isnan(value) || value == INFINITY) return fill(y, all->width, NAN);
    if (value > most) {
      sum = most == -INFINITY ? 0 : sum * exp((double)most - value);
      most = value;
    }
    if (value > -INFINITY) sum += expf(value - most);
  }
  if (most == -INFINITY) return fill(y, all->width, 0);
  for (int64_t i = 0; i < all->width; ++i) {
    y[i] = (float)(expf(x[i] * all->scale - most) / sum);
  }
}

static float* elements(const opmux_tensor* tensor) {
  return (float*)((char*)tensor->data + tensor->byte_offset);
}

/* Processes the rows of a matrix; the capabilities refuse other ranks. Arguments: y, x, scale. */
static int32_t run(void* user_data, const opmux_call* call) {
  const opmux_tensor *y = call->args[0].value.tensor, *x = call->args[1].value.tensor;
  rows all = {.y = elements(y),
              .x = elements(x),
              .y_stride = y->strides[0],
              .x_stride = x->strides[0],
              .width = x->shape[1],
              .scale = (float)call->args[2].value.f64};
  (void)user_data;
  if (call->parallel_for && call->max_threads > 1) {
    call->parallel_for(call->pool, x->shape[0], &all, one_row);
  } else {
    for (int64_t row = 0; row < x->shape[0]; ++row) one_row(&all, row);
  }
  return OPMUX_OK;
}

/* ---- Reasons -------------------------------------------------------------------------------- */

static int32_t decline(opmux_error* why, const char* code, const char* text) {
  const opmux_str words = opmux_str_of(text);
  why->outcome = OPMUX_DECLINED;
  why->code = opmux_str_of(code);
  why->text_size = words.size < why->text_capacity ? words.size : why->text_capacity;
  if (why->text) memcpy(why->text, words.data, why->text_size);
  return OPMUX_DECLINED;
}

static int32_t verify(void* user_data, const opmux_facts* facts, opmux_error* why) {
  const opmux_str name = OPMUX_STR("scale");
  int64_t bits = 0;
  double scale = 1;
  (void)user_data;
  if (facts->get(facts->context, OPMUX_FACT_SCALAR, name, &bits)) memcpy(&scale, &bits, 8);
  if (isfinite(scale) && scale > 0) return OPMUX_OK;
  return decline(why, "harbor.scale", "the running maximum needs a finite scale above 0");
}

/* A vendor would check for its hardware here. */
static int32_t available(void* user_data, opmux_error* why) {
  (void)user_data;
  if (!getenv("HARBOR_CLOSED")) return OPMUX_OK;
  return decline(why, "harbor.closed", "HARBOR_CLOSED is set");
}

static int32_t self_test(void* user_data, opmux_error* error) {
  const float x[2] = {0, 0};
  float y[2];
  rows all = {.y = y, .x = x, .y_stride = 2, .x_stride = 2, .width = 2, .scale = 1};
  (void)user_data;
  (void)error;
  one_row(&all, 0);
  return y[0] == 0.5F && y[1] == 0.5F ? OPMUX_OK : OPMUX_FAILED;
}

/* ---- Capabilities and descriptors ----------------------------------------------------------- */

static const opmux_fact verify_reads[] = {
    {sizeof(opmux_fact), OPMUX_FACT_SCALAR, OPMUX_STR("scale")}};
static const opmux_dtype f32[] = {{OPMUX_DTYPE_FLOAT, 32, 1}};
static const opmux_dtype_rule dtypes[] = {{sizeof(opmux_dtype_rule), 1, OPMUX_STR(""), f32}};
static const opmux_tensor_rule tensors[] = {{.struct_size = sizeof(opmux_tensor_rule),
                                             .flags = OPMUX_TENSOR_INNER_CONTIGUOUS,
                                             .min_rank = 2,
                                             .max_rank = 2}};
static const opmux_caps caps = {.struct_size = sizeof(opmux_caps),
                                .dtypes = dtypes,
                                .dtype_count = 1,
                                .dtype_stride = sizeof dtypes[0],
                                .tensors = tensors,
                                .tensor_count = 1,
                                .tensor_stride = sizeof tensors[0]};

static const opmux_impl impls[] = {
    {.struct_size = sizeof(opmux_impl),
     .flags = OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT,
     .op = OPMUX_STR("softmax"),
     .variant = OPMUX_STR("online"),
     .signature = OPMUX_STR("softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)"),
     .priority = -1,
     .caps = &caps,
     .verify = verify,
     .verify_reads = verify_reads,
     .verify_reads_count = 1,
     .verify_reads_stride = sizeof verify_reads[0],
     .run = run}};

static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR("harbor"),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("harbor"),
                                          .priority = -1,
                                          .is_available = available,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof impls[0]}};

static const opmux_plugin plugin = {.struct_size = sizeof(opmux_plugin),
                                    .abi_major = OPMUX_ABI_MAJOR,
                                    .abi_minor = OPMUX_ABI_MINOR,
                                    .name = OPMUX_STR("harbor"),
                                    .version = OPMUX_STR("1.0.0"),
                                    .vendor = OPMUX_STR("harbor"),
                                    .backends = backends,
                                    .backend_count = 1,
                                    .backend_stride = sizeof backends[0],
                                    .self_test = self_test};

/* Writes only as many bytes as the host's struct has, because an older host has a shorter one. */
OPMUX_PLUGIN_ENTRY(harbor) {
  const uint32_t room = out->struct_size;
  (void)host;
  memcpy(out, &plugin, room < sizeof plugin ? room : sizeof plugin);
  if (room < sizeof plugin) out->struct_size = room;
  return OPMUX_OK;
}
