#include "c_test.h"

opmux_runtime* make_runtime(void) {
  const opmux_variable none = {{NULL, 0}, {NULL, 0}};
  opmux_options options = {.struct_size = sizeof(options), .flags = OPMUX_OPTION_NO_BACKENDS};
  options.environment = &none;
  opmux_runtime* runtime = NULL;
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_runtime_create(&options, &runtime, &error) == OPMUX_OK);
  return runtime;
}

opmux_operator* get(opmux_runtime* runtime, const char* name) {
  opmux_operator* op = NULL;
  CHECK(opmux_operator_get(runtime, opmux_str_of(name), &op, NULL) == OPMUX_OK);
  return op;
}

void make_matrix(matrix* m, int64_t rows, int64_t columns) {
  memset(m, 0, sizeof(*m));
  for (int i = 0; i < 12; ++i) m->data[i] = (float)(i + 1);
  m->shape[0] = rows;
  m->shape[1] = columns;
  m->strides[0] = columns;
  m->strides[1] = 1;
  m->tensor.data = m->data;
  m->tensor.device.type = OPMUX_DEVICE_CPU;
  m->tensor.ndim = 2;
  m->tensor.dtype.code = OPMUX_DTYPE_FLOAT;
  m->tensor.dtype.bits = 32;
  m->tensor.dtype.lanes = 1;
  m->tensor.shape = m->shape;
  m->tensor.strides = m->strides;
}

static int32_t run_twice(void* user_data, const opmux_call* call) {
  twice* t = user_data;
  ++t->calls;
  if (t->outcome != OPMUX_OK) {
    const size_t size = strlen(t->sentence);
    CHECK(call->error != NULL && call->error->text_capacity >= size);
    memcpy(call->error->text, t->sentence, size);
    call->error->text_size = size;
    return t->outcome;
  }
  const opmux_tensor* y = call->args[0].value.tensor;
  const opmux_tensor* x = call->args[1].value.tensor;
  for (int64_t i = 0; i < x->shape[0]; ++i) {
    ((float*)y->data)[i] = (float)call->args[2].value.i64 * ((const float*)x->data)[i];
  }
  return OPMUX_OK;
}

void make_twice(twice* t, const char* backend, const char* variant, int32_t priority) {
  memset(t, 0, sizeof(*t));
  t->impl.struct_size = sizeof(t->impl);
  t->impl.op = opmux_str_of("twice");
  t->impl.variant = opmux_str_of(variant);
  t->impl.priority = priority;
  t->impl.user_data = t;
  t->impl.run = run_twice;
  t->backend.struct_size = sizeof(t->backend);
  t->backend.name = opmux_str_of(backend);
  t->backend.kind = OPMUX_KIND_VENDOR;
  t->backend.vendor = opmux_str_of(backend);
  t->backend.priority = -1;
  t->backend.impls = &t->impl;
  t->backend.impl_count = 1;
  t->backend.impl_stride = sizeof(t->impl);
}

int equals(opmux_str text, const char* expected) {
  return text.size == strlen(expected) && memcmp(text.data, expected, text.size) == 0;
}

const char* runner(opmux_operator* op, const opmux_arg* args, uint32_t count) {
  static opmux_report report;
  opmux_error error = OPMUX_ERROR_INIT;
  report.struct_size = sizeof(report);
  if (opmux_call_operator_with(op, args, count, NULL, &report, &error) != OPMUX_OK) {
    fprintf(stderr, "the call failed: %s\n", error.text);
    exit(1);
  }
  return report.implementation;
}

typedef struct entry {
  const char* name;
  void (*run)(void);
} entry;

static const entry entries[] = {
#define C_TEST(name) {#name, name},
#include "tests.inc"
#undef C_TEST
};

int main(int argc, char** argv) {
  int ran = 0;
  for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); ++i) {
    if (argc > 1 && strcmp(argv[1], entries[i].name) != 0) continue;
    entries[i].run();
    ++ran;
  }
  printf("%d passed\n", ran);
  return ran == 0;
}
