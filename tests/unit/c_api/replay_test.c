#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>

#include "c_test.h"

static opmux_runtime* make_recording(const char* folder, twice* t) {
  const opmux_variable none = {{NULL, 0}, {NULL, 0}};
  opmux_record_options record = {.struct_size = sizeof(record), .flags = OPMUX_RECORD_INPUTS};
  record.folder = opmux_str_of(folder);
  opmux_options options = {.struct_size = sizeof(options), .flags = OPMUX_OPTION_NO_BACKENDS};
  options.environment = &none;
  options.record = &record;
  opmux_runtime* runtime = NULL;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  make_twice(t, "acme", "v1", 100);
  t->outcome = OPMUX_FAILED;
  t->sentence = "the oven is cold";
  return runtime;
}

/* The only file of a folder. */
static void find_file(const char* folder, char* path, size_t capacity) {
  DIR* const all = opendir(folder);
  CHECK(all != NULL);
  for (struct dirent* one; (one = readdir(all)) != NULL;) {
    if (one->d_name[0] != '.') snprintf(path, capacity, "%s/%s", folder, one->d_name);
  }
  closedir(all);
}

void a_call_that_failed_is_recorded_and_made_again(void) {
  char folder[] = "/tmp/opmux_c_record_XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  twice t, plain;
  opmux_runtime* runtime = make_recording(folder, &t);
  opmux_registration *held, *plain_held;
  make_twice(&plain, "own", "body", 50);
  plain.backend.kind = OPMUX_KIND_REFERENCE;
  plain.backend.vendor = opmux_str_of("");
  CHECK(opmux_implement(runtime, &t.backend, &held, NULL) == OPMUX_OK);
  CHECK(opmux_implement(runtime, &plain.backend, &plain_held, NULL) == OPMUX_OK);
  matrix x, y;
  make_matrix(&x, 3, 1);
  make_matrix(&y, 3, 1);
  x.tensor.ndim = y.tensor.ndim = 1;
  const opmux_arg args[2] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  CHECK(opmux_call_operator(get(runtime, "twice"), args, 2, NULL) == OPMUX_OK);
  CHECK(t.calls == 1 && plain.calls == 1);
  char text[4096], path[512] = "", smaller[64];
  CHECK(opmux_recordings(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "\"inputs\":true,\"written\":1,");
  find_file(folder, path, sizeof(path));
  snprintf(smaller, sizeof(smaller), "%s/smaller", folder);
  opmux_replay_options options = {.struct_size = sizeof(options), .flags = OPMUX_REPLAY_MINIMIZE};
  options.out = opmux_str_of(smaller);
  CHECK(opmux_replay(runtime, opmux_str_of(path), &options, text, sizeof(text), NULL, NULL) ==
        OPMUX_OK);
  CHECK_HAS(text, "\"verdict\":\"fails\"");
  CHECK_HAS(text, "the oven is cold");
  t.outcome = OPMUX_OK;
  CHECK(opmux_replay(runtime, opmux_str_of(smaller), NULL, text, sizeof(text), NULL, NULL) ==
        OPMUX_OK);
  CHECK_HAS(text, "\"verdict\":\"agrees\"");
  CHECK_HAS(text, "x=f32[1] times=2");
  const opmux_str id = opmux_str_of("twice/own.body");
  options = (opmux_replay_options){.struct_size = sizeof(options), .implementations = {&id, 1}};
  CHECK(opmux_replay(runtime, opmux_str_of(path), &options, text, sizeof(text), NULL, NULL) ==
        OPMUX_OK);
  CHECK_HAS(text, "\"id\":\"twice/own.body\",\"verdict\":\"agrees\"");
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(plain_held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

void what_is_no_replay_file_is_refused(void) {
  opmux_runtime* runtime = make_runtime();
  char text[256];
  opmux_error error = OPMUX_ERROR_INIT;
  const opmux_str nowhere = opmux_str_of("/nowhere/file");
  CHECK(opmux_replay(runtime, nowhere, NULL, text, sizeof(text), NULL, &error) == OPMUX_NOT_FOUND);
  CHECK(equals(error.code, "replay.file"));
  CHECK(opmux_replay(NULL, nowhere, NULL, text, sizeof(text), NULL, NULL) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_recordings(NULL, text, sizeof(text), NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}
