/*
 * Queries of the C API: decisions, operators, plugins, settings, other processes, recorded calls.
 * Part of <opmux/opmux.h>, which includes this header and states the rules that hold for every
 * function.
 */
#ifndef OPMUX_C_QUERY_H
#define OPMUX_C_QUERY_H

#include <opmux/c/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Queries --------------------------------------------------------------------------------- */

#define OPMUX_FORMAT_TEXT 0 /* the table that `opmux explain` prints */
#define OPMUX_FORMAT_JSON 1 /* one line; docs/schemas describes each form */

/*
 * Functions below write text as snprintf does: at most `capacity` bytes with a closing zero, and
 * *size is the length of the whole text, which may be more than fitted. A null buffer with capacity
 * 0 asks for the size alone. `size` may be null. A truncated text is not an error.
 *
 *    size_t size = 0;
 *    if (opmux_health(runtime, NULL, 0, &size, &error) == OPMUX_OK) {
 *      char* json = malloc(size + 1);
 *      if (json && opmux_health(runtime, json, size + 1, &size, &error) == OPMUX_OK) puts(json);
 *      free(json);
 *    }
 */

/* The decision that a call with these arguments would make, with a reason for every candidate, as
   OPMUX_FORMAT_TEXT or OPMUX_FORMAT_JSON. Nothing runs. Outputs may be left out: their shapes are
   inferred. Arguments that do not fit the schema give an explanation whose note says why. */
OPMUX_EXPORT int32_t opmux_explain(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                   uint32_t format, char* buffer, size_t capacity, size_t* size,
                                   opmux_error* error);
/* Every operator with its implementations, as JSON. Asks each backend whether it is available. */
OPMUX_EXPORT int32_t opmux_list_operators(opmux_runtime* runtime, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);
/* Plugins that were found, loaded or refused, with reasons, as JSON. Loads waiting plugins. */
OPMUX_EXPORT int32_t opmux_list_plugins(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);
/* The policy text in force, and counters of loads and refusals, as JSON. */
OPMUX_EXPORT int32_t opmux_policy_state(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);
/* The bundles of measured speeds that the runtime found, with counts of their rows, as JSON. */
OPMUX_EXPORT int32_t opmux_list_tuning(opmux_runtime* runtime, char* buffer, size_t capacity,
                                       size_t* size, opmux_error* error);
/* Faster implementations that the runtime itself found, with the policy `tuning: online`, as JSON;
   the newest last. */
OPMUX_EXPORT int32_t opmux_list_proposals(opmux_runtime* runtime, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);
/* Reads the rows of all operators, which otherwise happens when an operator is first used, so that
   opmux_list_tuning counts them. Loads waiting plugins. */
OPMUX_EXPORT int32_t opmux_check_tuning(opmux_runtime* runtime, opmux_error* error);
/* Looks for bundles in the same places again, so that rows measured since the start count for the
   next calls. Operators with rows before or now are decided again. Fails with "runtime.frozen". */
OPMUX_EXPORT int32_t opmux_reload_tuning(opmux_runtime* runtime, opmux_error* error);
/* If `on` is not 0, samples every call on the CPU of the operators that exist now, instead of a few
   calls: each takes the slow path, about a microsecond. Forgets the cells of earlier calls. 0 ends
   that. opmux_write_state_page then writes the cells, and `opmux tune run --page FILE` measures
   them. */
OPMUX_EXPORT int32_t opmux_sample_all_calls(opmux_runtime* runtime, int32_t on, opmux_error* error);
/* Writes the state of the runtime to a file once, as a status file; nothing updates or removes it
   later. Fails with "state_page.file". */
OPMUX_EXPORT int32_t opmux_write_state_page(opmux_runtime* runtime, opmux_str path,
                                            opmux_error* error);
/* Every effective setting and where it came from, as JSON. */
OPMUX_EXPORT int32_t opmux_list_settings(opmux_runtime* runtime, char* buffer, size_t capacity,
                                         size_t* size, opmux_error* error);

/* ---- Other processes ------------------------------------------------------------------------- */

