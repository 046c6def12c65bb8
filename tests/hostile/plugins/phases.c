/*
 * An implementation of linear (CPU, f32) that packs its weight and prepares its calls. It behaves
 * well on trial and misbehaves in the host, in the function AT.
 */
#include <opmux/abi.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "misdeed.h"

static void act(int stage) {
  if (stage == AT && strcmp(program_invocation_short_name, "opmux-probe") != 0) misdeed();
}

static float* floats_of(const opmux_tensor* tensor) {
  return (float*)((char*)tensor->data + tensor->byte_offset);
}

/* The packed weight. */
typedef struct Packed {
  float* weight;
} Packed;

static int32_t verify(void* user_data, const opmux_facts* facts, opmux_error* why) {
  (void)user_data;
  (void)facts;
  (void)why;
  act(AT_VERIFY);
  return OPMUX_OK;
}

static int32_t create(void* user_data, const opmux_arg* options, uint32_t count, void** instance,
                      opmux_error* error) {
  (void)user_data;
  (void)options;
  (void)count;
  (void)error;
  act(AT_CREATE);
  *instance = calloc(1, sizeof(Packed));
  return *instance != NULL ? OPMUX_OK : OPMUX_RESOURCE;
}

static int32_t load(void* user_data, void* instance, const opmux_arg* params, uint32_t count,
                    opmux_error* error) {
  const opmux_tensor* weight = params[2].value.tensor;
  const size_t size = (size_t)(weight->shape[0] * weight->shape[1]) * sizeof(float);
  Packed* packed = instance;
  (void)user_data;
  (void)count;
  (void)error;
  act(AT_LOAD);
  packed->weight = malloc(size);
  if (packed->weight == NULL) return OPMUX_RESOURCE;
  memcpy(packed->weight, floats_of(weight), size);
  return OPMUX_OK;
}

static void destroy(void* user_data, void* instance) {
  (void)user_data;
  free(((Packed*)instance)->weight);
  free(instance);
}

static int32_t plan(void* user_data, const opmux_call* call, void** prepared) {
  (void)user_data;
  (void)call;
  act(AT_PLAN);
  *prepared = NULL;
  return OPMUX_OK;
}

static int32_t run(void* user_data, const opmux_call* call) {
  const opmux_tensor* y = call->args[0].value.tensor;
  const opmux_tensor* weight = call->args[2].value.tensor;
  const int64_t outputs = weight->shape[0], inputs = weight->shape[1];
  const float* x = floats_of(call->args[1].value.tensor);
  const float* w = call->instance != NULL ? ((Packed*)call->instance)->weight : floats_of(weight);
  int64_t rows = 1;
  (void)user_data;
  act(AT_RUN);
  for (int i = 0; i + 1 < y->ndim; ++i) rows *= y->shape[i];
  for (int64_t i = 0; i < rows * outputs; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < inputs; ++k) {
      sum += x[i / outputs * inputs + k] * w[i % outputs * inputs + k];
    }
    floats_of(y)[i] = sum;
  }
  return OPMUX_OK;
}

static int32_t is_available(void* user_data, opmux_error* why) {
  (void)user_data;
  (void)why;
  act(AT_IS_AVAILABLE);
  return OPMUX_OK;
}

static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  (void)user_data;
  (void)host;
  (void)error;
  act(AT_INIT);
  return OPMUX_OK;
}

__attribute__((constructor)) static void constructed(void) { act(AT_OPEN); }

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
#ifdef TWIN
#define PRIORITY 800
#else
#define PRIORITY 900
#endif
static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                    .op = OPMUX_STR("linear"),
                                    .variant = OPMUX_STR("v1"),
                                    .priority = PRIORITY,
                                    .caps = &caps,
                                    .verify = verify,
                                    .plan = plan,
                                    .run = run,
                                    .create = create,
                                    .load = load,
                                    .destroy = destroy}};
static const opmux_backend backends[] = {{.struct_size = sizeof(opmux_backend),
                                          .name = OPMUX_STR(NAME),
                                          .kind = OPMUX_KIND_VENDOR,
                                          .device_type = OPMUX_DEVICE_CPU,
                                          .vendor = OPMUX_STR("stranger"),
                                          .priority = -1,
                                          .is_available = is_available,
                                          .impls = impls,
                                          .impl_count = 1,
                                          .impl_stride = sizeof(opmux_impl)}};

OPMUX_PLUGIN_ENTRY(phases) {
  (void)host;
  act(AT_QUERY);
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of(NAME);
  out->version = opmux_str_of("1");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->init = init;
  return OPMUX_OK;
}
