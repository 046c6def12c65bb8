#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "c_test.h"

static const char kVendorFirst[] = "opmux: 1\ndefaults: {prefer: [vendor]}\n";
static const char kWrong[] = "opmux: 1\ndefaults: {perfer: [vendor]}\n";

typedef struct heard {
  int changes;
  int32_t outcome;
  uint64_t version;
} heard;

static void hear(void* context, const opmux_policy_change* change) {
  heard* h = (heard*)context;
  ++h->changes;
  h->outcome = change->outcome;
  h->version = change->version;
}

static int says(opmux_runtime* runtime, const char* text) {
  char state[2048];
  CHECK(opmux_policy_state(runtime, state, sizeof(state), NULL, NULL) == OPMUX_OK);
  return strstr(state, text) != NULL;
}

void a_policy_text_comes_into_force_and_goes_back(void) {
  opmux_runtime* runtime = make_runtime();
  heard h = {0, 0, 0};
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_policy_on_change(runtime, hear, &h, NULL) == OPMUX_OK);
  CHECK(opmux_policy_load(runtime, opmux_str_of(kVendorFirst), opmux_str_of("a.yaml"), NULL) ==
        OPMUX_OK);
  CHECK(h.changes == 1 && h.outcome == OPMUX_OK && h.version == 1);
  CHECK(opmux_policy_load(runtime, opmux_str_of(kWrong), opmux_str_of("b.yaml"), &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(strstr(error.text, "b.yaml:2:") != NULL);
  CHECK(h.changes == 2 && h.outcome == OPMUX_INVALID_ARGUMENT && h.version == 1);
  CHECK(says(runtime, "\"name\":\"a.yaml\"") && says(runtime, "\"refused\":1"));
  CHECK(opmux_policy_rollback(runtime, &error) == OPMUX_NOT_FOUND);
  CHECK(opmux_policy_load(runtime, opmux_str_of("opmux: 1\n"), opmux_str_of("c.yaml"), NULL) ==
        OPMUX_OK);
  CHECK(says(runtime, "c.yaml"));
  CHECK(opmux_policy_rollback(runtime, NULL) == OPMUX_OK);
  CHECK(says(runtime, "\"name\":\"a.yaml\""));
  opmux_runtime_destroy(runtime);
}

static int32_t no_rule_without_owner(void* context, const opmux_rule_info* rules, size_t count,
                                     opmux_error* why) {
  (void)context;
  for (size_t i = 0; i < count; ++i) {
    if (rules[i].owner.size != 0) continue;
    snprintf(why->text, why->text_capacity, "nobody owns the rule for %.*s", (int)rules[i].op.size,
             rules[i].op.data);
    return OPMUX_INVALID_ARGUMENT;
  }
  return OPMUX_OK;
}

void a_validator_vetoes_a_policy_text(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_policy_add_validator(runtime, no_rule_without_owner, NULL, NULL) == OPMUX_OK);
  const char* unowned = "opmux: 1\nrules:\n  - {op: rms_norm, strict: true}\n";
  CHECK(opmux_policy_load(runtime, opmux_str_of(unowned), opmux_str_of("p"), &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(strcmp(error.text, "nobody owns the rule for rms_norm") == 0);
  const char* owned = "opmux: 1\nrules:\n  - {op: rms_norm, strict: true, owner: me}\n";
  CHECK(opmux_policy_load(runtime, opmux_str_of(owned), opmux_str_of("p"), NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
}

static void write_text(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0);
  CHECK(fclose(file) == 0);
}

void a_policy_file_is_followed_by_ticks(void) {
  char path[] = "/tmp/opmux-test-XXXXXX";
  const int made = mkstemp(path);
  CHECK(made >= 0);
  close(made);
  write_text(path, kVendorFirst);
  opmux_source_options sources = {sizeof(sources), 0, {0}, {0}, {0}, {0}};
  sources.flags = OPMUX_SOURCE_NO_THREAD | OPMUX_SOURCE_NO_LAST_KNOWN_GOOD;
  sources.config = opmux_str_of(path);
  const opmux_variable none[1] = {{{0}, {0}}};
  opmux_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.flags = OPMUX_OPTION_NO_BACKENDS;
  options.environment = none;
  options.sources = &sources;
  opmux_runtime* runtime = NULL;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  CHECK(says(runtime, "\"version\":1"));
  CHECK(opmux_tick(runtime, 1000000000, NULL) == OPMUX_OK);
  write_text(path, "opmux: 1\n");
  CHECK(opmux_tick(runtime, 2000000000, NULL) == OPMUX_OK);
  CHECK(opmux_tick(runtime, 2050000000, NULL) == OPMUX_OK);
  CHECK(says(runtime, "\"version\":2"));
  opmux_runtime_destroy(runtime);
  unlink(path);
}

void a_policy_file_that_others_can_write_is_refused(void) {
  char path[] = "/tmp/opmux-test-XXXXXX";
  const int made = mkstemp(path);
  CHECK(made >= 0);
  close(made);
  write_text(path, kVendorFirst);
  opmux_source_options sources = {sizeof(sources), 0, {0}, {0}, {0}, {0}};
  sources.flags = OPMUX_SOURCE_NO_THREAD | OPMUX_SOURCE_NO_LAST_KNOWN_GOOD;
  sources.config = opmux_str_of(path);
  const opmux_variable none[1] = {{{0}, {0}}};
  opmux_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.flags = OPMUX_OPTION_NO_BACKENDS | OPMUX_OPTION_REFUSE_WRITABLE_POLICY;
  options.environment = none;
  options.sources = &sources;
  opmux_runtime* runtime = NULL;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  CHECK(says(runtime, "\"version\":1"));
  opmux_runtime_destroy(runtime);
  CHECK(chmod(path, 0666) == 0);
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_runtime_create(&options, &runtime, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "policy.writable_by_others"));
  options.flags = OPMUX_OPTION_NO_BACKENDS;
  CHECK(opmux_runtime_create(&options, &runtime, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
  unlink(path);
}

static const char kOdd[] =
    "opmux: 1\nrules:\n  - {name: elsewhere, op: rms_norm, prefer: [rms_norm/zeta.*]}\n";

void a_policy_text_is_checked_and_changes_nothing(void) {
  opmux_runtime* runtime = make_runtime();
  opmux_error error = OPMUX_ERROR_INIT;
  char found[2048];
  size_t size = 0;
  const opmux_str odd = opmux_str_of(kOdd), name = opmux_str_of("p.yaml");
  CHECK(opmux_policy_check(runtime, odd, name, 0, found, sizeof(found), &size, NULL) == OPMUX_OK);
  CHECK(size == strlen(found));
  CHECK_HAS(found, "\"applies\":true,\"rules\":1");
  CHECK_HAS(found, "policy.unmatched");
  CHECK(opmux_policy_check(runtime, odd, name, OPMUX_CHECK_STRICT_NAMES, found, sizeof(found),
                           &size, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "p.yaml:3:");
  CHECK(opmux_policy_check(runtime, opmux_str_of(kWrong), name, 0, NULL, 0, &size, &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "p.yaml:2:");
  CHECK(opmux_policy_check(runtime, odd, name, 2, NULL, 0, &size, NULL) == OPMUX_INVALID_ARGUMENT);
  CHECK(says(runtime, "\"rules\":0") && says(runtime, "\"refused\":0"));
  CHECK(opmux_policy_load(runtime, odd, name, NULL) == OPMUX_OK);
  CHECK(says(runtime, "\"unmatched\":1") && says(runtime, "elsewhere"));
  opmux_runtime_destroy(runtime);
}

void a_condition_is_checked_with_its_column(void) {
  opmux_error error = OPMUX_ERROR_INIT;
  CHECK(opmux_condition_check(opmux_str_of("dtype(x) == \"bf16\" && H > 64"), NULL) == OPMUX_OK);
  CHECK(opmux_condition_check(opmux_str_of("H >> 64"), &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(strncmp(error.code.data, "policy.when", error.code.size) == 0);
  CHECK_HAS(error.text, "4");
}
