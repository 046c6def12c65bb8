/*
 * Status files of running processes: part of <opmux/opmux.h>, which includes this header. A process
 * started with OPMUX_STATE_PAGE=1 keeps a small file that shows which implementations it runs.
 * These functions read such files; they need no runtime and do not disturb the process.
 *
 *    char json[65536];
 *    opmux_str default_folder = {NULL, 0};
 *    if (opmux_process_states(default_folder, json, sizeof json, NULL, &error) == OPMUX_OK)
 *      puts(json);
 */
#ifndef OPMUX_STATE_PAGE_H
#define OPMUX_STATE_PAGE_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the implementations, call counts and policy of a living process as JSON of
   docs/schemas/process_state.json, as opmux_explain writes text. `state_dir` is the OPMUX_STATE_DIR
   of that process; empty: that of this process. Fails with OPMUX_NOT_FOUND if the process has ended
   ("state_page.process") or keeps no status file ("state_page.none"). */
OPMUX_EXPORT int32_t opmux_process_state(int64_t pid, opmux_str state_dir, char* buffer,
                                         size_t capacity, size_t* size, opmux_error* error);
/* The same for every living process of this user with a status file: {"processes": [...]}. */
OPMUX_EXPORT int32_t opmux_process_states(opmux_str state_dir, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_STATE_PAGE_H */
