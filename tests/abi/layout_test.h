/* Compares the header with the table in layout.inc; read by a C and by a C++ file. */
#include <opmux/abi.h>

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

#define SIZE(type, size) static_assert(sizeof(type) == (size), #type " has another size");
#define FIELD(type, field, offset, size)                                                   \
  static_assert(offsetof(type, field) == (offset), #type "." #field " is somewhere else"); \
  static_assert(sizeof(((type*)0)->field) == (size), #type "." #field " has another size");
/* Padding at the end would be inside the size that an old plugin states, and so would be read as
   the first field that is appended. */
#define LAST(type, field)                                                          \
  static_assert(offsetof(type, field) + sizeof(((type*)0)->field) == sizeof(type), \
                #type " ends in padding");

#include "layout.inc"
