/* Returns memory that malloc did not allocate, so freeing it elsewhere crashes the process. */
#include "copying.h"

#define MOST 64

static struct {
  int taken;
  char bytes[24];
} states[MOST];

OPMUX_EXPORT int handed_out(void);
OPMUX_EXPORT int given_back(void);
static int out_count, back_count;

int handed_out(void) { return out_count; }
int given_back(void) { return back_count; }

/* Returns a pointer one byte into an array, which no allocator could have returned. */
static int32_t plan(void* user_data, const opmux_call* call, void** prepared) {
  (void)user_data;
  (void)call;
  for (int i = 0; i < MOST; ++i) {
    if (states[i].taken) continue;
    states[i].taken = 1;
    ++out_count;
    *prepared = states[i].bytes + 1;
    return OPMUX_OK;
  }
  return OPMUX_RESOURCE;
}

static void plan_free(void* user_data, void* prepared) {
  (void)user_data;
  for (int i = 0; i < MOST; ++i) {
    if (prepared != states[i].bytes + 1 || !states[i].taken) continue;
    states[i].taken = 0;
    ++back_count;
  }
}

OPMUX_PLUGIN_ENTRY(owning) {
  static opmux_impl impl;
  static opmux_backend backend;
  static opmux_schema_text schema;
  (void)host;
  impl = copying_impl("defect.copy", COPY_SCHEMA("defect"));
  impl.plan = plan;
  impl.plan_free = plan_free;
  backend = copying_backend(NAME, &impl);
  schema = copying_schema(COPY_SCHEMA("defect"));
  fill_plugin(out, NAME, &backend, &schema);
  return OPMUX_OK;
}
