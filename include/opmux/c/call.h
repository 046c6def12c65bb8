/*
 * Calls of the C API: operators, constants and bound plans. Part of <opmux/opmux.h>, which
 * includes this header and states the rules that hold for every function.
 */
#ifndef OPMUX_C_CALL_H
#define OPMUX_C_CALL_H

#include <opmux/c/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Operators ------------------------------------------------------------------------------- */

/* A handle to an operator. Belongs to the runtime and lives as long; safe from any thread. */
typedef struct opmux_operator opmux_operator;

/* Looks up an operator. Fails with OPMUX_NOT_FOUND and suggests the nearest name. */
OPMUX_EXPORT int32_t opmux_operator_get(opmux_runtime* runtime, opmux_str name, opmux_operator** op,
                                        opmux_error* error);

/*
 * Routes a call to the best implementation and runs it, falling back where that is safe. Arguments
 * are in the order of the schema; trailing ones with defaults may be left out. `flags` of arguments
 * are ignored, except those that opmux_arg_constant sets. A plain call does not check that outputs
 * and inputs do not overlap; the caller must ensure it. opmux_plan_bind checks it.
 *
 * Returns OPMUX_INVALID_ARGUMENT if the arguments do not fit the schema (no implementation ran),
 * OPMUX_NO_CANDIDATE with every candidate's reason if nothing is left to run, or the outcome of the
 * last implementation.
 */
OPMUX_EXPORT int32_t opmux_call_operator(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                         opmux_error* error);

/* Options of one call; all zero but struct_size means the defaults. */
typedef struct opmux_call_options {
  uint32_t struct_size;
  uint32_t tag;        /* from opmux_tag; 0 = none */
  void* stream;        /* queue of the device; null = its default stream */
  int32_t max_threads; /* 1 = stay on this thread, 0 = as many as the runtime has */
  uint32_t reserved;
} opmux_call_options;

/* Record of one call. Set struct_size before. Texts are zero-terminated and truncated to their
   room. */
typedef struct opmux_report {
  uint32_t struct_size;
  int32_t outcome;          /* return value of the call */
  char implementation[256]; /* ran last: "rms_norm/simd.avx512"; empty if none ran */
  char reason[512];         /* why it fell back, or which state the implementation left changed
                               (event call.left_state); empty otherwise */
  uint8_t fell_back;        /* the first choice did not run, or a preferred one was refused */
  uint8_t cached;           /* the decision was made before this call */
  uint8_t reserved[6];
  uint64_t generation;   /* number of the snapshot that decided */
  uint64_t select_ns;    /* time spent checking arguments and choosing */
  uint64_t run_ns;       /* time inside implementations, failed attempts included */
  char transforms[256];  /* conversions of tensors: "contiguous(x), widen(y, x)" */
  uint64_t transform_ns; /* time spent on them, before and after implementations */
} opmux_report;

/*
 * The same with options and a report, each of which may be null. The report is filled in on failure
 * too. A call with a report takes the slow path; for monitoring read opmux_stats_visit.
 *
 *    opmux_report report;
 *    opmux_call_options options = {sizeof options, 0, NULL, 1, 0};
 *    report.struct_size = sizeof report;
 *    if (opmux_call_operator_with(op, args, 2, &options, &report, &error) == OPMUX_OK)
 *      printf("%s took %llu ns\n", report.implementation, (unsigned long long)report.run_ns);
 */
OPMUX_EXPORT int32_t opmux_call_operator_with(opmux_operator* op, const opmux_arg* args,
                                              uint32_t count, const opmux_call_options* options,
                                              opmux_report* report, opmux_error* error);

/* ---- Constants: weights that are packed once ------------------------------------------------- */

/*
 * A tensor with an owner, for `const` arguments such as the weight of `linear`. Implementations may
 * keep packed copies of it, which belong to this object and are freed with it.
 *
 *    float w_data[16] = {0};
 *    int64_t w_shape[2] = {4, 4};
 *    opmux_tensor w = {w_data, {OPMUX_DEVICE_CPU, 0}, 2, {OPMUX_DTYPE_FLOAT, 32, 1},
 *                      w_shape, NULL, 0};
 *    opmux_operator* linear = NULL;
 *    opmux_constant* weight = NULL;
 *    if (opmux_operator_get(runtime, opmux_str_of("linear"), &linear, &error) == OPMUX_OK &&
 *        opmux_constant_create(runtime, &w, &weight, &error) == OPMUX_OK) {
 *      opmux_arg with_weight[3] = {args[0], args[1], opmux_arg_constant(weight)};
 *      opmux_call_operator(linear, with_weight, 3, &error);
 *    }
 *    opmux_constant_destroy(weight);
 *
 * Owned by the caller. Calls may use it from several threads.
 */
