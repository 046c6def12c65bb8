/* A plugin with one correct implementation that misbehaves at the stage AT. */
#include <opmux/abi.h>

#include "misdeed.h"

static int32_t run(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_OK;
}

static const opmux_impl impls[] = {{.struct_size = sizeof(opmux_impl),
                                    .op = OPMUX_STR(NAME ".swish"),
                                    .variant = OPMUX_STR("v1"),
                                    .priority = -1,
                                    .run = run}};
static int32_t is_available(void* user_data, opmux_error* why) {
  (void)user_data;
  (void)why;
#if AT == AT_IS_AVAILABLE
  misdeed();
#endif
  return OPMUX_OK;
}

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
static const opmux_schema_text operators[] = {
    {sizeof(opmux_schema_text), 0, OPMUX_STR(NAME ".swish(out Tensor y[N], Tensor x[N])")}};

#if AT == AT_OPEN
__attribute__((constructor)) static void constructed(void) { misdeed(); }
#endif

#if AT == AT_INIT
static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  (void)user_data;
  (void)host;
  (void)error;
  misdeed();
  return OPMUX_OK;
}
#endif

#if AT == AT_SELF_TEST
static int32_t self_test(void* user_data, opmux_error* error) {
  (void)user_data;
  (void)error;
  misdeed();
  return OPMUX_OK;
}
#endif

OPMUX_PLUGIN_ENTRY(hostile) {
  (void)host;
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of(NAME);
  out->version = opmux_str_of("1");
  out->backends = backends;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
#if AT == AT_QUERY
  misdeed();
#elif AT == AT_INIT
  out->init = init;
#elif AT == AT_SELF_TEST
  out->self_test = self_test;
#endif
  return OPMUX_OK;
}
