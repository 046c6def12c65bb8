#define _GNU_SOURCE
#include <stdlib.h>

#include "c_test.h"

static opmux_runtime* make_with(const opmux_state_options* state, int32_t* outcome) {
  const opmux_variable none = {{NULL, 0}, {NULL, 0}};
  opmux_options options = {.struct_size = sizeof(options), .flags = OPMUX_OPTION_NO_BACKENDS};
  options.environment = &none;
  options.state = state;
  opmux_runtime* runtime = NULL;
  opmux_error error = OPMUX_ERROR_INIT;
  *outcome = opmux_runtime_create(&options, &runtime, &error);
  return runtime;
}

void a_crash_journal_is_kept_where_the_options_say(void) {
  char folder[] = "/tmp/opmux_c_state_XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  opmux_state_options state = {.struct_size = sizeof(state),
                               .crash_journal = OPMUX_CRASH_JOURNAL_WITH_HANDLER};
  state.folder = opmux_str_of(folder);
  int32_t outcome = OPMUX_FAILED;
  opmux_runtime* runtime = make_with(&state, &outcome);
  CHECK(outcome == OPMUX_OK);
  char text[2048];
  CHECK(opmux_crash_journal(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_HAS(text, "\"on\":true,\"handler\":true");
  CHECK_HAS(text, folder);
  CHECK(opmux_list_quarantine(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK_TEXT(text, "{\"quarantined\":[],\"suspected\":[]}");
  uint64_t cleared = 7;
  CHECK(opmux_clear_quarantine(runtime, opmux_str_of(""), &cleared, NULL) == OPMUX_OK);
  CHECK(cleared == 0);
  opmux_runtime_destroy(runtime);
  CHECK(opmux_list_quarantine(NULL, text, sizeof(text), NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_clear_quarantine(NULL, opmux_str_of(""), NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(opmux_crash_journal(NULL, text, sizeof(text), NULL, NULL) == OPMUX_INVALID_ARGUMENT);
  state.crash_journal = 9;
  make_with(&state, &outcome);
  CHECK(outcome == OPMUX_INVALID_ARGUMENT);
}
