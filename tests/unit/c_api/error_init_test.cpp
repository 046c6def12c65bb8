#include <opmux/opmux.h>

// Compile-only test: a C++ program that uses the C API.
int32_t use(opmux_runtime** runtime);
int32_t use(opmux_runtime** runtime) {
  opmux_error plain = OPMUX_ERROR_INIT;
  char room[128];
  opmux_error with_text = opmux_error_of(room, sizeof(room));
  return opmux_runtime_create(nullptr, runtime, &plain) ||
         opmux_runtime_create(nullptr, runtime, &with_text);
}
