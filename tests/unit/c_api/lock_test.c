#include "c_test.h"

typedef struct asked {
  matrix x, y;
  opmux_arg args[2];
} asked;

static void make_asked(asked* a, int64_t columns) {
  make_matrix(&a->x, 2, columns);
  make_matrix(&a->y, 2, columns);
  a->args[0] = opmux_arg_tensor(&a->y.tensor);
  a->args[1] = opmux_arg_tensor(&a->x.tensor);
}

static void read_lock(opmux_runtime* runtime, char* text, size_t capacity) {
  CHECK(opmux_runtime_lock(runtime, text, capacity, NULL, NULL) == OPMUX_OK);
}

void a_frozen_runtime_refuses_changes_and_runs_on(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = get(runtime, "softmax");
  asked a;
  make_asked(&a, 3);
  char id[64];
  CHECK(opmux_decide(op, a.args, 2, id, sizeof(id), NULL, NULL) == OPMUX_OK);
  CHECK_TEXT(id, "softmax/reference.scalar");
  CHECK(opmux_runtime_frozen(runtime) == 0);
  CHECK(opmux_runtime_freeze(runtime, NULL) == OPMUX_OK);
  CHECK(opmux_runtime_frozen(runtime) == 1);
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_policy_reset(runtime, &error) == OPMUX_FROZEN);
  CHECK_HAS(error.text, "this runtime is frozen");
  opmux_report report = {.struct_size = sizeof(report)};
  CHECK(opmux_call_operator_with(op, a.args, 2, NULL, &report, NULL) == OPMUX_OK);
  CHECK_TEXT(report.implementation, "softmax/reference.scalar");
  CHECK(report.fell_back == 0);
  opmux_runtime_destroy(runtime);
}

void a_lockfile_is_written_and_taken_or_refused(void) {
  opmux_runtime* runtime = make_runtime();
  asked a;
  make_asked(&a, 3);
  char text[2048];
  CHECK(opmux_decide(get(runtime, "softmax"), a.args, 2, NULL, 0, NULL, NULL) == OPMUX_OK);
  read_lock(runtime, text, sizeof(text));
  CHECK_HAS(text, "opmux lockfile 1\n");
  CHECK_HAS(text, "lock softmax/reference.scalar build ");
  const opmux_str name = opmux_str_of("a.lock");
  opmux_runtime* other = make_runtime();
  CHECK(opmux_runtime_freeze_by(other, opmux_str_of(text), name, NULL) == OPMUX_OK);
  CHECK(opmux_runtime_frozen(other) == 1);
  opmux_runtime* third = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_runtime_freeze_by(third, opmux_str_of("no lock"), name, &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "a.lock:1:1");
  CHECK(opmux_policy_load(third, opmux_str_of("opmux: 1\ndefaults: {strict: true}\n"),
                          opmux_str_of("p.yaml"), NULL) == OPMUX_OK);
  CHECK(opmux_runtime_freeze_by(third, opmux_str_of(text), name, &error) == OPMUX_FAILED);
  CHECK_HAS(error.text, "a.lock no longer matches this runtime, 1 difference:");
  CHECK(opmux_runtime_frozen(third) == 0);
  opmux_runtime_destroy(third);
  opmux_runtime_destroy(other);
  opmux_runtime_destroy(runtime);
}