/*
 * Status files of running processes. A process
 * started with OPMUX_STATE_PAGE=1 keeps a small file that shows which implementations it runs.
 * These functions read such files; they need no runtime and do not disturb the process.
 *
 *    char json[65536];
 *    opmux_str default_folder = {NULL, 0};
 *    if (opmux_process_states(default_folder, json, sizeof json, NULL, &error) == OPMUX_OK)
 *      puts(json);
 */
/* Writes the implementations, call counts and policy of a living process as JSON of
   docs/schemas/process_state.json, as opmux_explain writes text. `state_dir` is the OPMUX_STATE_DIR
   of that process; empty: that of this process. Fails with OPMUX_NOT_FOUND if the process has ended
   ("state_page.process") or keeps no status file ("state_page.none"). */
OPMUX_EXPORT int32_t opmux_process_state(int64_t pid, opmux_str state_dir, char* buffer,
                                         size_t capacity, size_t* size, opmux_error* error);
/* The same for every living process of this user with a status file: {"processes": [...]}. */
OPMUX_EXPORT int32_t opmux_process_states(opmux_str state_dir, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);

/* ---- Recorded calls -------------------------------------------------------------------------- */

/*
 * Recording and replay of failed calls. See docs/replay.md.
 *
 *    opmux_str_list none = {NULL, 0};
 *    opmux_replay_options smaller = {sizeof smaller, OPMUX_REPLAY_MINIMIZE, none, {NULL, 0}};
 *    char json[4096];
 *    opmux_str path = opmux_str_of("calls/5b1e.opmux-replay");
 *    if (opmux_replay(runtime, path, &smaller, json, sizeof json, NULL, &error) == OPMUX_OK)
 *      puts(json);
 */
#define OPMUX_RECORD_INPUTS 1u /* also store elements of inputs, not only digests */

/* Where failed calls are written, and how much of them. A call that ends with OPMUX_FAILED, or that
   the shadow check finds wrong, gets one file for each implementation, class of calls and
   reason. */
struct opmux_record_options {
  uint32_t struct_size;
  uint32_t flags;     /* OPMUX_RECORD_* */
  opmux_str folder;   /* created for this user alone; empty: OPMUX_RECORD decides */
  uint64_t max_bytes; /* limit for the elements in one file; 0: 16 MB */
  uint32_t max_files; /* limit for the folder; 0: 64 */
  opmux_str dump; /* further calls, as in OPMUX_DUMP: "op:layer:step"; empty: OPMUX_DUMP decides */
};
typedef struct opmux_record_options opmux_record_options;

/* Writes the folder and the counters of recorded calls as JSON. */
OPMUX_EXPORT int32_t opmux_recordings(opmux_runtime* runtime, char* buffer, size_t capacity,
                                      size_t* size, opmux_error* error);

#define OPMUX_REPLAY_MINIMIZE 1u /* search for smaller dimensions that still fail */

/* How a recorded call is replayed. */
typedef struct opmux_replay_options {
  uint32_t struct_size;
  uint32_t flags;                 /* OPMUX_REPLAY_* */
  opmux_str_list implementations; /* ids to run; empty: the recorded implementation */
  opmux_str out;                  /* file for the minimized call; empty: none */
} opmux_replay_options;

/*
 * Runs the call of a file again, compares it with the reference and writes the result as JSON of
 * docs/schemas/replay.json. Kernels run in this process: one that crashes ends it. Null options are
 * the defaults. An implementation that is wrong or cannot run is a verdict, not a failure.
 *
 * Fails with the reason "replay.file" if the file cannot be read or is not a recording,
 * OPMUX_UNSUPPORTED ("replay.schema") if the call does not fit the operator here, OPMUX_UNAVAILABLE
 * ("replay.out") if the minimized call cannot be written.
 */
OPMUX_EXPORT int32_t opmux_replay(opmux_runtime* runtime, opmux_str path,
                                  const opmux_replay_options* options, char* buffer,
                                  size_t capacity, size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_C_QUERY_H */
