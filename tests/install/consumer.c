#include <stdio.h>

#include <opmux/opmux.h>

int main(void) {
  opmux_runtime* runtime;
  opmux_operator* op;
  opmux_error error = OPMUX_ERROR_INIT;
  if (opmux_runtime_create(NULL, &runtime, &error)) return 1;
  if (opmux_operator_get(runtime, opmux_str_of("softmax"), &op, &error)) return 1;
  if (opmux_operator_get(runtime, opmux_str_of("sofmax"), &op, &error) != OPMUX_NOT_FOUND) return 1;
  printf("%s\n", error.text);
  opmux_runtime_destroy(runtime);
  return 0;
}
