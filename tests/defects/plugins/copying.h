/* A plugin with one backend that implements `NAME.copy`. Each test plugin changes one property of
   it. */
#ifndef OPMUX_TESTS_DEFECTS_COPYING_H
#define OPMUX_TESTS_DEFECTS_COPYING_H

#include <string.h>

#include <opmux/abi.h>

#define COPY_SCHEMA(name) name ".copy(out Tensor y[N], Tensor x[N])"

static int32_t copy(void* user_data, const opmux_call* call) {
  const opmux_tensor *y = call->args[0].value.tensor, *x = call->args[1].value.tensor;
  (void)user_data;
  memcpy((char*)y->data + y->byte_offset, (const char*)x->data + x->byte_offset,
         (size_t)x->shape[0] * sizeof(float));
  return OPMUX_OK;
}

static inline opmux_impl copying_impl(const char* op, const char* schema) {
  opmux_impl impl;
  memset(&impl, 0, sizeof impl);
  impl.struct_size = sizeof impl;
  impl.op = opmux_str_of(op);
  impl.variant = opmux_str_of("v1");
  impl.signature = opmux_str_of(schema);
  impl.priority = -1;
  impl.run = copy;
  return impl;
}

static inline opmux_backend copying_backend(const char* name, const opmux_impl* impl) {
  opmux_backend backend;
  memset(&backend, 0, sizeof backend);
  backend.struct_size = sizeof backend;
  backend.name = backend.vendor = opmux_str_of(name);
  backend.kind = OPMUX_KIND_VENDOR;
  backend.device_type = OPMUX_DEVICE_CPU;
  backend.priority = -1;
  backend.impls = impl;
  backend.impl_count = 1;
  backend.impl_stride = sizeof *impl;
  return backend;
}

static inline opmux_schema_text copying_schema(const char* schema) {
  opmux_schema_text text;
  memset(&text, 0, sizeof text);
  text.struct_size = sizeof text;
  text.text = opmux_str_of(schema);
  return text;
}

static inline void fill_plugin(opmux_plugin* out, const char* name, const opmux_backend* backend,
                               const opmux_schema_text* schema) {
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of(name);
  out->version = opmux_str_of("1");
  out->backends = backend;
  out->backend_count = 1;
  out->backend_stride = sizeof *backend;
  out->operators = schema;
  out->operator_count = 1;
  out->operator_stride = sizeof *schema;
}

#endif
