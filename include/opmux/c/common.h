/*
 * Codes, errors and arguments of the C API. Part of <opmux/opmux.h>, which includes this header
 * and states the rules that hold for every function.
 */
#ifndef OPMUX_C_COMMON_H
#define OPMUX_C_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include <opmux/abi.h>
#include <opmux/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Codes, besides the outcomes of abi.h ---------------------------------------------------- */

#define OPMUX_NOT_FOUND 16      /* no object of that name; the text suggests the nearest */
#define OPMUX_ALREADY_EXISTS 17 /* the name is taken by something different */
#define OPMUX_NO_CANDIDATE 18   /* policy, capabilities or health left nothing to run */
#define OPMUX_OUTSIDE_PLAN 19   /* the arguments do not fit the bound plan; bind again */
#define OPMUX_REVOKED 20        /* the bound plan may not run any more; refresh it */
#define OPMUX_FROZEN 21         /* the runtime is frozen and takes no more changes */
#define OPMUX_UNSUPPORTED 22    /* this build, machine or object cannot do it */
#define OPMUX_UNAVAILABLE 23    /* a file, folder or library is not usable at the moment */

/* The version of the loaded library, "0.1.0"; OPMUX_VERSION is the version of this header. Static
   lifetime. */
OPMUX_EXPORT opmux_str opmux_version(void);
/*
 * The optional features of the loaded library, separated by spaces: "policy_files" (it reads policy
 * files) and "signatures" (it checks digests and signatures of plugins). Static lifetime.
 *
 *    opmux_str features = opmux_features();
 *    printf("%.*s\n", (int)features.size, features.data);
 */
OPMUX_EXPORT opmux_str opmux_features(void);
/*
 * The name of an outcome or code, as logs and JSON print it: "invalid_argument"; "unknown" for
 * other numbers. Static lifetime.
 *
 *    opmux_str name = opmux_code_name(OPMUX_NO_CANDIDATE);
 *    printf("%.*s\n", (int)name.size, name.data);
 */
OPMUX_EXPORT opmux_str opmux_code_name(int32_t code);

/* ---- Errors ---------------------------------------------------------------------------------- */

/*
 * Initialiser of an opmux_error, which functions fill in when they fail: `outcome` is the return
 * value, `text` a zero-terminated sentence truncated to its room, `code` a stable reason such as
 * "schema.dim_mismatch" that lives as long as the process. A successful call leaves it unchanged.
 *
 *    opmux_error own = OPMUX_ERROR_INIT;
 *    if (opmux_policy_reset(runtime, &own) != OPMUX_OK)
 *      fprintf(stderr, "%.*s: %s\n", (int)own.code.size, own.code.data, own.text);
 *
 * Use one error per thread. In C the macro provides room for 511 bytes that lives as long as the
 * enclosing block. C++ has no such literal: there the error keeps only outcome and code, and
 * opmux_error_of adds room for the text.
 */
#ifdef __cplusplus
#define OPMUX_ERROR_INIT {sizeof(opmux_error), OPMUX_OK, NULL, 0, 0, {NULL, 0}}
#else
#define OPMUX_ERROR_INIT {sizeof(opmux_error), OPMUX_OK, (char[512]){0}, 512, 0, {NULL, 0}}
#endif

/*
 * An error whose text goes to the caller's buffer, which must outlive it.
 *
 *    char text[256];
 *    opmux_error roomy = opmux_error_of(text, sizeof text);
 */
static inline opmux_error opmux_error_of(char* buffer, size_t capacity) {
  opmux_error error;
  error.struct_size = (uint32_t)sizeof(opmux_error);
  error.outcome = OPMUX_OK;
  error.text = buffer;
  error.text_capacity = capacity;
  error.text_size = 0;
  error.code = opmux_str_of("");
  if (buffer && capacity) buffer[0] = '\0';
  return error;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/*
 * Functions that make arguments. They borrow what they point to until the call returns.
 *
 * opmux_arg_none: an optional argument, or an output to be inferred by opmux_explain, that is left
 * out.
 */
static inline opmux_arg opmux_arg_none(void) {
  opmux_arg arg;
  arg.tag = OPMUX_ARG_NONE;
  arg.flags = 0;
  arg.value.list.size = 0;
  arg.value.i64 = 0;
  arg.reserved = 0;
  return arg;
}

/* A tensor. Null strides mean row-major; a null tensor is the same as opmux_arg_none. Both the
   struct and the arrays it points to are borrowed. */
static inline opmux_arg opmux_arg_tensor(const opmux_tensor* tensor) {
  opmux_arg arg = opmux_arg_none();
  if (tensor) {
    arg.tag = OPMUX_ARG_TENSOR;
    arg.value.tensor = tensor;
  }
  return arg;
}

/* A float argument of the schema. */
static inline opmux_arg opmux_arg_f64(double value) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_F64;
  arg.value.f64 = value;
  return arg;
}

/* An int argument. */
static inline opmux_arg opmux_arg_i64(int64_t value) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_I64;
  arg.value.i64 = value;
  return arg;
}

/* A bool argument; any value but 0 is true. */
static inline opmux_arg opmux_arg_bool(int value) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_BOOL;
  arg.value.i64 = value != 0;
  return arg;
}

/* An enum argument by the position of its word in the schema. opmux_arg_str passes the word, which
   cannot be bound in a plan. */
static inline opmux_arg opmux_arg_enum(int64_t position) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_ENUM;
  arg.value.i64 = position;
  return arg;
}

/* A str argument, or the word of an enum: opmux_arg_str(opmux_str_of("tanh")). */
static inline opmux_arg opmux_arg_str(opmux_str text) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_STR;
  arg.value.list.data = text.data;
  arg.value.list.size = text.size;
  return arg;
}

/* An int[] argument. `items` may be null if `count` is 0. */
static inline opmux_arg opmux_arg_i64_list(const int64_t* items, size_t count) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_I64_LIST;
  arg.value.list.data = items;
  arg.value.list.size = count;
  return arg;
}

/* A Tensor[] argument. No pointer in `items` may be null. */
static inline opmux_arg opmux_arg_tensor_list(const opmux_tensor* const* items, size_t count) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_TENSOR_LIST;
  arg.value.list.data = (const void*)items;
  arg.value.list.size = count;
  return arg;
}

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_C_COMMON_H */
