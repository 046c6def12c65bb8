/* Its tables are at odd addresses, as `#pragma pack` places them, or its array has an odd
   stride. */
#include "copying.h"

#pragma pack(push, 1)
typedef struct tables {
  char odd;
  opmux_impl impl;
  opmux_backend backend;
  opmux_schema_text schema;
  char room[64];
} tables;
#pragma pack(pop)

OPMUX_PLUGIN_ENTRY(misaligned) {
  static tables all;
  /* The addresses are misaligned for their types, so the host must copy instead of
     dereferencing. */
  char* base = (char*)&all;
  const opmux_impl* at = (const opmux_impl*)(const void*)(base + offsetof(tables, impl));
  const opmux_impl impl = copying_impl("defect.copy", COPY_SCHEMA("defect"));
  opmux_backend backend = copying_backend(NAME, at);
  const opmux_schema_text schema = copying_schema(COPY_SCHEMA("defect"));
  (void)host;
#ifdef ODD_STRIDE
  backend.impl_stride += 1;
#endif
  memcpy(base + offsetof(tables, impl), &impl, sizeof impl);
  memcpy(base + offsetof(tables, backend), &backend, sizeof backend);
  memcpy(base + offsetof(tables, schema), &schema, sizeof schema);
  fill_plugin(out, NAME, (const opmux_backend*)(const void*)(base + offsetof(tables, backend)),
              (const opmux_schema_text*)(const void*)(base + offsetof(tables, schema)));
  return OPMUX_OK;
}
