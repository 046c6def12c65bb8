// Exports symbols that would replace those of the C library.
#include <stddef.h>

__attribute__((visibility("default"))) void* malloc(size_t size) {
  (void)size;
  return NULL;
}

__attribute__((visibility("default"))) void free(void* memory) { (void)memory; }
