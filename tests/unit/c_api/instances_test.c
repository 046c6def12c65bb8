#include "c_test.h"

/* An implementation whose instances count their calls: y[0] = calls * times. */
typedef struct counting {
  opmux_impl impl;
  opmux_backend backend;
  int32_t created, destroyed;
} counting;

typedef struct state {
  int64_t times, calls;
} state;

static int32_t create(void* self, const opmux_arg* options, uint32_t count, void** instance,
                      opmux_error* error) {
  (void)error;
  ++((counting*)self)->created;
  state* made = calloc(1, sizeof(state));
  if (made == NULL) return OPMUX_RESOURCE;
  CHECK(count == 3 && options[2].tag == OPMUX_ARG_I64);
  made->times = options[2].value.i64;
  *instance = made;
  return OPMUX_OK;
}

static void destroy(void* self, void* instance) {
  ++((counting*)self)->destroyed;
  free(instance);
}

static int32_t describe(void* self, void* instance, const opmux_node_sink* sink) {
  (void)self, (void)instance;
  sink->attribute(sink->context, opmux_str_of("packed_bytes"), opmux_str_of("16"));
  return OPMUX_OK;
}

static int32_t run(void* self, const opmux_call* call) {
  (void)self;
  state* own = call->instance;
  if (own == NULL) return OPMUX_FAILED;
  *(float*)call->args[0].value.tensor->data = (float)(++own->calls * own->times);
  return OPMUX_OK;
}

typedef struct setting {
  opmux_runtime* runtime;
  opmux_operator* op;
  counting acme;
  twice plain;
  opmux_registration *held, *held_plain;
  matrix y, x;
  opmux_arg args[2];
} setting;

static void make_setting(setting* s) {
  memset(s, 0, sizeof(*s));
  s->runtime = make_runtime();
  CHECK(opmux_define(s->runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  s->op = get(s->runtime, "twice");
  s->acme.impl = (opmux_impl){.struct_size = sizeof(opmux_impl),
                              .op = OPMUX_STR("twice"),
                              .variant = OPMUX_STR("counting"),
                              .priority = 500,
                              .user_data = &s->acme,
                              .run = run,
                              .create = create,
                              .destroy = destroy,
                              .describe = describe};
  s->acme.backend = (opmux_backend){.struct_size = sizeof(opmux_backend),
                                    .kind = OPMUX_KIND_VENDOR,
                                    .name = OPMUX_STR("acme"),
                                    .vendor = OPMUX_STR("acme"),
                                    .impls = &s->acme.impl,
                                    .impl_count = 1,
                                    .impl_stride = sizeof(opmux_impl)};
  CHECK(opmux_implement(s->runtime, &s->acme.backend, &s->held, NULL) == OPMUX_OK);
  make_twice(&s->plain, "other", "plain", 100);
  CHECK(opmux_implement(s->runtime, &s->plain.backend, &s->held_plain, NULL) == OPMUX_OK);
  make_matrix(&s->y, 4, 1);
  make_matrix(&s->x, 4, 1);
  s->y.tensor.ndim = s->x.tensor.ndim = 1;
  s->args[0] = opmux_arg_tensor(&s->y.tensor);
  s->args[1] = opmux_arg_tensor(&s->x.tensor);
}

static void end_setting(setting* s) {
  CHECK(s->acme.created == s->acme.destroyed);
  CHECK(opmux_withdraw(s->held, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(s->held_plain, NULL) == OPMUX_OK);
  opmux_runtime_destroy(s->runtime);
}

void an_instance_keeps_state_between_calls(void) {
  setting s;
  make_setting(&s);
  opmux_named_arg fixed = {opmux_str_of("times"), opmux_arg_i64(3)};
  opmux_instance* instance = NULL;
  CHECK(opmux_instance_create(s.op, &fixed, 1, &instance, NULL) == OPMUX_OK);
  for (int call = 1; call <= 3; ++call) {
    CHECK(opmux_instance_call(instance, s.args, 2, NULL) == OPMUX_OK);
    CHECK(s.y.data[0] == (float)(3 * call));
  }
  opmux_report report = {.struct_size = sizeof(report)};
  opmux_call_options options = {.struct_size = sizeof(options), .max_threads = 1};
  CHECK(opmux_instance_call_with(instance, s.args, 2, &options, &report, NULL) == OPMUX_OK);
  CHECK_TEXT(report.implementation, "twice/acme.counting");
  CHECK(s.y.data[0] == 12 && s.acme.created == 1);
  char text[4096];
  CHECK(opmux_instance_describe(instance, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_TEXT(text,
             "{\"instances\":[{\"implementation\":\"twice/acme.counting\",\"bytes\":16,"
             "\"attributes\":{\"packed_bytes\":\"16\"}}]}");
  CHECK(opmux_instance_explain(instance, s.args, 2, OPMUX_FORMAT_TEXT, text, sizeof(text), NULL,
                               NULL) == OPMUX_OK);
  CHECK_HAS(text, "instance: packed_bytes 16");
  CHECK_TEXT(runner(s.op, s.args, 2), "twice/other.plain");
  CHECK(opmux_explain(s.op, s.args, 2, OPMUX_FORMAT_TEXT, text, sizeof(text), NULL, NULL) ==
        OPMUX_OK);
  CHECK_HAS(text, "caps.instance");
  CHECK(opmux_instance_reset(instance, NULL) == OPMUX_OK);
  CHECK(s.acme.destroyed == 1);
  CHECK(opmux_instance_call(instance, s.args, 2, NULL) == OPMUX_OK);
  CHECK(s.y.data[0] == 3 && s.acme.created == 2);
  opmux_instance_destroy(instance);
  end_setting(&s);
}

void an_instance_refuses_what_it_cannot_fix(void) {
  setting s;
  make_setting(&s);
  opmux_instance* instance = NULL;
  opmux_named_arg unknown = {opmux_str_of("time"), opmux_arg_i64(3)};
  opmux_named_arg output = {opmux_str_of("y"), s.args[0]};
  CHECK(opmux_instance_create(s.op, &unknown, 1, &instance, NULL) == OPMUX_NOT_FOUND);
  CHECK(opmux_instance_create(s.op, &output, 1, &instance, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_instance_create(s.op, NULL, 1, &instance, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_instance_create(NULL, NULL, 0, &instance, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(instance == NULL);
  CHECK(opmux_instance_call(NULL, s.args, 2, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_instance_reset(NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_instance_create(s.op, NULL, 0, &instance, NULL) == OPMUX_OK);
  opmux_arg three[3] = {s.args[0], s.args[1], opmux_arg_i64(3)};
  CHECK(opmux_instance_call(instance, three, 3, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_instance_call_with(instance, NULL, 2, NULL, NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_instance_destroy(instance);
  opmux_instance_destroy(NULL);
  end_setting(&s);
}
