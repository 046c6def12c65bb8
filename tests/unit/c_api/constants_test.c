#include "c_test.h"

#define SCALE "scale(out Tensor y[N], Tensor x[N], const Tensor w[N])"

/* An implementation whose packed copy is the first number of the constant. */
typedef struct scale {
  opmux_impl impl;
  opmux_backend backend;
  int32_t created, destroyed;
} scale;

static int32_t create(void* self, const opmux_arg* options, uint32_t count, void** instance,
                      opmux_error* error) {
  (void)options, (void)count, (void)error;
  ++((scale*)self)->created;
  *instance = malloc(sizeof(float));
  return *instance == NULL ? OPMUX_RESOURCE : OPMUX_OK;
}

static int32_t load(void* self, void* instance, const opmux_arg* params, uint32_t count,
                    opmux_error* error) {
  (void)self, (void)count, (void)error;
  *(float*)instance = *(const float*)params[2].value.tensor->data;
  return OPMUX_OK;
}

static void destroy(void* self, void* instance) {
  ++((scale*)self)->destroyed;
  free(instance);
}

/* Writes its packed copy, or -1 if it has none. */
static int32_t run(void* self, const opmux_call* call) {
  (void)self;
  *(float*)call->args[0].value.tensor->data = call->instance ? *(const float*)call->instance : -1;
  return OPMUX_OK;
}

typedef struct setting {
  opmux_runtime* runtime;
  opmux_operator* op;
  scale acme;
  opmux_registration* held;
  matrix y, x, w;
  opmux_constant* constant;
  opmux_arg args[3];
} setting;

static void make_setting(setting* s) {
  memset(s, 0, sizeof(*s));
  s->runtime = make_runtime();
  CHECK(opmux_define(s->runtime, opmux_str_of(SCALE), 0, NULL) == OPMUX_OK);
  s->op = get(s->runtime, "scale");
  s->acme.impl = (opmux_impl){.struct_size = sizeof(opmux_impl),
                              .op = OPMUX_STR("scale"),
                              .variant = OPMUX_STR("v1"),
                              .priority = -1,
                              .user_data = &s->acme,
                              .run = run,
                              .create = create,
                              .load = load,
                              .destroy = destroy};
  s->acme.backend = (opmux_backend){.struct_size = sizeof(opmux_backend),
                                    .kind = OPMUX_KIND_VENDOR,
                                    .name = OPMUX_STR("acme"),
                                    .vendor = OPMUX_STR("acme"),
                                    .impls = &s->acme.impl,
                                    .impl_count = 1,
                                    .impl_stride = sizeof(opmux_impl)};
  CHECK(opmux_implement(s->runtime, &s->acme.backend, &s->held, NULL) == OPMUX_OK);
  matrix* all[] = {&s->y, &s->x, &s->w};
  for (int i = 0; i < 3; ++i) {
    make_matrix(all[i], 4, 1);
    all[i]->tensor.ndim = 1;
  }
  s->w.data[0] = 3;
  CHECK(opmux_constant_create(s->runtime, &s->w.tensor, &s->constant, NULL) == OPMUX_OK);
  s->args[0] = opmux_arg_tensor(&s->y.tensor);
  s->args[1] = opmux_arg_tensor(&s->x.tensor);
  s->args[2] = opmux_arg_constant(s->constant);
}

static void end_setting(setting* s) {
  opmux_constant_destroy(s->constant);
  CHECK(s->acme.created == s->acme.destroyed);
  CHECK(opmux_withdraw(s->held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(s->runtime);
}

static uint64_t bytes_of(const opmux_constant* constant) {
  uint64_t bytes = 77;
  CHECK(opmux_constant_packed_bytes(constant, &bytes, NULL) == OPMUX_OK);
  return bytes;
}

void a_constant_is_packed_once_and_anew_when_it_changed(void) {
  setting s;
  make_setting(&s);
  CHECK(bytes_of(s.constant) == 0);
  CHECK(opmux_call_operator(s.op, s.args, 3, NULL) == OPMUX_OK);
  CHECK(s.y.data[0] == 3 && bytes_of(s.constant) == 4 * sizeof(float));
  s.w.data[0] = 5;
  for (int i = 0; i < 3; ++i) {
    CHECK(opmux_call_operator(s.op, s.args, 3, NULL) == OPMUX_OK);
    CHECK(s.y.data[0] == 3);
  }
  opmux_call_options options = {.struct_size = sizeof(options), .max_threads = 2};
  for (int i = 0; i < 2; ++i) {
    CHECK(opmux_call_operator_with(s.op, s.args, 3, &options, NULL, NULL) == OPMUX_OK);
    CHECK(s.y.data[0] == 3);
  }
  CHECK(s.acme.created == 1);
  CHECK(opmux_constant_changed(s.constant, NULL) == OPMUX_OK);
  CHECK(s.acme.destroyed == 1);
  CHECK(opmux_call_operator(s.op, s.args, 3, NULL) == OPMUX_OK);
  CHECK(s.y.data[0] == 5 && s.acme.created == 2);
  s.args[2] = opmux_arg_tensor(&s.w.tensor);
  CHECK(opmux_call_operator(s.op, s.args, 3, NULL) == OPMUX_OK);
  CHECK(s.y.data[0] == -1);
  end_setting(&s);
}

void a_plan_runs_with_the_copy_of_a_constant(void) {
  setting s;
  make_setting(&s);
  opmux_plan* plan;
  CHECK(opmux_plan_bind(s.op, s.args, 3, 0, &plan, NULL) == OPMUX_OK);
  s.w.data[0] = 5;
  CHECK(opmux_plan_call(plan, s.args, 3, NULL) == OPMUX_OK);
  CHECK(s.y.data[0] == 3 && s.acme.created == 1);
  CHECK(opmux_constant_changed(s.constant, NULL) == OPMUX_OK);
  CHECK(opmux_plan_prepare(plan, s.args, 3, NULL) == OPMUX_OK);
  CHECK(opmux_plan_run_unchecked(plan, NULL) == OPMUX_OK);
  CHECK(s.y.data[0] == 5 && s.acme.created == 2);
  opmux_plan_destroy(plan);
  end_setting(&s);
}

void a_constant_needs_a_tensor_with_data(void) {
  setting s;
  make_setting(&s);
  opmux_constant* none = NULL;
  matrix empty = s.w;
  empty.tensor.data = NULL;
  CHECK(opmux_constant_create(s.runtime, &empty.tensor, &none, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_constant_create(s.runtime, NULL, &none, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_constant_changed(NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_constant_packed_bytes(NULL, NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(none == NULL && opmux_arg_constant(NULL).tag == OPMUX_ARG_NONE);
  opmux_constant_destroy(NULL);
  end_setting(&s);
}
