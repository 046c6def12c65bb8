/*
 * An attack that the system answers with an error, rather than with a signal, ends the process with
 * a status that says whether it succeeded, so that the test sees the answer.
 */
#ifndef OPMUX_TESTS_HOSTILE_OUTCOME_H
#define OPMUX_TESTS_HOSTILE_OUTCOME_H

#include <stdlib.h>
#include <unistd.h>

#define STATUS_OF_REFUSED 40
#define STATUS_OF_SUCCESS 41

static inline void conclude(int succeeded) {
  _exit(succeeded ? STATUS_OF_SUCCESS : STATUS_OF_REFUSED);
}

/* A path of the test. The variable is among those that the environment of a probe keeps. */
static inline const char* target(void) {
  const char* path = getenv("OMP_HOSTILE_TARGET");
  return path != NULL ? path : "/nowhere";
}

#endif
