#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "c_test.h"

/* `twice` with two vendors; acme has the higher priority. */
typedef struct bench {
  opmux_runtime* runtime;
  opmux_operator* op;
  twice acme, zeta;
  opmux_registration *acme_held, *zeta_held;
  matrix x, y;
  opmux_arg args[2];
} bench;

static void make_bench(bench* b, opmux_runtime* runtime) {
  b->runtime = runtime;
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  make_twice(&b->acme, "acme", "v1", 120);
  make_twice(&b->zeta, "zeta", "v1", 110);
  CHECK(opmux_implement(runtime, &b->acme.backend, &b->acme_held, NULL) == OPMUX_OK);
  CHECK(opmux_implement(runtime, &b->zeta.backend, &b->zeta_held, NULL) == OPMUX_OK);
  b->op = get(runtime, "twice");
  make_matrix(&b->x, 3, 1);
  make_matrix(&b->y, 3, 1);
  b->x.tensor.ndim = b->y.tensor.ndim = 1;
  b->args[0] = opmux_arg_tensor(&b->y.tensor);
  b->args[1] = opmux_arg_tensor(&b->x.tensor);
}

static void end_bench(bench* b) {
  CHECK(opmux_withdraw(b->acme_held, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(b->zeta_held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(b->runtime);
}

static const char* chosen(bench* b) { return runner(b->op, b->args, 2); }

void scope_requires_reference_and_ends(void) {
  bench b;
  make_bench(&b, make_runtime());
  const opmux_str only[] = {OPMUX_STR("vendor:zeta")};
  opmux_policy policy = {.struct_size = sizeof(policy), .require = {only, 1}};
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK(opmux_scope_push(b.runtime, &policy, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  end_bench(&b);
}

void scopes_nest_and_an_empty_pop_is_refused(void) {
  bench b;
  make_bench(&b, make_runtime());
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_scope_pop(&error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.scope"));
  const opmux_str acme[] = {OPMUX_STR("vendor:acme")};
  const opmux_str zeta[] = {OPMUX_STR("vendor:zeta")};
  opmux_policy prefer_zeta = {.struct_size = sizeof(opmux_policy), .prefer = {zeta, 1}};
  opmux_policy deny_acme = {.struct_size = sizeof(opmux_policy), .deny = {acme, 1}};
  opmux_policy deny_zeta = {.struct_size = sizeof(opmux_policy), .deny = {zeta, 1}};
  CHECK(opmux_scope_push(b.runtime, &prefer_zeta, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  CHECK(opmux_scope_push(b.runtime, &deny_zeta, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK(opmux_scope_push(b.runtime, &deny_acme, NULL) == OPMUX_OK);
  CHECK(opmux_call_operator(b.op, b.args, 2, &error) == OPMUX_NO_CANDIDATE);
  CHECK_HAS(error.text, "twice");
  CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  CHECK(opmux_scope_pop(&error) == OPMUX_INVALID_ARGUMENT);
  end_bench(&b);
}

void a_policy_says_whether_measured_speeds_count(void) {
  opmux_runtime* runtime = make_runtime();
  char text[8192];
  const char* const words[] = {"off", "bundle", "online", "online_apply"};
  for (uint32_t i = 0; i < 4; ++i) {
    opmux_policy policy = {.struct_size = sizeof(policy), .tuning = OPMUX_TUNING_OFF + i};
    CHECK(opmux_policy_set(runtime, &policy, NULL) == OPMUX_OK);
    CHECK(opmux_list_settings(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "{\"key\":\"tuning\",\"value\":\"%s\"", words[i]);
    CHECK_HAS(text, wanted);
  }
  opmux_policy policy = {.struct_size = sizeof(policy), .tuning = 5};
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_policy_set(runtime, &policy, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.tuning"));
  opmux_runtime_destroy(runtime);
}

void an_invalid_scope_is_not_pushed(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  const opmux_str wrong[] = {OPMUX_STR("no such token")};
  opmux_policy policy = {.struct_size = sizeof(policy), .require = {wrong, 1}};
  CHECK(opmux_scope_push(runtime, &policy, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "policy.token"));
  CHECK(opmux_policy_set(runtime, &policy, &error) == OPMUX_INVALID_ARGUMENT);
  policy.require.items = NULL;
  CHECK(opmux_scope_push(runtime, &policy, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "policy.require is null");
  CHECK(opmux_scope_push(runtime, NULL, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_scope_pop(NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

static void* push_and_leave(void* context) {
  bench* b = context;
  const opmux_str only[] = {OPMUX_STR("vendor:zeta")};
  opmux_policy policy = {.struct_size = sizeof(policy), .require = {only, 1}};
  CHECK(opmux_ambient_push(OPMUX_AMBIENT_TRAINING, NULL) == OPMUX_OK);
  CHECK(opmux_scope_push(b->runtime, &policy, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(b), "twice/zeta.v1");
  return NULL;
}

/* Does not use thrd_create, because ThreadSanitizer does not see threads that it starts. */
void a_thread_may_end_inside_a_scope(void) {
  bench b;
  make_bench(&b, make_runtime());
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, push_and_leave, &b) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  end_bench(&b);
}

void ambient_facts_hold_until_popped(void) {
  opmux_runtime* runtime = make_runtime();
  bench b;
  make_bench(&b, runtime);
  opmux_caps caps = {.struct_size = sizeof(caps), .flags = OPMUX_CAPS_INFERENCE_ONLY};
  twice fast;
  make_twice(&fast, "fast", "v1", 200);
  fast.impl.caps = &caps;
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &fast.backend, &held, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/fast.v1");
  CHECK(opmux_ambient_push(OPMUX_AMBIENT_GRAD | OPMUX_AMBIENT_TRAINING, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK(opmux_ambient_push(OPMUX_AMBIENT_DETERMINISTIC, NULL) == OPMUX_OK);
  CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK(opmux_scope_pop(NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/fast.v1");
  CHECK(opmux_ambient_push(1u << 20, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  end_bench(&b);
}

void policy_orders_one_operator_and_resets(void) {
  bench b;
  make_bench(&b, make_runtime());
  const opmux_str order[] = {OPMUX_STR("twice/zeta.*"), OPMUX_STR("twice/acme.*")};
  opmux_op_order entry = {
      .struct_size = sizeof(entry), .op = OPMUX_STR("twice"), .order = {order, 2}};
  opmux_policy policy = {.struct_size = sizeof(policy), .strict = OPMUX_STRICT_ON};
  policy.per_op = &entry;
  policy.per_op_count = 1;
  policy.per_op_stride = sizeof(entry);
  CHECK(opmux_policy_set(b.runtime, &policy, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  CHECK(opmux_policy_reset(b.runtime, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  opmux_error error = OPMUX_ERROR_INIT;
  const opmux_str vendors[] = {OPMUX_STR("acme"), OPMUX_STR("zeta")};
  opmux_policy nobody = {.struct_size = sizeof(nobody), .deny_vendors = {vendors, 2}};
  CHECK(opmux_policy_set(b.runtime, &nobody, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "policy.no_candidates"));
  nobody.allow_none = 1;
  CHECK(opmux_policy_set(b.runtime, &nobody, &error) == OPMUX_OK);
  /* A program that was built before the field existed. */
  nobody.struct_size = offsetof(opmux_policy, allow_none);
  CHECK(opmux_policy_set(b.runtime, &nobody, &error) == OPMUX_INVALID_ARGUMENT);
  nobody.deny_vendors.count = 1;
  CHECK(opmux_policy_set(b.runtime, &nobody, &error) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  end_bench(&b);
}

void a_short_struct_is_refused(void) {
  opmux_runtime* runtime = NULL;
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_options options = {.struct_size = 8};
  CHECK(opmux_runtime_create(&options, &runtime, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.struct_size"));
  CHECK_HAS(error.text, "options.struct_size is 8");
  CHECK(runtime == NULL);
  runtime = make_runtime();
  opmux_policy policy = {.struct_size = 0};
  CHECK(opmux_policy_set(runtime, &policy, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "policy.struct_size is 0");
  policy.struct_size = sizeof(policy);
  policy.strict = 7;
  CHECK(opmux_policy_set(runtime, &policy, &error) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

void options_replace_the_environment(void) {
  const opmux_str folder[] = {OPMUX_STR("no/such/folder")};
  const opmux_str order[] = {OPMUX_STR("vendor:zeta")};
  opmux_policy policy = {.struct_size = sizeof(policy), .prefer = {order, 1}};
  opmux_variable variables[] = {{OPMUX_STR("OPMUX_PREFER"), OPMUX_STR("vendor:acme")}};
  opmux_plugin_options plugins = {.struct_size = sizeof(plugins), .folders = {folder, 1}};
  opmux_options options = {.struct_size = sizeof(options),
                           .flags = OPMUX_OPTION_NO_BACKENDS,
                           .environment = variables,
                           .environment_count = 0,
                           .plugins = &plugins,
                           .policy = &policy};
  opmux_runtime* runtime;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  bench b;
  make_bench(&b, runtime);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  end_bench(&b);

  opmux_error error = OPMUX_ERROR_INIT;
  plugins.trust = 7;
  CHECK(opmux_runtime_create(&options, &runtime, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.trust"));
  plugins.trust = OPMUX_TRUST_ANY;
  opmux_variable typo = {OPMUX_STR("OPMUX_PREFRE"), OPMUX_STR("x")};
  options.environment = &typo;
  options.environment_count = 1;
  CHECK(opmux_runtime_create(&options, &runtime, &error) != OPMUX_OK);
  CHECK_HAS(error.text, "OPMUX_PREFER");
  options.environment = NULL;
  CHECK(opmux_runtime_create(&options, &runtime, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "options.environment is null");
}

static void remember(void* context, const opmux_event* event) {
  if (!equals(event->code, "dispatch.chosen")) return;
  CHECK(event->struct_size == sizeof(*event) && equals(event->op, "twice"));
  CHECK(event->impl.size < 64 && event->text.size > 0 && event->level >= 0);
  memcpy(context, event->impl.data, event->impl.size);
}

void events_reach_the_program(void) {
  char told[64] = "";
  opmux_variable none = {{NULL, 0}, {NULL, 0}};
  opmux_options options = {.struct_size = sizeof(options),
                           .flags = OPMUX_OPTION_NO_BACKENDS,
                           .on_event = remember,
                           .event_context = told,
                           .environment = &none};
  opmux_runtime* runtime;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  bench b;
  make_bench(&b, runtime);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK_TEXT(told, "twice/acme.v1");
  end_bench(&b);
}

void a_switched_off_backend_does_not_run(void) {
  bench b;
  make_bench(&b, make_runtime());
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_backend_enable(b.runtime, opmux_str_of("acme"), 0, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  CHECK(opmux_backend_enable(b.runtime, opmux_str_of("acme"), 1, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  CHECK(opmux_backend_enable(b.runtime, opmux_str_of("acmo"), 1, &error) == OPMUX_NOT_FOUND);
  CHECK_HAS(error.text, "'acme'");
  end_bench(&b);
}

void no_openmp_is_loaded_for_its_threads(void) {
  bench b;
  make_bench(&b, make_runtime());
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_runtime_use_openmp(b.runtime, &error) == OPMUX_UNSUPPORTED);
  CHECK_HAS(error.text, "libgomp");
  CHECK(opmux_runtime_use_openmp(NULL, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  end_bench(&b);
}

void a_policy_allows_transforms_of_tensors(void) {
  bench b;
  make_bench(&b, make_runtime());
  CHECK(opmux_withdraw(b.acme_held, NULL) == OPMUX_OK);
  const opmux_tensor_rule rule = {
      .struct_size = sizeof(rule), .flags = OPMUX_TENSOR_CONTIGUOUS, .arg = OPMUX_STR("x")};
  const opmux_caps caps = {.struct_size = sizeof(caps),
                           .tensors = &rule,
                           .tensor_count = 1,
                           .tensor_stride = sizeof(rule)};
  b.acme.impl.caps = &caps;
  CHECK(opmux_implement(b.runtime, &b.acme.backend, &b.acme_held, NULL) == OPMUX_OK);
  b.x.strides[0] = 2;
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  const opmux_str words[] = {OPMUX_STR("contiguous")};
  opmux_policy policy = {.struct_size = sizeof(policy), .transforms = {words, 1}};
  CHECK(opmux_policy_set(b.runtime, &policy, NULL) == OPMUX_OK);
  opmux_report report = {.struct_size = sizeof(report)};
  CHECK(opmux_call_operator_with(b.op, b.args, 2, NULL, &report, NULL) == OPMUX_OK);
  CHECK_TEXT(report.implementation, "twice/acme.v1");
  CHECK_TEXT(report.transforms, "contiguous(x)");
  const opmux_str wrong[] = {OPMUX_STR("narrow")};
  policy.transforms.items = wrong;
  CHECK(opmux_policy_set(b.runtime, &policy, NULL) == OPMUX_INVALID_ARGUMENT);
  end_bench(&b);
}

typedef struct picks {
  int64_t position;
  int64_t n;
  char best[32];
} picks;

static int64_t pick_one(void* context, const opmux_selection* selection) {
  picks* p = (picks*)context;
  CHECK(selection->accepted_count == 2 && selection->fact_count == 2);
  CHECK(equals(selection->op, "twice") && equals(selection->facts[0].name, "N"));
  CHECK(selection->facts[0].present == 1 && selection->facts[1].present == 0);
  CHECK(selection->accepted[0].size < sizeof(p->best));
  memcpy(p->best, selection->accepted[0].data, selection->accepted[0].size);
  p->n = selection->facts[0].number;
  return p->position;
}

void a_selector_picks_among_the_accepted(void) {
  bench b;
  opmux_runtime* runtime = make_runtime();
  make_bench(&b, runtime);
  picks p = {1, 0, ""};
  const opmux_str reads[] = {opmux_str_of("N"), opmux_str_of("HQ")};
  opmux_selector selector = {sizeof(selector), 0, opmux_str_of("mine"), {reads, 2}, pick_one, &p};
  CHECK(opmux_selector_set(runtime, &selector, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/zeta.v1");
  CHECK_TEXT(p.best, "twice/acme.v1");
  CHECK(p.n > 0);
  p.position = -1;
  CHECK(opmux_selector_set(runtime, &selector, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  p.position = 1;
  CHECK(opmux_selector_set(runtime, NULL, NULL) == OPMUX_OK);
  CHECK_TEXT(chosen(&b), "twice/acme.v1");
  selector.pick = NULL;
  CHECK(opmux_selector_set(runtime, &selector, NULL) == OPMUX_INVALID_ARGUMENT);
  end_bench(&b);
}
