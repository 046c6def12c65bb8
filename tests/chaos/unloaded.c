/* Code that is unloaded while calls run: y = 2 x + 1. */
#include <stdint.h>

__attribute__((visibility("default"))) void chaos_twice_plus_one(float* to, const float* from,
                                                                 int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 2 * from[i] + 1;
}
