#include "c_test.h"

typedef struct vectors {
  matrix x, y;
  opmux_arg args[3];
} vectors;

static void make_vectors(vectors* v, int64_t size) {
  make_matrix(&v->x, size, 1);
  make_matrix(&v->y, size, 1);
  v->x.tensor.ndim = v->y.tensor.ndim = 1;
  v->args[0] = opmux_arg_tensor(&v->y.tensor);
  v->args[1] = opmux_arg_tensor(&v->x.tensor);
  v->args[2] = opmux_arg_i64(2);
}

static opmux_operator* define_twice(opmux_runtime* runtime) {
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  return get(runtime, "twice");
}

static uint32_t state_of(const opmux_plan* plan) {
  uint32_t state = 77;
  CHECK(opmux_plan_state(plan, &state, NULL) == OPMUX_OK);
  return state;
}

static int runs(const opmux_plan* plan, const char* id) {
  opmux_str found;
  CHECK(opmux_plan_implementation(plan, &found, NULL) == OPMUX_OK);
  return equals(found, id);
}

void a_plan_runs_what_it_was_bound_to(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = define_twice(runtime);
  twice acme;
  make_twice(&acme, "acme", "v1", 120);
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &acme.backend, &held, NULL) == OPMUX_OK);
  vectors v;
  make_vectors(&v, 4);
  opmux_plan* plan;
  CHECK(opmux_plan_bind(op, v.args, 3, 0, &plan, NULL) == OPMUX_OK);
  CHECK(runs(plan, "twice/acme.v1"));
  CHECK(state_of(plan) == OPMUX_PLAN_CURRENT);
  CHECK(acme.calls == 0);
  for (int i = 1; i <= 3; ++i) {
    CHECK(opmux_plan_call(plan, v.args, 3, NULL) == OPMUX_OK);
    CHECK(acme.calls == i && v.y.data[3] == 8.0f);
  }
  opmux_plan_destroy(plan);
  opmux_plan_destroy(NULL);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

static int32_t note_stream(void* user_data, const opmux_call* call) {
  *(void**)user_data = call->stream;
  return OPMUX_OK;
}

