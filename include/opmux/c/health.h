/*
 * Health of the C API: breakers, counters, crash journal and quarantine. Part of <opmux/opmux.h>,
 * which includes this header and states the rules that hold for every function.
 */
#ifndef OPMUX_C_HEALTH_H
#define OPMUX_C_HEALTH_H

#include <opmux/c/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Breakers and counters ------------------------------------------------------------------- */

/* Health of the runtime as JSON: a verdict for a health endpoint ("healthy", "degraded", "fatal"),
   the reasons, every breaker of an implementation with recent failures, operators without a
   candidate, and refused policies. */
OPMUX_EXPORT int32_t opmux_health(opmux_runtime* runtime, char* buffer, size_t capacity,
                                  size_t* size, opmux_error* error);

#define OPMUX_BREAKER_OPEN 0u    /* as if the failure limit were reached; probes follow */
#define OPMUX_BREAKER_CLOSE 1u   /* close, and clear all counters */
#define OPMUX_BREAKER_ISOLATE 2u /* open until it is closed by hand */

/* Opens, closes or isolates the breaker of an implementation for all its calls; `what` is an
   OPMUX_BREAKER_*. Fails with OPMUX_NOT_FOUND for an unknown id and OPMUX_UNSUPPORTED for a
   reference, which always stays closed. */
OPMUX_EXPORT int32_t opmux_force_breaker(opmux_runtime* runtime, opmux_str implementation,
                                         uint32_t what, opmux_error* error);

#define OPMUX_BREAKER_IS_CLOSED 0u    /* calls run */
#define OPMUX_BREAKER_IS_OPEN 1u      /* calls run another candidate */
#define OPMUX_BREAKER_IS_HALF_OPEN 2u /* a few probe calls run at a time */
#define OPMUX_BREAKER_IS_ISOLATED 3u  /* open until it is closed by hand */

/* A breaker that changed its state. Texts are borrowed for the callback. */
typedef struct opmux_breaker_event {
  uint32_t struct_size;
  uint32_t openings; /* consecutive openings */
  opmux_str implementation, op;
  opmux_str what;       /* class of calls: "f32 H<=4096 rows<=32 on cpu:0", or "all calls" */
  opmux_str why;        /* cause in words */
  uint32_t from, to;    /* OPMUX_BREAKER_IS_* */
  uint64_t open_for_ms; /* duration, if it opened */
  uint64_t change; /* number of the change; later changes of an implementation have higher ones */
} opmux_breaker_event;

/* Adds a listener for breakers that change their state. It is called from the thread that caused
   the change, or from the maintenance thread, never while opmux holds a lock, and must stay
   callable until the runtime is destroyed. */
OPMUX_EXPORT int32_t opmux_on_breaker(opmux_runtime* runtime,
                                      void (*listener)(void* context,
                                                       const opmux_breaker_event* event),
                                      void* context, opmux_error* error);

/* Counters of one implementation, summed over all threads. The id is borrowed for the visit. */
typedef struct opmux_stats {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str implementation;
  uint64_t calls; /* calls that ended ok */
  /* Calls that ended with that outcome. */
  uint64_t declined, failed, resource, invalid_argument, device_lost;
  uint64_t stood_in;     /* calls taken over as a fallback for another implementation */
  uint64_t packed_bytes; /* bytes of its packed copies that exist now */
  /* Calls that chose it first by a decision that could not be cached, so that the next such call
     decides again; the event "dispatch.decided_each_time" has the cause. */
  uint64_t decided_each_time;
} opmux_stats;

/* Calls `visit` on this thread with the counters of every implementation, sorted by id. */
OPMUX_EXPORT int32_t opmux_stats_visit(opmux_runtime* runtime,
                                       void (*visit)(void* context, const opmux_stats* stats),
                                       void* context, opmux_error* error);

/* ---- Crash journal and quarantine ------------------------------------------------------------ */

/*
 * Crash journal and quarantine.
 *
 * With a crash journal (opmux_state_options.crash_journal) the next process knows inside which
 * implementation an earlier one crashed, and does not use it: it is quarantined, by id and build,
 * for 7 days or until cleared. A crash while a plugin is opened or initialised quarantines the file
 * ("plugin:FILE"), and a crash in is_available the backend ("backend:NAME"). The reference is never
 * quarantined.
 *
 *    uint64_t cleared = 0;
 *    opmux_str id = opmux_str_of("rms_norm/acme.fused");
 *    if (opmux_clear_quarantine(runtime, id, &cleared, &error) == OPMUX_OK)
 *      printf("%llu entries removed\n", (unsigned long long)cleared);
 */
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

#endif /* OPMUX_C_HEALTH_H */
