#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "c_test.h"

/* Options of a runtime, each with a result that is different without it. */

enum { kRoom = 1 << 16 };

typedef struct world {
  char folder[64];
  char plugins[96];
  opmux_str plugins_text;
  char state[96];
  opmux_variable state_variable;
  opmux_plugin_options plugin_options;
  opmux_source_options sources;
  opmux_record_options record;
  opmux_options options;
} world;

/* A runtime with an empty private folder, and a plugin in a folder below it. */
static void make_world(world* w) {
  memset(w, 0, sizeof(*w));
  snprintf(w->folder, sizeof(w->folder), "/tmp/opmux_c_options_XXXXXX");
  CHECK(mkdtemp(w->folder) != NULL);
  snprintf(w->plugins, sizeof(w->plugins), "%s/plugins", w->folder);
  snprintf(w->state, sizeof(w->state), "%s/state", w->folder);
  w->plugins_text = opmux_str_of(w->plugins);
  CHECK(mkdir(w->plugins, 0700) == 0);
  w->state_variable.name = opmux_str_of("OPMUX_STATE_DIR");
  w->state_variable.value = opmux_str_of(w->state);
  w->plugin_options.struct_size = sizeof(w->plugin_options);
  w->plugin_options.folders = (opmux_str_list){&w->plugins_text, 1};
  w->sources.struct_size = sizeof(w->sources);
  w->sources.flags = OPMUX_SOURCE_NO_THREAD;
  w->record.struct_size = sizeof(w->record);
  w->options.struct_size = sizeof(w->options);
  w->options.flags = OPMUX_OPTION_NO_BACKENDS;
  w->options.environment = &w->state_variable;
  w->options.environment_count = 1;
  w->options.plugins = &w->plugin_options;
  w->options.sources = &w->sources;
  w->options.record = &w->record;
}

static void end_world(world* w) {
  char command[128];
  snprintf(command, sizeof(command), "rm -r '%s'", w->folder);
  CHECK(system(command) == 0);
}

static void write_file(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0);
  CHECK(fclose(file) == 0);
}

static opmux_runtime* created(const world* w) {
  opmux_runtime* runtime = NULL;
  opmux_error error = OPMUX_ERROR_INIT;
  if (opmux_runtime_create(&w->options, &runtime, &error) != OPMUX_OK) {
    fprintf(stderr, "%s\n", error.text);
    exit(1);
  }
  return runtime;
}

static void copy_plugin(const world* w) {
  char command[512];
  snprintf(command, sizeof(command), "cp '%s' '%s/plain.so'", OPMUX_TEST_PLUGIN, w->plugins);
  CHECK(system(command) == 0);
}

