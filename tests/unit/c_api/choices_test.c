#include "c_test.h"

/* Options of calls, policies and ambient facts, each with another choice than without it. */

/* The last call that an implementation got. */
static opmux_call seen;

static int32_t note_call(void* user_data, const opmux_call* call) {
  (void)user_data;
  seen = *call;
  return OPMUX_OK;
}

/* Two implementations of `twice` with the vendors acme, which has the higher priority, and zeta. */
typedef struct pair {
  twice acme, zeta;
  opmux_registration *acme_held, *zeta_held;
  matrix x, y;
  opmux_arg args[2];
  opmux_operator* op;
} pair;

static void add_pair(opmux_runtime* runtime, pair* p, uint32_t define_flags) {
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), define_flags, NULL) == OPMUX_OK);
  make_twice(&p->acme, "acme", "v1", 200);
  make_twice(&p->zeta, "zeta", "v1", 100);
  p->acme.impl.flags = p->zeta.impl.flags = OPMUX_IMPL_CAPTURE_SAFE | OPMUX_IMPL_DETERMINISTIC;
  CHECK(opmux_implement(runtime, &p->acme.backend, &p->acme_held, NULL) == OPMUX_OK);
  CHECK(opmux_implement(runtime, &p->zeta.backend, &p->zeta_held, NULL) == OPMUX_OK);
  make_matrix(&p->x, 3, 1);
  make_matrix(&p->y, 3, 1);
  p->x.tensor.ndim = p->y.tensor.ndim = 1;
  p->args[0] = opmux_arg_tensor(&p->y.tensor);
  p->args[1] = opmux_arg_tensor(&p->x.tensor);
  p->op = get(runtime, "twice");
}

static void end_pair(pair* p) {
  CHECK(opmux_withdraw(p->acme_held, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(p->zeta_held, NULL) == OPMUX_OK);
}

void options_of_a_call_reach_the_implementation(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  twice t;
  make_twice(&t, "acme", "v1", 100);
  t.impl.run = note_call;
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &t.backend, &held, NULL) == OPMUX_OK);
  matrix x, y;
  make_matrix(&x, 3, 1);
  make_matrix(&y, 3, 1);
  x.tensor.ndim = y.tensor.ndim = 1;
  const opmux_arg args[2] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_call_options options = {.struct_size = sizeof(options), .stream = &x, .max_threads = 1};
  CHECK(opmux_tag(runtime, opmux_str_of("decode"), &options.tag, NULL) == OPMUX_OK);
  opmux_operator* op = get(runtime, "twice");
  CHECK(opmux_call_operator_with(op, args, 2, &options, NULL, NULL) == OPMUX_OK);
  CHECK(seen.stream == &x && seen.max_threads == 1 && seen.tag == options.tag);
  CHECK(opmux_call_operator_with(op, args, 2, NULL, NULL, NULL) == OPMUX_OK);
  CHECK(seen.stream == NULL && seen.max_threads != 1 && seen.tag == 0);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void each_list_of_a_policy_chooses(void) {
  opmux_runtime* runtime = make_runtime();
  pair p;
  add_pair(runtime, &p, 0);
  const opmux_str pattern = opmux_str_of("twice/zeta.*"), vendor = opmux_str_of("zeta");
  const opmux_str other = opmux_str_of("acme");
  const opmux_policy policies[] = {
      {.struct_size = sizeof(opmux_policy), .prefer = {&pattern, 1}},
      {.struct_size = sizeof(opmux_policy), .require = {&pattern, 1}, .allow_none = 1},
      {.struct_size = sizeof(opmux_policy), .allow = {&pattern, 1}, .allow_none = 1},
      {.struct_size = sizeof(opmux_policy), .allow_vendors = {&vendor, 1}, .allow_none = 1},
      {.struct_size = sizeof(opmux_policy), .deny_vendors = {&other, 1}}};
  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); ++i) {
    CHECK_TEXT(runner(p.op, p.args, 2), "twice/acme.v1");
    opmux_error error = OPMUX_ERROR_INIT;
    if (opmux_policy_set(runtime, &policies[i], &error) != OPMUX_OK) {
      fprintf(stderr, "%zu: %s\n", i, error.text);
      exit(1);
    }
    CHECK_TEXT(runner(p.op, p.args, 2), "twice/zeta.v1");
    CHECK(opmux_policy_reset(runtime, NULL) == OPMUX_OK);
  }
  end_pair(&p);
  opmux_runtime_destroy(runtime);
}