typedef struct opmux_constant opmux_constant;

/* Makes a constant. The struct is copied; the data are borrowed until it is destroyed and must not
   change without opmux_constant_changed. Fails with OPMUX_INVALID_ARGUMENT if there are no data. */
OPMUX_EXPORT int32_t opmux_constant_create(opmux_runtime* runtime, const opmux_tensor* tensor,
                                           opmux_constant** constant, opmux_error* error);
/* Frees the packed copies. No call may be using it. Null is allowed. */
OPMUX_EXPORT void opmux_constant_destroy(opmux_constant* constant);
/* Call this after the data were modified: packed copies are dropped, the next calls make new ones.
   A call that is running finishes with the copy it started with. */
OPMUX_EXPORT int32_t opmux_constant_changed(opmux_constant* constant, opmux_error* error);
/* Bytes of the packed copies that exist now. */
OPMUX_EXPORT int32_t opmux_constant_packed_bytes(const opmux_constant* constant, uint64_t* bytes,
                                                 opmux_error* error);
/* The constant as an argument of a call or plan, valid while the constant lives; null gives
   opmux_arg_none. */
OPMUX_EXPORT opmux_arg opmux_arg_constant(const opmux_constant* constant);

/* ---- Instances: operators with fixed arguments and state ------------------------------------- */

/* An argument by name. */
typedef struct opmux_named_arg {
  opmux_str name;
  opmux_arg value;
} opmux_named_arg;

/*
 * An operator with some arguments fixed, such as one layer of a model, and the state that
 * implementations keep for it. Scalars are its options: those that are not named have their
 * defaults, and a required one that is not named is passed with each call. The `const` tensors are
 * its parameters. A call passes the arguments that are left, in the order of the schema.
 *
 *    opmux_operator* softmax = NULL;
 *    opmux_instance* halved = NULL;
 *    opmux_named_arg fixed = {opmux_str_of("scale"), opmux_arg_f64(0.5)};
 *    if (opmux_operator_get(runtime, opmux_str_of("softmax"), &softmax, &error) == OPMUX_OK &&
 *        opmux_instance_create(softmax, &fixed, 1, &halved, &error) == OPMUX_OK) {
 *      opmux_instance_call(halved, args, 2, &error);
 *      opmux_instance_destroy(halved);
 *    }
 *
 * The first call that runs an implementation with `create` makes an object from the options, which
 * `load` gives the parameters to. Owned by the caller. Calls may use it from several threads.
 */
typedef struct opmux_instance opmux_instance;

/* Makes an instance. Numbers, texts, lists and shapes are copied; the data of tensors are borrowed
   until it is destroyed. Fails with OPMUX_NOT_FOUND for an unknown name, and with
   OPMUX_INVALID_ARGUMENT for a value that does not fit the schema, an output ("instance.argument")
   or a required `const` tensor that is missing ("instance.parameter"). */
OPMUX_EXPORT int32_t opmux_instance_create(opmux_operator* op, const opmux_named_arg* fixed,
                                           uint32_t count, opmux_instance** instance,
                                           opmux_error* error);
/* Destroys what implementations keep in it. No call may be using it. Null is allowed. */
OPMUX_EXPORT void opmux_instance_destroy(opmux_instance* instance);
/* Calls the operator with the fixed arguments and these, as opmux_call_operator does. */
OPMUX_EXPORT int32_t opmux_instance_call(opmux_instance* instance, const opmux_arg* args,
                                         uint32_t count, opmux_error* error);
/* The same with options and a report, each of which may be null. */
OPMUX_EXPORT int32_t opmux_instance_call_with(opmux_instance* instance, const opmux_arg* args,
                                              uint32_t count, const opmux_call_options* options,
                                              opmux_report* report, opmux_error* error);
/* Destroys what implementations keep, after the data of a parameter changed or to start again. A
   call that is running finishes with the object that it started with. */
OPMUX_EXPORT int32_t opmux_instance_reset(opmux_instance* instance, opmux_error* error);
/* The objects that implementations keep in it now, as JSON: {"instances": [{"implementation",
   "bytes", "attributes"}]}. Writes as opmux_explain does. */
