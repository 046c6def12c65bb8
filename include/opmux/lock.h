/*
 * Frozen runtimes and lockfiles, for programs written in C: a part of <opmux/opmux.h>, which
 * includes it.
 */
#ifndef OPMUX_LOCK_H
#define OPMUX_LOCK_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on nothing changes any more: registrations, policies and switches of backends return
   OPMUX_FROZEN. Calls run what was chosen for their class so far; others are decided as usual, told
   as an event and in opmux_report.fell_back, and return OPMUX_FROZEN with strict. Cannot be undone.
 */
OPMUX_EXPORT int32_t opmux_runtime_freeze(opmux_runtime* runtime, opmux_error* error);
/* The same with the choices of the text of a lockfile. Fails with OPMUX_FAILED and all differences,
   and changes nothing, if it does not fit this runtime. */
OPMUX_EXPORT int32_t opmux_runtime_freeze_by(opmux_runtime* runtime, opmux_str lockfile,
                                             opmux_str name, opmux_error* error);
/* 1 if it is frozen, else 0. */
OPMUX_EXPORT int32_t opmux_runtime_frozen(const opmux_runtime* runtime);

/* Decides for a call like this as its first call would, without running it, and writes the
   implementation's id. Outputs may be left out. */
OPMUX_EXPORT int32_t opmux_decide(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                  char* buffer, size_t capacity, size_t* size, opmux_error* error);
/* The choices that were made so far outside of scopes, by calls, plans and opmux_decide: the text
   of a lockfile. */
OPMUX_EXPORT int32_t opmux_runtime_lock(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_LOCK_H */
