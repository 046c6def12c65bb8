#include <opmux/opmux.h>

// Compiled only: what the header offers to a program in C++ that prefers the C face.
int32_t use(opmux_runtime** runtime);
int32_t use(opmux_runtime** runtime) {
  opmux_error plain = OPMUX_ERROR_INIT;
  char room[128];
  opmux_error with_text = opmux_error_of(room, sizeof(room));
  return opmux_runtime_create(nullptr, runtime, &plain) ||
         opmux_runtime_create(nullptr, runtime, &with_text);
}