void a_plan_runs_on_the_stream_that_is_set(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = define_twice(runtime);
  twice acme;
  make_twice(&acme, "acme", "v1", 120);
  void* met = NULL;
  acme.impl.run = note_stream;
  acme.impl.user_data = &met;
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &acme.backend, &held, NULL) == OPMUX_OK);
  vectors v;
  make_vectors(&v, 4);
  opmux_plan* plan;
  CHECK(opmux_plan_bind(op, v.args, 3, 0, &plan, NULL) == OPMUX_OK);
  CHECK(opmux_plan_set_stream(plan, &v, NULL) == OPMUX_OK);
  CHECK(opmux_plan_call(plan, v.args, 3, NULL) == OPMUX_OK && met == &v);
  CHECK(opmux_plan_refresh(plan, NULL) == OPMUX_OK);
  met = NULL;
  CHECK(opmux_plan_run_unchecked(plan, NULL) == OPMUX_OK && met == &v);
  CHECK(opmux_plan_set_stream(plan, NULL, NULL) == OPMUX_OK);
  CHECK(opmux_plan_call(plan, v.args, 3, NULL) == OPMUX_OK && met == NULL);
  CHECK(opmux_plan_set_stream(NULL, NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_plan_destroy(plan);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void a_plan_refuses_other_arguments(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = define_twice(runtime);
  opmux_dim_rule rule = {sizeof(rule), OPMUX_STR("N"), OPMUX_MULTIPLE_OF, 4};
  opmux_caps caps = {.struct_size = sizeof(caps), .dims = &rule, .dim_count = 1};
  caps.dim_stride = sizeof(rule);
  twice acme;
  make_twice(&acme, "acme", "v1", 120);
  acme.impl.caps = &caps;
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &acme.backend, &held, NULL) == OPMUX_OK);
  vectors fits, other;
  make_vectors(&fits, 4);
  make_vectors(&other, 3);
  opmux_error error = OPMUX_ERROR_INIT;
  opmux_plan* plan = NULL;
  CHECK(opmux_plan_bind(op, other.args, 3, 0, &plan, &error) == OPMUX_NO_CANDIDATE);
  CHECK(plan == NULL);
  CHECK(opmux_plan_bind(op, fits.args, 3, 0, &plan, &error) == OPMUX_OK);
  CHECK(opmux_plan_call(plan, other.args, 3, &error) == OPMUX_OUTSIDE_PLAN);
  CHECK(error.text_size > 0);
  other.args[0] = fits.args[0];
  CHECK(opmux_plan_call(plan, other.args, 3, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_plan_prepare(plan, other.args, 3, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(acme.calls == 0);
  CHECK(opmux_plan_call(NULL, other.args, 3, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_plan_run_unchecked(NULL, &error) == OPMUX_INVALID_ARGUMENT);
  opmux_plan_destroy(plan);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

/* The structs that describe the tensors are overwritten before the plan runs. */
static void prepare_with_passing_structs(opmux_plan* plan, vectors* v) {
  vectors passing = *v;
  passing.x.tensor.shape = passing.x.shape;
  passing.y.tensor.shape = passing.y.shape;
  passing.args[0] = opmux_arg_tensor(&passing.y.tensor);
  passing.args[1] = opmux_arg_tensor(&passing.x.tensor);
  CHECK(opmux_plan_prepare(plan, passing.args, 3, NULL) == OPMUX_OK);
  memset(&passing, 0x5a, sizeof(passing));
}

void a_prepared_plan_runs_without_the_callers_structs(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = define_twice(runtime);
  twice acme;
  make_twice(&acme, "acme", "v1", 120);
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &acme.backend, &held, NULL) == OPMUX_OK);
  vectors first, second;
  make_vectors(&first, 4);
  make_vectors(&second, 4);
  opmux_plan* plan;
  CHECK(opmux_plan_bind(op, first.args, 3, 0, &plan, NULL) == OPMUX_OK);
  CHECK(opmux_plan_run_unchecked(plan, NULL) == OPMUX_OK);
  CHECK(first.y.data[3] == 8.0f);
  prepare_with_passing_structs(plan, &second);
  CHECK(opmux_plan_run_unchecked(plan, NULL) == OPMUX_OK);
  CHECK(second.y.data[3] == 8.0f && acme.calls == 2);
  CHECK(opmux_plan_refresh(plan, NULL) == OPMUX_OK);
  second.y.data[3] = 0.0f;
  CHECK(opmux_plan_run_unchecked(plan, NULL) == OPMUX_OK);
  CHECK(second.y.data[3] == 8.0f);
  opmux_plan_destroy(plan);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void a_stale_plan_is_refreshed(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = define_twice(runtime);
  twice acme, zeta;
  make_twice(&acme, "acme", "v1", 120);
  make_twice(&zeta, "zeta", "v1", 130);
  opmux_registration *acme_held, *zeta_held;
  CHECK(opmux_implement(runtime, &acme.backend, &acme_held, NULL) == OPMUX_OK);
  vectors v;
  make_vectors(&v, 4);
  opmux_plan* plan;
  CHECK(opmux_plan_bind(op, v.args, 3, 0, &plan, NULL) == OPMUX_OK);
  CHECK(opmux_implement(runtime, &zeta.backend, &zeta_held, NULL) == OPMUX_OK);
  CHECK(state_of(plan) == OPMUX_PLAN_STALE);
  CHECK(opmux_plan_call(plan, v.args, 3, NULL) == OPMUX_OK);
  CHECK(acme.calls == 1 && zeta.calls == 0);
  CHECK(opmux_plan_refresh(plan, NULL) == OPMUX_OK);
  CHECK(runs(plan, "twice/zeta.v1"));
  CHECK(opmux_plan_call(plan, v.args, 3, NULL) == OPMUX_OK);
  CHECK(zeta.calls == 1);
  opmux_plan_destroy(plan);
  CHECK(opmux_withdraw(acme_held, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(zeta_held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void a_withdrawn_implementation_revokes_its_plan(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_operator* op = define_twice(runtime);
  twice acme;
  make_twice(&acme, "acme", "v1", 120);
  acme.impl.flags = OPMUX_IMPL_CAPTURE_SAFE;
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &acme.backend, &held, NULL) == OPMUX_OK);
  vectors v;
  make_vectors(&v, 4);
  opmux_plan* plan;
  CHECK(opmux_plan_bind(op, v.args, 3, OPMUX_PLAN_FOR_CAPTURE, &plan, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  CHECK(state_of(plan) == OPMUX_PLAN_REVOKED);
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_plan_call(plan, v.args, 3, &error) == OPMUX_REVOKED);
  CHECK(error.text_size > 0);
  CHECK(opmux_plan_run_unchecked(plan, NULL) == OPMUX_REVOKED);
  CHECK(opmux_plan_refresh(plan, NULL) == OPMUX_NO_CANDIDATE);
  CHECK(acme.calls == 0);
  opmux_plan_destroy(plan);
  opmux_runtime_destroy(runtime);
}
