#include "c_test.h"

typedef struct question {
  matrix x;
  opmux_arg args[2];
} question;

/* Leaves y out. */
static void make_question(question* q) {
  make_matrix(&q->x, 2, 3);
  q->args[0] = opmux_arg_none();
  q->args[1] = opmux_arg_tensor(&q->x.tensor);
}

void explains_into_a_buffer_of_any_size(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "rms_norm");
  question q;
  make_question(&q);
  size_t size = 0;
  CHECK(opmux_explain(op, q.args, 2, OPMUX_FORMAT_TEXT, NULL, 0, &size, NULL) == OPMUX_OK);
  CHECK(size > 40);
  char* whole = malloc(size + 1);
  char small[9];
  size_t again = 0;
  CHECK(opmux_explain(op, q.args, 2, OPMUX_FORMAT_TEXT, whole, size + 1, &again, NULL) == 0);
  CHECK(again == size && strlen(whole) == size);
  CHECK_HAS(whole, "rms_norm/reference.scalar  chosen");
  CHECK_HAS(whole, "y=f32[2,3] x=f32[2,3]");
  CHECK(opmux_explain(op, q.args, 2, OPMUX_FORMAT_TEXT, small, 9, &again, NULL) == OPMUX_OK);
  CHECK_TEXT(small, "rms_norm");
  CHECK(again == size);
  CHECK(opmux_explain(op, q.args, 2, OPMUX_FORMAT_TEXT, NULL, 5, NULL, NULL) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_explain(op, q.args, 2, 9, small, 9, NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  free(whole);
  opmux_runtime_destroy(runtime);
}

void explains_as_json(void) {
  opmux_runtime* runtime = make_runtime();
  question q;
  make_question(&q);
  char text[4096];
  opmux_operator* op = get(runtime, "rms_norm");
  CHECK(opmux_explain(op, q.args, 2, OPMUX_FORMAT_JSON, text, sizeof(text), NULL, NULL) == 0);
  CHECK(strncmp(text, "{\"op\":\"rms_norm\",", 17) == 0);
  CHECK_HAS(text, "\"chosen\":\"rms_norm/reference.scalar\"");
  CHECK_HAS(text, "\"candidates\":[{\"id\":\"rms_norm/reference.scalar\",\"verdict\":\"chosen\"");
  CHECK_HAS(text, "\"depends_on\":[");
  opmux_runtime_destroy(runtime);
}

void lists_operators_plugins_and_settings(void) {
  opmux_runtime* runtime = make_runtime();
  static char text[65536];
  CHECK(opmux_list_operators(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "{\"operators\":[{\"name\":\"attention\"");
  CHECK_HAS(text, "{\"id\":\"softmax/reference.scalar\",\"available\":true,\"reason\":\"\"");
  CHECK(opmux_list_plugins(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "{\"plugins\":[{\"path\":\"built in\"");
  CHECK(opmux_list_settings(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "{\"key\":\"strict\",\"value\":\"false\",\"origin\":\"built-in\"}");
  opmux_runtime_destroy(runtime);
}

void lists_bundles_of_measured_speeds(void) {
  opmux_runtime* runtime = make_runtime();
  char text[4096];
  CHECK(opmux_check_tuning(runtime, NULL) == OPMUX_OK);
  CHECK(opmux_list_proposals(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK(strcmp(text, "{\"proposals\":[]}") == 0);
  CHECK(opmux_list_tuning(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "{\"bundles\":[");
  CHECK(opmux_check_tuning(NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

static void add_calls(void* context, const opmux_stats* stats) {
  CHECK(stats->struct_size == sizeof(*stats));
  if (equals(stats->implementation, "rms_norm/reference.scalar")) {
    CHECK(stats->failed == 0 && stats->declined == 0);
    *(uint64_t*)context += stats->calls;
  }
}

void counts_calls_per_implementation(void) {
  opmux_runtime* runtime = make_runtime();
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_operator* op = get(runtime, "rms_norm");
  for (int i = 0; i < 5; ++i) CHECK(opmux_call_operator(op, args, 2, NULL) == OPMUX_OK);
  uint64_t calls = 0;
  CHECK(opmux_stats_visit(runtime, add_calls, &calls, NULL) == OPMUX_OK);
  CHECK(calls == 5);
  CHECK(opmux_stats_visit(runtime, NULL, &calls, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

static void add_decided_each_time(void* context, const opmux_stats* stats) {
  if (equals(stats->implementation, "twice/acme.v1")) {
    CHECK(stats->calls == 3);
    *(uint64_t*)context += stats->decided_each_time;
  }
}

static int64_t pick_none(void* context, const opmux_selection* asked) {
  (void)context;
  (void)asked;
  return -1;
}

void counts_calls_that_are_decided_each_time(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  twice t;
  make_twice(&t, "acme", "v1", 100);
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &t.backend, &held, NULL) == OPMUX_OK);
  const opmux_str reads[] = {opmux_str_of("dtype(x)")};
  opmux_selector selector = {sizeof(selector), 0,         opmux_str_of("none"),
                             {reads, 1},       pick_none, NULL};
  CHECK(opmux_selector_set(runtime, &selector, NULL) == OPMUX_OK);
  matrix x, y;
  make_matrix(&x, 3, 1);
  make_matrix(&y, 3, 1);
  x.tensor.ndim = y.tensor.ndim = 1;
  x.tensor.dtype.lanes = y.tensor.dtype.lanes =
      2; /* decisions about several lanes are not cached */
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  for (int i = 0; i < 3; ++i) CHECK_TEXT(runner(get(runtime, "twice"), args, 2), "twice/acme.v1");
  uint64_t decided = 0;
  CHECK(opmux_stats_visit(runtime, add_decided_each_time, &decided, NULL) == OPMUX_OK);
  CHECK(decided == 3);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void tags_are_equal_for_equal_words(void) {
  opmux_runtime* runtime = make_runtime();
  uint32_t first = 0, second = 0, other = 0;
  CHECK(opmux_tag(runtime, opmux_str_of("layer.3"), &first, NULL) == OPMUX_OK);
  CHECK(opmux_tag(runtime, opmux_str_of("layer.3"), &second, NULL) == OPMUX_OK);
  CHECK(opmux_tag(runtime, opmux_str_of("layer.4"), &other, NULL) == OPMUX_OK);
  CHECK(first == second && first != other && first != 0);
  opmux_runtime_destroy(runtime);
}

void warms_up_what_waits(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_runtime_warm_up(runtime, NULL) == OPMUX_OK);
  CHECK(opmux_runtime_warm_up(NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

void forces_breakers_and_tells_of_health(void) {
  opmux_runtime* runtime = make_runtime();
  char text[4096];
  CHECK(opmux_health(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "{\"verdict\":\"healthy\",\"reasons\":[]");
  CHECK_HAS(text, "{\"name\":\"reference\",\"health\":\"healthy\"");
  const opmux_str reference = opmux_str_of("rms_norm/reference.scalar");
  CHECK(opmux_force_breaker(runtime, reference, OPMUX_BREAKER_ISOLATE, NULL) == OPMUX_UNSUPPORTED);
  CHECK(opmux_force_breaker(runtime, reference, 3, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_force_breaker(runtime, opmux_str_of("a/b.c"), OPMUX_BREAKER_OPEN, NULL) ==
        OPMUX_NOT_FOUND);
  CHECK(opmux_force_breaker(NULL, reference, OPMUX_BREAKER_OPEN, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}
