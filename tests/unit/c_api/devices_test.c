#include "c_test.h"

static int32_t architecture(void* user_data, int32_t device, opmux_str* text) {
  (void)user_data;
  if (device != 0) return OPMUX_DECLINED;
  *text = opmux_str_of("2.5");
  return OPMUX_OK;
}

/* Registers twice/NAME.v1 for architectures from `lowest` on. */
static opmux_registration* implement(opmux_runtime* runtime, twice* t, const char* name,
                                     int32_t priority, opmux_caps* caps, const char* lowest) {
  opmux_registration* held = NULL;
  *caps = (opmux_caps){.struct_size = sizeof(opmux_caps), .min_arch = opmux_str_of(lowest)};
  make_twice(t, name, "v1", priority);
  t->impl.caps = caps;
  CHECK(opmux_implement(runtime, &t->backend, &held, NULL) == OPMUX_OK);
  return held;
}

void vendors_name_their_device_types(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_name_device_type(301, opmux_str_of("quarrel"), NULL) == OPMUX_OK);
  CHECK(opmux_name_device_type(301, opmux_str_of("quarrel"), NULL) == OPMUX_OK);
  CHECK(opmux_name_device_type(302, opmux_str_of("quarrel"), NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_name_device_type(OPMUX_DEVICE_TRN, opmux_str_of("abacus"), NULL) ==
        OPMUX_INVALID_ARGUMENT);
  matrix x;
  make_matrix(&x, 2, 3);
  x.tensor.device.type = 301;
  opmux_arg args[] = {opmux_arg_none(), opmux_arg_tensor(&x.tensor)};
  char text[4096];
  CHECK(opmux_explain(get(runtime, "rms_norm"), args, 2, OPMUX_FORMAT_TEXT, text, sizeof(text),
                      NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "quarrel:0");
  opmux_runtime_destroy(runtime);
}

void architectures_are_stated_by_the_program_or_the_backend(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  matrix y, x;
  make_matrix(&y, 3, 1);
  make_matrix(&x, 3, 1);
  y.tensor.ndim = x.tensor.ndim = 1;
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_operator* op = get(runtime, "twice");
  static twice mute, plain, stating;
  static opmux_caps caps[3];
  opmux_registration* held[3];
  held[0] = implement(runtime, &mute, "mute", 300, &caps[0], "9.0");
  held[1] = implement(runtime, &plain, "plain", 100, &caps[1], "");
  CHECK_TEXT(runner(op, args, 2), "twice/plain.v1");

  make_twice(&stating, "stating", "v1", 200);
  caps[2] = (opmux_caps){.struct_size = sizeof(opmux_caps), .min_arch = opmux_str_of("2.5.0")};
  stating.impl.caps = &caps[2];
  stating.backend.architecture = architecture;
  CHECK(opmux_implement(runtime, &stating.backend, &held[2], NULL) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/stating.v1");

  const opmux_device cpu = {OPMUX_DEVICE_CPU, 0};
  CHECK(opmux_set_architecture(runtime, cpu, opmux_str_of("9.1"), NULL) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/mute.v1");
  CHECK(opmux_set_architecture(runtime, cpu, opmux_str_of("nine"), NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_set_architecture(NULL, cpu, opmux_str_of("9.1"), NULL) == OPMUX_INVALID_ARGUMENT);
  for (int i = 0; i < 3; ++i) CHECK(opmux_withdraw(held[i], NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void the_rank_of_the_process_is_a_fact_of_rules(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  matrix y, x;
  make_matrix(&y, 3, 1);
  make_matrix(&x, 3, 1);
  y.tensor.ndim = x.tensor.ndim = 1;
  opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_operator* op = get(runtime, "twice");
  static twice fast, plain;
  static opmux_caps caps[2];
  opmux_registration* held[] = {implement(runtime, &fast, "fast", 300, &caps[0], ""),
                                implement(runtime, &plain, "plain", 100, &caps[1], "")};
  const char* const rule =
      "opmux: 1\nrules:\n  - op: twice\n    when: tp_size > 1 && rank == 0\n    deny: "
      "[\"*/fast.*\"]\n";
  CHECK(opmux_policy_load(runtime, opmux_str_of(rule), opmux_str_of("p.yaml"), NULL) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/fast.v1");
  CHECK(opmux_set_rank(runtime, 0, 2, NULL) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/plain.v1");
  CHECK(opmux_set_rank(runtime, 1, 2, NULL) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/fast.v1");
  CHECK(opmux_set_rank(runtime, 0, 2, NULL) == OPMUX_OK);
  CHECK(opmux_set_rank(runtime, 0, -2, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_set_rank(NULL, 0, 2, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK_TEXT(runner(op, args, 2), "twice/plain.v1");
  CHECK(opmux_set_rank(runtime, -1, -1, NULL) == OPMUX_OK);
  CHECK_TEXT(runner(op, args, 2), "twice/fast.v1");
  for (int i = 0; i < 2; ++i) CHECK(opmux_withdraw(held[i], NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}
