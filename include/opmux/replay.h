/*
 * Recording and replay of failed calls: part of <opmux/opmux.h>, which includes this header. See
 * docs/replay.md.
 *
 *    opmux_str_list none = {NULL, 0};
 *    opmux_replay_options smaller = {sizeof smaller, OPMUX_REPLAY_MINIMIZE, none, {NULL, 0}};
 *    char json[4096];
 *    opmux_str path = opmux_str_of("calls/5b1e.opmux-replay");
 *    if (opmux_replay(runtime, path, &smaller, json, sizeof json, NULL, &error) == OPMUX_OK)
 *      puts(json);
 */
#ifndef OPMUX_REPLAY_H
#define OPMUX_REPLAY_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#endif /* OPMUX_REPLAY_H */
