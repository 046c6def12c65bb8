#include "c_test.h"

static void make_args(matrix* x, matrix* y, opmux_arg* args) {
  make_matrix(x, 3, 1);
  make_matrix(y, 3, 1);
  x->tensor.ndim = y->tensor.ndim = 1;
  args[0] = opmux_arg_tensor(&y->tensor);
  args[1] = opmux_arg_tensor(&x->tensor);
}

void defines_an_operator_and_implements_it(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, &error) == OPMUX_OK);
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, &error) == OPMUX_OK);
  CHECK(opmux_define(runtime, opmux_str_of("twice(Tensor x[N])"), 0, &error) ==
        OPMUX_ALREADY_EXISTS);
  CHECK(opmux_define(runtime, opmux_str_of("twice(Tensr x)"), 0, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "Tensor");
  twice first, second;
  make_twice(&first, "acme", "v1", -1);
  make_twice(&second, "acme", "v2", 500);
  opmux_registration *first_held, *second_held, *again;
  CHECK(opmux_implement(runtime, &first.backend, &first_held, &error) == OPMUX_OK);
  CHECK(opmux_implement(runtime, &first.backend, &again, &error) == OPMUX_ALREADY_EXISTS);
  CHECK(opmux_implement(runtime, &second.backend, &second_held, &error) == OPMUX_OK);
  matrix x, y;
  opmux_arg args[2];
  make_args(&x, &y, args);
  opmux_operator* op = get(runtime, "twice");
  CHECK_TEXT(runner(op, args, 2), "twice/acme.v2");
  CHECK(y.data[2] == 6.0f);
  CHECK(opmux_withdraw(second_held, &error) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/acme.v1");
  CHECK(opmux_withdraw(first_held, &error) == OPMUX_OK);
  CHECK(opmux_call_operator(op, args, 2, &error) == OPMUX_NO_CANDIDATE);
  CHECK(opmux_withdraw(NULL, &error) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

/* The number of the publication that a call of `op` is decided by. */
static uint64_t publication_of(opmux_operator* op, const opmux_arg* args) {
  opmux_report report;
  report.struct_size = sizeof report;
  CHECK(opmux_call_operator_with(op, args, 2, NULL, &report, NULL) == OPMUX_OK);
  return report.generation;
}

void defines_and_implements_many_operators_in_two_steps(void) {
  enum { many = 50 };
  static char texts[many][64], names[many][16];
  static opmux_str schemas[many];
  static opmux_impl impls[many];
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  twice t;
  make_twice(&t, "acme", "v1", 500);
  for (int i = 0; i < many; ++i) {
    snprintf(names[i], sizeof names[i], "twice%d", i);
    snprintf(texts[i], sizeof texts[i], "%s(out Tensor y[N], Tensor x[N], int times = 2)",
             names[i]);
    schemas[i] = opmux_str_of(texts[i]);
    impls[i] = t.impl;
    impls[i].op = opmux_str_of(names[i]);
  }
  t.backend.impls = impls;
  t.backend.impl_count = many;
  matrix x, y;
  opmux_arg args[2];
  make_args(&x, &y, args);

  schemas[many - 1] = opmux_str_of("twice49(Tensr x)");
  CHECK(opmux_define_all(runtime, schemas, many, 0, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "twice49: ");
  opmux_operator* op = NULL;
  CHECK(opmux_operator_get(runtime, opmux_str_of("twice0"), &op, &error) == OPMUX_NOT_FOUND);
  schemas[many - 1] = opmux_str_of(texts[many - 1]);
  CHECK(opmux_define_all(runtime, schemas, many, 0, &error) == OPMUX_OK);
  CHECK(opmux_define_all(runtime, NULL, 0, 0, &error) == OPMUX_OK);
  CHECK(opmux_define_all(runtime, NULL, 1, 0, &error) == OPMUX_INVALID_ARGUMENT);

  opmux_registration* held = NULL;
  impls[7].run = NULL;
  CHECK(opmux_implement(runtime, &t.backend, &held, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "implementation 8 of acme: ");
  CHECK(opmux_call_operator(get(runtime, "twice0"), args, 2, &error) == OPMUX_NO_CANDIDATE);
  impls[7].run = t.impl.run;
  CHECK(opmux_implement(runtime, &t.backend, &held, &error) == OPMUX_OK);
  CHECK_TEXT(runner(get(runtime, "twice0"), args, 2), "twice0/acme.v1");
  CHECK_TEXT(runner(get(runtime, "twice49"), args, 2), "twice49/acme.v1");
  const uint64_t first = publication_of(get(runtime, "twice0"), args);
  CHECK(first == publication_of(get(runtime, "twice49"), args));
  CHECK(opmux_withdraw(held, &error) == OPMUX_OK);
  CHECK(opmux_call_operator(get(runtime, "twice49"), args, 2, &error) == OPMUX_NO_CANDIDATE);
  opmux_runtime_destroy(runtime);
}

void refuses_an_implementation_of_an_unknown_operator(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  twice t;
  make_twice(&t, "acme", "v1", 100);
  opmux_registration* held = NULL;
  CHECK(opmux_implement(runtime, &t.backend, &held, &error) == OPMUX_NOT_FOUND);
  CHECK(equals(error.code, "registry.unknown_operator"));
  CHECK(held == NULL);
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, &error) == OPMUX_OK);
  t.impl.signature = opmux_str_of("twice(out Tensor y[N], float x)");
  CHECK(opmux_implement(runtime, &t.backend, &held, &error) == OPMUX_INVALID_ARGUMENT);
  t.impl.signature = opmux_str_of(TWICE);
  t.impl.run = NULL;
  CHECK(opmux_implement(runtime, &t.backend, &held, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "run");
  opmux_runtime_destroy(runtime);
}

void refuses_a_backend_that_is_too_short(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  twice t;
  make_twice(&t, "acme", "v1", 100);
  opmux_registration* held = NULL;
  t.backend.struct_size = 16;
  CHECK(opmux_implement(runtime, &t.backend, &held, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.struct_size"));
  CHECK(opmux_implement(runtime, NULL, &held, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(error.text, "backend is null");
  opmux_runtime_destroy(runtime);
}

void kept_implementations_stay(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  twice t;
  make_twice(&t, "acme", "v1", 100);
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &t.backend, &held, NULL) == OPMUX_OK);
  opmux_registration_keep(held);
  opmux_registration_keep(NULL);
  matrix x, y;
  opmux_arg args[2];
  make_args(&x, &y, args);
  CHECK_TEXT(runner(get(runtime, "twice"), args, 2), "twice/acme.v1");
  opmux_runtime_destroy(runtime);
}

static opmux_runtime* make_runtime_that_fails(twice* t, opmux_registration** held) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  make_twice(t, "acme", "v1", 100);
  t->outcome = OPMUX_FAILED;
  t->sentence = "the oven is cold";
  CHECK(opmux_implement(runtime, &t->backend, held, NULL) == OPMUX_OK);
  return runtime;
}

void a_failing_kernel_tells_its_sentence(void) {
  twice t;
  opmux_registration* held;
  opmux_runtime* runtime = make_runtime_that_fails(&t, &held);
  matrix x, y;
  opmux_arg args[2];
  make_args(&x, &y, args);
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_call_operator(get(runtime, "twice"), args, 2, &error) == OPMUX_FAILED);
  CHECK_HAS(error.text, "the oven is cold");
  CHECK_HAS(error.text, "twice/acme.v1");
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

static void note_breaker(void* context, const opmux_breaker_event* event) {
  char* told = context;
  snprintf(told + strlen(told), 256 - strlen(told), "%.*s %u>%u %.*s;",
           (int)event->implementation.size, event->implementation.data, event->from, event->to,
           (int)event->why.size, event->why.data);
  CHECK(event->struct_size == sizeof(*event) && event->what.size > 0 && event->op.size == 5);
  CHECK(event->to != OPMUX_BREAKER_IS_OPEN || (event->open_for_ms > 0 && event->openings == 1));
  CHECK(event->change > 0);
}

void listeners_are_told_what_opened(void) {
  twice t;
  opmux_registration* held;
  opmux_runtime* runtime = make_runtime_that_fails(&t, &held);
  char told[256] = "";
  CHECK(opmux_on_breaker(runtime, note_breaker, told, NULL) == OPMUX_OK);
  CHECK(opmux_on_breaker(runtime, NULL, told, NULL) == OPMUX_INVALID_ARGUMENT);
  matrix x, y;
  opmux_arg args[2];
  make_args(&x, &y, args);
  for (int i = 0; i < 6; ++i) (void)opmux_call_operator(get(runtime, "twice"), args, 2, NULL);
  CHECK_TEXT(told, "twice/acme.v1 0>1 too many consecutive failures;");
  told[0] = 0;
  const opmux_str id = opmux_str_of("twice/acme.v1");
  CHECK(opmux_force_breaker(runtime, id, OPMUX_BREAKER_CLOSE, NULL) == OPMUX_OK);
  CHECK_TEXT(told, "twice/acme.v1 1>0 manual override;");
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void a_hint_ranks_by_the_size_of_a_dimension(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  matrix y, x;
  make_matrix(&y, 3, 1);
  make_matrix(&x, 3, 1);
  y.tensor.ndim = x.tensor.ndim = 1;
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_operator* op = get(runtime, "twice");
  static twice hinted, plain;
  static opmux_hint hints[] = {{.struct_size = sizeof(opmux_hint),
                                .priority = 300,
                                .dim = OPMUX_STR("N"),
                                .least = 2,
                                .most = 3}};
  opmux_registration* held[2];
  make_twice(&hinted, "hinted", "v1", 10);
  hinted.impl.hints = hints;
  hinted.impl.hint_count = 1;
  hinted.impl.hint_stride = sizeof hints[0];
  CHECK(opmux_implement(runtime, &hinted.backend, &held[0], NULL) == OPMUX_OK);
  make_twice(&plain, "plain", "v1", 100);
  CHECK(opmux_implement(runtime, &plain.backend, &held[1], NULL) == OPMUX_OK);
  const char* const expected[] = {"twice/plain.v1", "twice/hinted.v1", "twice/hinted.v1"};
  for (int round = 0; round < 2; ++round) {
    for (int n = 0; n < 3; ++n) {
      y.tensor.shape[0] = x.tensor.shape[0] = n + 1;
      CHECK_TEXT(runner(op, args, 2), expected[n]);
    }
  }
  char text[4096];
  CHECK(opmux_explain(op, args, 2, OPMUX_FORMAT_JSON, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "\"hint\":{\"dim\":\"N\",\"least\":2,\"most\":3,\"priority\":300}");
  for (int i = 0; i < 2; ++i) CHECK(opmux_withdraw(held[i], NULL) == OPMUX_OK);

  hints[0].dim = opmux_str_of("M");
  opmux_error error = {.struct_size = sizeof error};
  CHECK(opmux_implement(runtime, &hinted.backend, &held[0], &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "registry.hint"));
  opmux_runtime_destroy(runtime);
}
