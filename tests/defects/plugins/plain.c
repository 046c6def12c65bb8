/* Copies; macros select another major version, another schema, or another operator. */
#include "copying.h"

#ifndef MAJOR
#define MAJOR OPMUX_ABI_MAJOR
#endif
#ifndef SCHEMA
#define SCHEMA COPY_SCHEMA("defect")
#endif
#ifndef BACKEND
#define BACKEND NAME
#endif

OPMUX_PLUGIN_ENTRY(plain) {
  static opmux_impl impl;
  static opmux_backend backend;
  static opmux_schema_text schema;
  (void)host;
  impl = copying_impl("defect.copy", SCHEMA);
  backend = copying_backend(BACKEND, &impl);
  schema = copying_schema(SCHEMA);
  fill_plugin(out, NAME, &backend, &schema);
  out->abi_major = MAJOR;
  return OPMUX_OK;
}
