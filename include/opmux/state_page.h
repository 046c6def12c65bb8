/*
 * What processes tell of themselves while they run, for programs written in C: a part of
 * <opmux/opmux.h>, which includes it. Needs no runtime.
 */
#ifndef OPMUX_STATE_PAGE_H
#define OPMUX_STATE_PAGE_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what a living process that keeps a state page runs, how often and by which policy, as JSON
   of docs/schemas/process_state.json. `state_dir` is the OPMUX_STATE_DIR that it was started with;
   empty: what this process's environment says. OPMUX_NOT_FOUND if it has ended or keeps no page. */
OPMUX_EXPORT int32_t opmux_process_state(int64_t pid, opmux_str state_dir, char* buffer,
                                         size_t capacity, size_t* size, opmux_error* error);
/* The same of all that there are: {"processes": [...]}. */
OPMUX_EXPORT int32_t opmux_process_states(opmux_str state_dir, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_STATE_PAGE_H */