/* The entry of the plugin in the list of a new runtime, as JSON. */
static const char* listed_plugin(const world* w) {
  static char text[kRoom];
  opmux_runtime* runtime = created(w);
  CHECK(opmux_list_plugins(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
  CHECK_HAS(text, w->plugins);
  return strstr(text, w->plugins);
}

void plugins_need_the_trust_that_options_say(void) {
  world w;
  make_world(&w);
  copy_plugin(&w);
  CHECK_HAS(listed_plugin(&w), "\"implementations\":[\"good.swish/good.v1\"]");
  char digest[65];
  const char* at = strstr(listed_plugin(&w), "\"digest\":\"");
  CHECK(at != NULL);
  snprintf(digest, sizeof(digest), "%s", at + strlen("\"digest\":\""));

  w.plugin_options.trust = OPMUX_TRUST_DIGEST;
  CHECK_HAS(listed_plugin(&w), "\"code\":\"trust.digest\"");
  const opmux_str allowed = opmux_str_of(digest);
  w.plugin_options.digests = (opmux_str_list){&allowed, 1};
  CHECK_HAS(listed_plugin(&w), "\"loaded\":true");

  w.plugin_options.trust = OPMUX_TRUST_SIGNED;
  w.plugin_options.keyring = opmux_str_of("/nowhere/keys");
  CHECK_HAS(listed_plugin(&w), "\"code\":\"trust.unsigned\"");
  char signature[128];
  snprintf(signature, sizeof(signature), "%s/plain.so.sig", w.plugins);
  char text[512];
  snprintf(text, sizeof(text), "opmux-signature 1\nkey: %064d\nsha256: %s\nsignature: %0128d\n", 0,
           digest, 0);
  write_file(signature, text);
  CHECK_HAS(listed_plugin(&w), "the keyring '/nowhere/keys' cannot be used");

  w.plugin_options.trust = OPMUX_TRUST_ANY;
  w.plugin_options.max_bytes = 100;
  CHECK_HAS(listed_plugin(&w), "\"loaded\":false");
  end_world(&w);
}

/* Whether a library of this process is mapped from sealed memory. */
static int maps_sealed_memory(void) {
  char line[1024];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  while (fgets(line, sizeof(line), maps) != NULL) found |= strstr(line, "/memfd:") != NULL;
  fclose(maps);
  return found;
}

void plugins_are_sealed_if_a_flag_says_so(void) {
  world w;
  make_world(&w);
  copy_plugin(&w);
  w.plugin_options.flags = OPMUX_PLUGINS_SEALED;
  opmux_runtime* runtime = created(&w);
  CHECK(opmux_runtime_warm_up(runtime, NULL) == OPMUX_OK);
  CHECK(maps_sealed_memory());
  opmux_runtime_destroy(runtime);
  end_world(&w);
}

void plugins_are_tried_unless_a_flag_forbids_it(void) {
  world w;
  make_world(&w);
  copy_plugin(&w);
  w.plugin_options.flags = OPMUX_PLUGINS_NO_PROBE;
  CHECK_HAS(listed_plugin(&w), "\"loaded\":true");
  char verdicts[128];
  snprintf(verdicts, sizeof(verdicts), "%s/store/verdicts", w.state);
  CHECK(access(verdicts, F_OK) != 0);
  w.plugin_options.flags = 0;
  CHECK_HAS(listed_plugin(&w), "\"loaded\":true");
  CHECK(access(verdicts, F_OK) == 0);
  end_world(&w);
}

/* The settings of a new runtime, as JSON. */
static const char* settings_of(const world* w) {
  static char text[kRoom];
  opmux_runtime* runtime = created(w);
  CHECK(opmux_list_settings(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
  return text;
}

void sources_of_policy_are_those_of_the_options(void) {
  world w;
  make_world(&w);
  char policy[128], lockfile[128];
  snprintf(policy, sizeof(policy), "%s/policy.yaml", w.folder);
  snprintf(lockfile, sizeof(lockfile), "%s/opmux.lock", w.folder);
  write_file(policy,
             "opmux: 1\nrules:\n  - {name: from-platform, op: softmax, prefer: [vendor]}\n");
  CHECK(strstr(settings_of(&w), policy) == NULL);
  w.sources.platform = opmux_str_of(policy);
  CHECK_HAS(settings_of(&w), policy);
  w.sources.platform = opmux_str_of("");
  w.sources.config = opmux_str_of(policy);
  CHECK(strstr(settings_of(&w), "\"value\":\"config\"") == NULL);
  w.sources.mode = opmux_str_of("config");
  CHECK_HAS(settings_of(&w), "\"value\":\"config\"");

  char text[kRoom];
  w.sources =
      (opmux_source_options){.struct_size = sizeof(w.sources), .flags = OPMUX_SOURCE_NO_THREAD};
  opmux_runtime* runtime = created(&w);
  CHECK(opmux_runtime_lock(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
  write_file(lockfile, text);
  w.sources.mode = opmux_str_of("static");
  w.sources.lockfile = opmux_str_of(lockfile);
  CHECK_HAS(settings_of(&w), lockfile);
  runtime = created(&w);
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_FROZEN);
  opmux_runtime_destroy(runtime);
  w.sources.flags |= OPMUX_SOURCE_NO_FREEZE;
  runtime = created(&w);
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
  end_world(&w);
}

void flags_that_are_not_defined_are_refused(void) {
  world w;
  make_world(&w);
  uint32_t* const all[] = {&w.options.flags, &w.plugin_options.flags, &w.sources.flags,
                           &w.record.flags};
  const char* const names[] = {"options.flags", "options.plugins.flags", "options.sources.flags",
                               "options.record.flags"};
  opmux_error error = OPMUX_ERROR_INIT;
  for (int i = 0; i < 4; ++i) {
    opmux_runtime* refused = NULL;
    const uint32_t before = *all[i];
    *all[i] |= 1u << 20;
    CHECK(opmux_runtime_create(&w.options, &refused, &error) == OPMUX_INVALID_ARGUMENT);
    CHECK(equals(error.code, "c.flags") && refused == NULL);
    CHECK_HAS(error.text, names[i]);
    *all[i] = before;
  }
  opmux_runtime* runtime = created(&w);
  const opmux_str schema = opmux_str_of(TWICE);
  CHECK(opmux_define(runtime, schema, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.flags"));
  CHECK(opmux_define_all(runtime, &schema, 1, 2, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.flags"));
  matrix x, y;
  make_matrix(&x, 2, 3);
  make_matrix(&y, 2, 3);
  const opmux_arg args[2] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_plan* plan = NULL;
  opmux_operator* softmax = get(runtime, "softmax");
  CHECK(opmux_plan_bind(softmax, args, 2, 2, &plan, &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.flags") && plan == NULL);
  opmux_replay_options replay = {.struct_size = sizeof(replay), .flags = 2};
  CHECK(opmux_replay(runtime, opmux_str_of("/nowhere"), &replay, NULL, 0, NULL, &error) ==
        OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.flags"));
  CHECK(opmux_policy_check(runtime, opmux_str_of("opmux: 1\n"), opmux_str_of("p"), 2, NULL, 0, NULL,
                           &error) == OPMUX_INVALID_ARGUMENT);
  CHECK(equals(error.code, "c.flags"));
  opmux_runtime_destroy(runtime);
  end_world(&w);
}

/* The state of the recordings of a runtime, as JSON, after two calls with this outcome. */
static const char* recordings_after_two_calls(world* w, const char* folder, int32_t outcome) {
  static char text[kRoom];
  char path[128];
  snprintf(path, sizeof(path), "%s/%s", w->folder, folder);
  w->record.folder = opmux_str_of(path);
  opmux_runtime* runtime = created(w);
  CHECK(opmux_define(runtime, opmux_str_of(TWICE), 0, NULL) == OPMUX_OK);
  twice t;
  make_twice(&t, "acme", "v1", 100);
  t.outcome = outcome;
  t.sentence = "the oven is cold";
  opmux_registration* held;
  CHECK(opmux_implement(runtime, &t.backend, &held, NULL) == OPMUX_OK);
  matrix x, y;
  make_matrix(&x, 3, 1);
  make_matrix(&y, 3, 1);
  x.tensor.ndim = y.tensor.ndim = 1;
  const opmux_arg args[2] = {opmux_arg_tensor(&y.tensor), opmux_arg_tensor(&x.tensor)};
  opmux_operator* op = get(runtime, "twice");
  CHECK(opmux_call_operator(op, args, 2, NULL) == outcome);
  x.shape[0] = y.shape[0] = 12;
  CHECK(opmux_call_operator(op, args, 2, NULL) == outcome);
  CHECK(opmux_recordings(runtime, text, sizeof(text), NULL, NULL) == OPMUX_OK);
  CHECK(opmux_withdraw(held, NULL) == OPMUX_OK);
  opmux_runtime_destroy(runtime);
  return text;
}

/* Bytes of all files of a folder below that of the world. */
static long bytes_in(const world* w, const char* folder) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", w->folder, folder);
  DIR* const all = opendir(path);
  CHECK(all != NULL);
  long bytes = 0;
  for (struct dirent* one; (one = readdir(all)) != NULL;) {
    char file[600];
    struct stat found;
    snprintf(file, sizeof(file), "%s/%s", path, one->d_name);
    if (stat(file, &found) == 0 && S_ISREG(found.st_mode)) bytes += (long)found.st_size;
  }
  closedir(all);
  return bytes;
}

void recordings_keep_to_the_limits_of_the_options(void) {
  world w;
  make_world(&w);
  CHECK_HAS(recordings_after_two_calls(&w, "usual", OPMUX_FAILED), "\"written\":2");
  w.record.max_files = 1;
  CHECK_HAS(recordings_after_two_calls(&w, "one", OPMUX_FAILED), "\"written\":1");
  w.record.max_files = 0;
  CHECK_HAS(recordings_after_two_calls(&w, "none", OPMUX_OK), "\"written\":0");
  w.record.flags = OPMUX_RECORD_INPUTS;
  (void)recordings_after_two_calls(&w, "whole", OPMUX_FAILED);
  w.record.max_bytes = 1;
  (void)recordings_after_two_calls(&w, "small", OPMUX_FAILED);
  CHECK(bytes_in(&w, "small") + 60 <= bytes_in(&w, "whole")); /* 3 and 12 floats */
  w.record.max_bytes = 0;
  w.record.dump = opmux_str_of("twice:*:0");
  CHECK_HAS(recordings_after_two_calls(&w, "dump", OPMUX_OK), "\"written\":1");
  end_world(&w);
}

void a_broken_policy_file_is_fatal_if_a_flag_says_so(void) {
  world w;
  make_world(&w);
  char policy[128];
  snprintf(policy, sizeof(policy), "%s/policy.yaml", w.folder);
  w.sources.config = opmux_str_of(policy);
  write_file(policy, "opmux: 1\ndefaults: {prefer: [vendor]}\n");
  opmux_runtime_destroy(created(&w));
  write_file(policy, "opmux: 1\ndefaults: {perfer: [vendor]}\n");
  CHECK_HAS(settings_of(&w), "last known good");
  w.sources.flags |= OPMUX_SOURCE_NO_LAST_KNOWN_GOOD;
  opmux_runtime* refused = NULL;
  CHECK(opmux_runtime_create(&w.options, &refused, NULL) == OPMUX_INVALID_ARGUMENT);
  end_world(&w);
}

/* Number of inotify descriptors of this process. */
static int watchers(void) {
  int found = 0;
  for (int fd = 0; fd < 256; ++fd) {
    char link[32], target[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, target, sizeof(target) - 1);
    if (size > 0) target[size] = '\0';
    found += size > 0 && strcmp(target, "anon_inode:inotify") == 0;
  }
  return found;
}

void policy_files_are_polled_if_a_flag_says_so(void) {
  world w;
  make_world(&w);
  char policy[128];
  snprintf(policy, sizeof(policy), "%s/policy.yaml", w.folder);
  write_file(policy, "opmux: 1\n");
  w.sources.config = opmux_str_of(policy);
  for (int polls = 0; polls < 2; ++polls) {
    w.sources.flags = OPMUX_SOURCE_NO_THREAD | (polls ? OPMUX_SOURCE_LOOK_AT_FILES : 0u);
    opmux_runtime* runtime = created(&w);
    CHECK(opmux_tick(runtime, 1000000000, NULL) == OPMUX_OK);
    CHECK(watchers() == (polls ? 0 : 1));
    opmux_runtime_destroy(runtime);
  }
  end_world(&w);
}
