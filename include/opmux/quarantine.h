/*
 * Who is blamed for the ends of processes, for programs written in C: a part of <opmux/opmux.h>,
 * which includes it.
 */
#ifndef OPMUX_QUARANTINE_H
#define OPMUX_QUARANTINE_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Implementations that may not run because processes ended inside of them, and suspects of other
   ends: docs/schemas/quarantine.json. */
OPMUX_EXPORT int32_t opmux_list_quarantine(opmux_runtime* runtime, char* buffer, size_t capacity,
                                           size_t* size, opmux_error* error);
/* Lifts the quarantine of an implementation and the suspicion against it, or of all if the text is
   empty; `cleared`, which may be null, becomes how often it was listed. */
OPMUX_EXPORT int32_t opmux_clear_quarantine(opmux_runtime* runtime, opmux_str implementation,
                                            uint64_t* cleared, opmux_error* error);
/* What became of the runtime's crash journal: {"on", "handler", "path", "problem", counts}. */
OPMUX_EXPORT int32_t opmux_crash_journal(opmux_runtime* runtime, char* buffer, size_t capacity,
                                         size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_QUARANTINE_H */
