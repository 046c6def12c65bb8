/* A thread of its own runs its code for as long as the process lives, whoever unloads it. */
#include <pthread.h>
#include <stdatomic.h>

#include "copying.h"

OPMUX_EXPORT atomic_long* rounds_of_its_thread(void);
static atomic_long rounds;

atomic_long* rounds_of_its_thread(void) { return &rounds; }

static void* work(void* context) {
  (void)context;
  for (;;) {
    atomic_fetch_add(&rounds, 1);
    sched_yield();
  }
  return NULL;
}

static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  pthread_t thread;
  (void)user_data;
  (void)host;
  (void)error;
  if (pthread_create(&thread, NULL, work, NULL) != 0) return OPMUX_RESOURCE;
  pthread_detach(thread);
  return OPMUX_OK;
}

OPMUX_PLUGIN_ENTRY(threaded) {
  static opmux_impl impl;
  static opmux_backend backend;
  static opmux_schema_text schema;
  (void)host;
  impl = copying_impl("defect.copy", COPY_SCHEMA("defect"));
  backend = copying_backend(NAME, &impl);
  schema = copying_schema(COPY_SCHEMA("defect"));
  fill_plugin(out, NAME, &backend, &schema);
  out->init = init;
  return OPMUX_OK;
}
