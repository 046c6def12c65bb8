/* The library that brought.c needs. With CRASHES its constructor crashes. */
#include <stdint.h>

int deeper_number(void);
int deeper_number(void) { return NUMBER; }

#ifdef CRASHES
__attribute__((constructor)) static void constructed(void) {
  *(volatile int*)(uintptr_t)0x1000 = 1;
}
#endif