void each_ambient_fact_is_a_fact_of_rules(void) {
  const struct {
    const char* name;
    uint32_t flag;
  } facts[] = {{"grad", OPMUX_AMBIENT_GRAD},
               {"capturing", OPMUX_AMBIENT_CAPTURING},
               {"deterministic", OPMUX_AMBIENT_DETERMINISTIC},
               {"training", OPMUX_AMBIENT_TRAINING},
               {"inference", OPMUX_AMBIENT_INFERENCE},
               {"autocast", OPMUX_AMBIENT_AUTOCAST}};
  opmux_runtime* runtime = make_runtime();
  pair p;
  add_pair(runtime, &p, 0);
  for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); ++i) {
    char text[160];
    snprintf(text, sizeof(text),
             "opmux: 1\nrules:\n  - {op: twice, when: \"%s\", deny: [\"twice/acme.*\"]}\n",
             facts[i].name);
    CHECK(opmux_policy_load(runtime, opmux_str_of(text), opmux_str_of("p"), NULL) == OPMUX_OK);
    CHECK_TEXT(runner(p.op, p.args, 2), "twice/acme.v1");
    CHECK(opmux_ambient_push(facts[i].flag, NULL) == OPMUX_OK);
    CHECK_TEXT(runner(p.op, p.args, 2), "twice/zeta.v1");
    CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  }
  end_pair(&p);
  opmux_runtime_destroy(runtime);
}

void plans_for_capture_and_checked_data_are_asked_for_by_flags(void) {
  opmux_runtime* runtime = make_runtime();
  pair p;
  add_pair(runtime, &p, OPMUX_DEFINE_DATA_CHECKED);
  p.acme.outcome = OPMUX_INVALID_ARGUMENT;
  p.acme.sentence = "an index is too large";
  CHECK(opmux_call_operator(p.op, p.args, 2, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(p.acme.calls == 1 && p.zeta.calls == 0);
  end_pair(&p);
  make_twice(&p.acme, "acme", "v1", 200);
  CHECK(opmux_implement(runtime, &p.acme.backend, &p.acme_held, NULL) == OPMUX_OK);
  opmux_plan* plan = NULL;
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_plan_bind(p.op, p.args, 2, OPMUX_PLAN_FOR_CAPTURE, &plan, &error) ==
        OPMUX_NO_CANDIDATE);
  CHECK(opmux_plan_bind(p.op, p.args, 2, 0, &plan, NULL) == OPMUX_OK);
  opmux_plan_destroy(plan);
  CHECK(opmux_withdraw(p.acme_held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

static void note_event(void* context, const opmux_event* event) {
  char* told = context;
  if (equals(event->code, "selector.failed")) {
    snprintf(told, 256, "%.*s", (int)event->text.size, event->text.data);
  }
}

static int64_t pick_nothing(void* context, const opmux_selection* selection) {
  (void)context;
  (void)selection;
  return 99;
}

void a_selector_that_fails_is_named(void) {
  char told[256] = "";
  const opmux_variable none = {{NULL, 0}, {NULL, 0}};
  const opmux_options options = {.struct_size = sizeof(options),
                                 .flags = OPMUX_OPTION_NO_BACKENDS,
                                 .on_event = note_event,
                                 .event_context = told,
                                 .environment = &none};
  opmux_runtime* runtime = NULL;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  pair p;
  add_pair(runtime, &p, 0);
  const opmux_selector selector = {
      .struct_size = sizeof(selector), .name = opmux_str_of("shortest"), .pick = pick_nothing};
  CHECK(opmux_selector_set(runtime, &selector, NULL) == OPMUX_OK);
  CHECK_TEXT(runner(p.op, p.args, 2), "twice/acme.v1");
  CHECK_HAS(told, "shortest picked 99 of 2 candidates");
  end_pair(&p);
  opmux_runtime_destroy(runtime);
}
