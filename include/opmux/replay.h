/*
 * Calls that went wrong, recorded and made again, for programs written in C: a part of
 * <opmux/opmux.h>, which includes it. See docs/replay.md.
 */
#ifndef OPMUX_REPLAY_H
#define OPMUX_REPLAY_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPMUX_RECORD_INPUTS 1u /* also keep the elements of tensors, not only their digests */

/* Where calls that went wrong are written, and how much of them. */
struct opmux_record_options {
  uint32_t struct_size;
  uint32_t flags;     /* OPMUX_RECORD_* */
  opmux_str folder;   /* empty: what the environment says */
  uint64_t max_bytes; /* of elements that one file has; 0: 16 MB */
  uint32_t max_files; /* in the folder; 0: 64 */
};
typedef struct opmux_record_options opmux_record_options;

/* Writes how many calls were recorded, and where, as JSON. */
OPMUX_EXPORT int32_t opmux_recordings(opmux_runtime* runtime, char* buffer, size_t capacity,
                                      size_t* size, opmux_error* error);

#define OPMUX_REPLAY_MINIMIZE 1u /* look for smaller dimensions with which it still goes wrong */

/* How a recorded call is made again. */
typedef struct opmux_replay_options {
  uint32_t struct_size;
  uint32_t flags;                 /* OPMUX_REPLAY_* */
  opmux_str_list implementations; /* who shall run it; none: with whom it went wrong */
  opmux_str out;                  /* where the smaller call is written; empty: nowhere */
} opmux_replay_options;

/* Makes the call of a file again, compares with the reference and writes what was found as JSON:
   docs/schemas/replay.json. Its kernels run in this process. Null options are the defaults. Fails
   for what is no such file; an implementation that goes wrong is no failure but a verdict. */
OPMUX_EXPORT int32_t opmux_replay(opmux_runtime* runtime, opmux_str path,
                                  const opmux_replay_options* options, char* buffer,
                                  size_t capacity, size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_REPLAY_H */
