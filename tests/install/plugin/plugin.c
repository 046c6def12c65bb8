#include <opmux/abi.h>

/* softmax/zeta.none has the highest priority and declines every call. */
static int32_t decline(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_DECLINED;
}

OPMUX_PLUGIN_ENTRY(zeta) {
  static opmux_impl impl;
  static opmux_backend backend;
  (void)host;
  impl.struct_size = sizeof(impl);
  impl.op = opmux_str_of("softmax");
  impl.variant = opmux_str_of("none");
  impl.signature = opmux_str_of("softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)");
  impl.priority = 900;
  impl.run = decline;
  backend.struct_size = sizeof(backend);
  backend.name = opmux_str_of("zeta");
  backend.vendor = opmux_str_of("zeta");
  backend.kind = OPMUX_KIND_VENDOR;
  backend.priority = -1;
  backend.impls = &impl;
  backend.impl_count = 1;
  backend.impl_stride = sizeof(impl);
  out->struct_size = sizeof(*out);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("zeta");
  out->version = opmux_str_of("1");
  out->vendor = opmux_str_of("zeta");
  out->backends = &backend;
  out->backend_count = 1;
  out->backend_stride = sizeof(backend);
  return OPMUX_OK;
}
