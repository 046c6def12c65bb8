/*
 * Crash journal and quarantine: part of <opmux/opmux.h>, which includes this header.
 *
 * With a crash journal (opmux_state_options.crash_journal) the next process knows inside which
 * implementation an earlier one crashed, and does not use it: it is quarantined, by id and build,
 * for 7 days or until cleared. The reference is never quarantined.
 *
 *    uint64_t cleared = 0;
 *    opmux_str id = opmux_str_of("rms_norm/acme.fused");
 *    if (opmux_clear_quarantine(runtime, id, &cleared, &error) == OPMUX_OK)
 *      printf("%llu entries removed\n", (unsigned long long)cleared);
 */
#ifndef OPMUX_QUARANTINE_H
#define OPMUX_QUARANTINE_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Implementations that may not run because processes crashed inside them, and suspects of other
   crashes, as JSON of docs/schemas/quarantine.json. The list is shared by all processes of this
   user. */
OPMUX_EXPORT int32_t opmux_list_quarantine(opmux_runtime* runtime, char* buffer, size_t capacity,
                                           size_t* size, opmux_error* error);
/* Lifts the quarantine of an implementation and clears suspicions against it; an empty text means
   all. *cleared, which may be null, becomes the number of entries removed. Takes effect in this
   runtime at once, in other processes when they start next. Fails with OPMUX_UNAVAILABLE if the
   store cannot be written. */
OPMUX_EXPORT int32_t opmux_clear_quarantine(opmux_runtime* runtime, opmux_str implementation,
                                            uint64_t* cleared, opmux_error* error);
/* State of the crash journal as JSON: {"on", "handler", "path", "problem", counters}. `problem`
   says why it is off although it was requested. */
OPMUX_EXPORT int32_t opmux_crash_journal(opmux_runtime* runtime, char* buffer, size_t capacity,
                                         size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_QUARANTINE_H */
