/* Compares the header with the table in layout.inc; included by a C and by a C++ file. */
#include <opmux/abi.h>

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

#define SIZE(type, size) static_assert(sizeof(type) == (size), #type " has another size");
#define FIELD(type, field, offset, size)                                                   \
  static_assert(offsetof(type, field) == (offset), #type "." #field " is somewhere else"); \
  static_assert(sizeof(((type*)0)->field) == (size), #type "." #field " has another size");
/* Structs must not end with padding: an old plugin would include it in its struct_size, and the
   host would read it as the first appended field. */
#define LAST(type, field)                                                          \
  static_assert(offsetof(type, field) + sizeof(((type*)0)->field) == sizeof(type), \
                #type " ends in padding");

#include "layout.inc"