OPMUX_EXPORT int32_t opmux_instance_describe(const opmux_instance* instance, char* buffer,
                                             size_t capacity, size_t* size, opmux_error* error);
/* The decision that a call through the instance would make; see opmux_explain. */
OPMUX_EXPORT int32_t opmux_instance_explain(const opmux_instance* instance, const opmux_arg* args,
                                            uint32_t count, uint32_t format, char* buffer,
                                            size_t capacity, size_t* size, opmux_error* error);

/* ---- Plans: decide once, call many times ----------------------------------------------------- */

/*
 * One decision, kept: calls run its implementation without a lookup and without fallback. Owned by
 * the caller and used by one thread at a time; bind one for each thread.
 *
 *    opmux_plan* plan = NULL;
 *    if (opmux_plan_bind(op, args, 2, 0, &plan, &error) == OPMUX_OK) {
 *      int32_t outcome = opmux_plan_call(plan, args, 2, &error);
 *      if (outcome == OPMUX_REVOKED && opmux_plan_refresh(plan, &error) == OPMUX_OK)
 *        outcome = opmux_plan_call(plan, args, 2, &error);
 *      if (outcome == OPMUX_OUTSIDE_PLAN) outcome = opmux_call_operator(op, args, 2, &error);
 *      opmux_plan_destroy(plan);
 *    }
 */
typedef struct opmux_plan opmux_plan;

/* Flag of opmux_plan_bind: only implementations that may run while a graph is captured. */
#define OPMUX_PLAN_FOR_CAPTURE 1u

/* Decides for arguments like these; nothing runs. Shapes are copied, data are not. Fails as a call
   does; with OPMUX_INVALID_ARGUMENT ("schema.overlap") if an output overlaps an input, or for flag
   bits that are not defined ("c.flags"); with OPMUX_UNSUPPORTED for strings, lists and tensors that
   need a conversion. */
OPMUX_EXPORT int32_t opmux_plan_bind(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                     uint32_t flags, opmux_plan** plan, opmux_error* error);
/* No call may be running. Null is allowed. */
OPMUX_EXPORT void opmux_plan_destroy(opmux_plan* plan);

/* Runs if the arguments fit the decision. Otherwise nothing runs: OPMUX_OUTSIDE_PLAN (bind again or
   call the operator), OPMUX_INVALID_ARGUMENT (the schema refuses them) or OPMUX_REVOKED (refresh).
   Else it returns the outcome of the implementation. */
OPMUX_EXPORT int32_t opmux_plan_call(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                                     opmux_error* error);

/* Checks arguments as a call does and stores them, with copies of shapes and addresses, for
   opmux_plan_run_unchecked. Fails as opmux_plan_call does, and nothing runs. */
OPMUX_EXPORT int32_t opmux_plan_prepare(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                                        opmux_error* error);
/* Runs on the arguments of the last opmux_plan_prepare without checking them: the data must still
   be at the same addresses. Fails with OPMUX_REVOKED, or with the outcome of the implementation. */
OPMUX_EXPORT int32_t opmux_plan_run_unchecked(opmux_plan* plan, opmux_error* error);

/* Sets the queue of the device that runs from now on are enqueued on, as opmux_call_options does
   for a call. Null, which a plan starts with, is the default stream of the device. Refreshing keeps
   it. */
OPMUX_EXPORT int32_t opmux_plan_set_stream(opmux_plan* plan, void* stream, opmux_error* error);

#define OPMUX_PLAN_CURRENT 0 /* a new decision would choose the same implementation */
#define OPMUX_PLAN_STALE 1   /* a new decision would choose another one; the plan still runs */
#define OPMUX_PLAN_REVOKED 2 /* denied, withdrawn, or its device lost; it does not run */

/* Writes an OPMUX_PLAN_* to *state; another thread may change it right after. */
OPMUX_EXPORT int32_t opmux_plan_state(const opmux_plan* plan, uint32_t* state, opmux_error* error);
/* Decides again for the arguments that the plan was bound or last prepared with. If that fails, the
   plan stays as it was. */
OPMUX_EXPORT int32_t opmux_plan_refresh(opmux_plan* plan, opmux_error* error);
/* Writes the id of the implementation; the text lives until the plan is refreshed or destroyed. */
OPMUX_EXPORT int32_t opmux_plan_implementation(const opmux_plan* plan, opmux_str* id,
                                               opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_C_CALL_H */
