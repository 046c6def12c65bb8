/* Has a thread that runs its code until the process ends, even if the library is unloaded. */
#include <pthread.h>
#include <stdatomic.h>

#include "copying.h"

OPMUX_EXPORT long rounds_of_its_thread(void);
static atomic_long rounds;

long rounds_of_its_thread(void) { return atomic_load(&rounds); }

static void* work(void* context) {
  (void)context;
  for (;;) {
    atomic_fetch_add(&rounds, 1);
    sched_yield();
  }
  return NULL;
}

static void start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) == 0) pthread_detach(thread);
}

/* Starts the thread at the first call, because a plugin that leaves threads after loading may be
   refused. */
static int32_t run(void* user_data, const opmux_call* call) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  return copy(user_data, call);
}

OPMUX_PLUGIN_ENTRY(threaded) {
  static opmux_impl impl;
  static opmux_backend backend;
  static opmux_schema_text schema;
  (void)host;
  impl = copying_impl("defect.copy", COPY_SCHEMA("defect"));
  impl.run = run;
  backend = copying_backend(NAME, &impl);
  schema = copying_schema(COPY_SCHEMA("defect"));
  fill_plugin(out, NAME, &backend, &schema);
  return OPMUX_OK;
}
