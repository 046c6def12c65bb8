/*
 * Frozen runtimes and lockfiles: part of <opmux/opmux.h>, which includes this header.
 *
 * A lockfile records which implementation runs for each class of calls, so that another process
 * makes the same choices. Write one on a test machine:
 *
 *    size_t size = 0;
 *    if (opmux_runtime_lock(runtime, NULL, 0, &size, &error) == OPMUX_OK) {
 *      char* text = malloc(size + 1);
 *      if (text && opmux_runtime_lock(runtime, text, size + 1, &size, &error) == OPMUX_OK)
 *        fputs(text, stdout);
 *      free(text);
 *    }
 *
 * and apply it at the start of the service with opmux_runtime_freeze_by, or by mode static.
 */
#ifndef OPMUX_LOCK_H
#define OPMUX_LOCK_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends all changes: afterwards registrations, policies and switches of backends return
   OPMUX_FROZEN. Cannot be undone. Calls run the choice made for their class before freezing; other
   calls are decided as usual and reported as a deviation, as an event and in
   opmux_report.fell_back, or return OPMUX_FROZEN if the policy is strict. Freezing a frozen runtime
   succeeds. In mode static the choices come from the lockfile, and it may fail as
   opmux_runtime_freeze_by does. */
OPMUX_EXPORT int32_t opmux_runtime_freeze(opmux_runtime* runtime, opmux_error* error);
/* The same with the choices of a lockfile's text; `name` appears in messages. Fails with
   OPMUX_INVALID_ARGUMENT ("lock.text") if the text is not a lockfile, with OPMUX_FAILED
   ("lock.misfit") and all differences if it does not fit this runtime, with OPMUX_FROZEN if the
   runtime is frozen already. A failure changes nothing. */
OPMUX_EXPORT int32_t opmux_runtime_freeze_by(opmux_runtime* runtime, opmux_str lockfile,
                                             opmux_str name, opmux_error* error);
/* 1 if the runtime is frozen, else 0; null is not frozen. */
OPMUX_EXPORT int32_t opmux_runtime_frozen(const opmux_runtime* runtime);

/* Makes the decision that the first call with such arguments would make, without running it, and
   writes the id of the implementation. The decision becomes part of opmux_runtime_lock. Outputs may
   be left out. Fails as a call does, or with OPMUX_UNSUPPORTED ("lock.class") if such calls are
   decided each time. */
OPMUX_EXPORT int32_t opmux_decide(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                  char* buffer, size_t capacity, size_t* size, opmux_error* error);
/* Writes the text of a lockfile with the choices made so far outside of scopes, by calls, plans and
   opmux_decide. */
OPMUX_EXPORT int32_t opmux_runtime_lock(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_LOCK_H */
