#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "c_test.h"

static opmux_runtime* make_with_page(const char* folder) {
  const opmux_variable none = {{NULL, 0}, {NULL, 0}};
  opmux_state_options state = {.struct_size = sizeof(state), .state_page = 1};
  state.folder = opmux_str_of(folder);
  opmux_source_options sources = {.struct_size = sizeof(sources), .flags = OPMUX_SOURCE_NO_THREAD};
  opmux_options options = {.struct_size = sizeof(options), .flags = OPMUX_OPTION_NO_BACKENDS};
  options.environment = &none;
  options.state = &state;
  options.sources = &sources;
  opmux_runtime* runtime = NULL;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  return runtime;
}

void a_process_tells_what_it_runs(void) {
  char folder[] = "/tmp/opmux_c_page_XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  const opmux_str dir = opmux_str_of(folder);
  opmux_runtime* runtime = make_with_page(folder);
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  const opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  CHECK(opmux_call_operator(get(runtime, "softmax"), args, 2, NULL) == OPMUX_OK);
  CHECK(opmux_tick(runtime, 1, NULL) == OPMUX_OK);
  size_t size = 0;
  CHECK(opmux_process_state(getpid(), dir, NULL, 0, &size, NULL) == OPMUX_OK);
  char* text = malloc(size + 1);
  CHECK(opmux_process_state(getpid(), dir, text, size + 1, NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "\"name\":\"softmax\",\"calls\":1,");
  CHECK_HAS(text, "\"accepted\":[\"softmax/reference.scalar\"]");
  free(text);
  char all[64];
  CHECK(opmux_process_states(dir, all, sizeof(all), &size, NULL) == OPMUX_OK);
  CHECK_HAS(all, "{\"processes\":[{\"pid\":");
  opmux_runtime_destroy(runtime);
  CHECK(opmux_process_states(dir, all, sizeof(all), NULL, NULL) == OPMUX_OK);
  CHECK_TEXT(all, "{\"processes\":[]}");
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_process_state(getpid(), dir, all, sizeof(all), NULL, &error) == OPMUX_NOT_FOUND);
  CHECK_HAS(error.text, "OPMUX_STATE_PAGE=1");
}

void writes_the_cells_of_sampled_calls(void) {
  char path[] = "/tmp/opmux_c_cells_XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  opmux_runtime* runtime = make_runtime();
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  const opmux_arg args[] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  CHECK(opmux_sample_all_calls(runtime, 1, NULL) == OPMUX_OK);
  for (int i = 0; i < 3; ++i) {
    CHECK(opmux_call_operator(get(runtime, "softmax"), args, 2, NULL) == OPMUX_OK);
  }
  CHECK(opmux_sample_all_calls(runtime, 0, NULL) == OPMUX_OK);
  CHECK(opmux_call_operator(get(runtime, "softmax"), args, 2, NULL) == OPMUX_OK);
  CHECK(opmux_write_state_page(runtime, opmux_str_of(path), NULL) == OPMUX_OK);
  FILE* written = fopen(path, "r");
  CHECK(written != NULL);
  int cells = 0;
  static char line[65536];
  while (fgets(line, sizeof(line), written) != NULL) {
    if (strncmp(line, "cell", 4) != 0) continue;
    CHECK_HAS(line, "softmax");
    CHECK_HAS(line, "H=3 rows=2");
    CHECK_HAS(line, "\t3\t"); /* calls */
    ++cells;
  }
  CHECK(cells == 1);
  fclose(written);
  remove(path);
  opmux_error error = OPMUX_ERROR_INIT;
  const opmux_str nowhere = opmux_str_of("/nowhere/page");
  CHECK(opmux_write_state_page(runtime, nowhere, &error) == OPMUX_FAILED);
  CHECK(equals(error.code, "state_page.file"));
  CHECK(opmux_write_state_page(NULL, nowhere, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_sample_all_calls(NULL, 1, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}

void reloads_measured_speeds_until_it_is_frozen(void) {
  opmux_runtime* runtime = make_runtime();
  CHECK(opmux_reload_tuning(runtime, NULL) == OPMUX_OK);
  CHECK(opmux_runtime_freeze(runtime, NULL) == OPMUX_OK);
  CHECK(opmux_reload_tuning(runtime, NULL) == OPMUX_FROZEN);
  CHECK(opmux_reload_tuning(NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  opmux_runtime_destroy(runtime);
}
