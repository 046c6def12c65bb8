/*
 * The contract between opmux and a plugin. One C11 header, nothing to link.
 *
 * A plugin exports one function, opmux_plugin_query_v1 (see OPMUX_PLUGIN_ENTRY), that fills in an
 * opmux_plugin: its backends, their implementations of operators, operators of its own and answers
 * to specialization points. In-tree backends use this header and nothing else.
 *
 * Rules that hold everywhere:
 *  - A struct starts with `uint32_t struct_size`, set by its author to sizeof. Fields are only ever
 *    appended; a reader copies the smaller of both sizes and sees zero in what is missing. Arrays
 *    of structs carry their stride. opmux_str, opmux_dtype, opmux_device, opmux_tensor, opmux_arg
 *    are frozen and carry no size.
 *  - Pointers are borrowed for the call unless a comment says otherwise. Descriptors (opmux_plugin
 *    and what hangs on it) must live as long as the library is loaded.
 *  - Functions return an outcome (OPMUX_OK ...) and write details into the caller's opmux_error.
 *    No exception, no longjmp and no ownership crosses this line.
 *  - Reserved fields are zero. A null function pointer means "not provided" where that is allowed.
 *  - Functions may be called from any thread, several at a time, unless a comment says otherwise.
 */
#ifndef OPMUX_ABI_H
#define OPMUX_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPMUX_ABI_MAJOR 1
#define OPMUX_ABI_MINOR 0

/* Limits of the contract. */
#define OPMUX_MAX_RANK 8
#define OPMUX_MAX_ARGS 24

/* ---- Outcomes: what happened, and so what the host does next ------------------------------- */

#define OPMUX_OK 0               /* done */
#define OPMUX_DECLINED 1         /* refused before touching anything; the next candidate runs */
#define OPMUX_INVALID_ARGUMENT 2 /* the caller's fault; returned at once */
#define OPMUX_FAILED 3           /* went wrong; outputs may be spoilt */
#define OPMUX_RESOURCE 4         /* out of memory or workspace */
#define OPMUX_DEVICE_LOST 5      /* the device is gone for this process */

/* ---- Value types, frozen -------------------------------------------------------------------- */

/* Text that is not zero-terminated. Null data with size 0 is the empty string. */
typedef struct opmux_str {
  const char* data;
  size_t size;
} opmux_str;

/* OPMUX_STR("H") initialises an opmux_str; opmux_str_of("H") makes one in an expression. */
#define OPMUX_STR(literal) {(literal), sizeof(literal) - 1}

static inline opmux_str opmux_str_of(const char* text) {
  opmux_str s;
  s.data = text;
  s.size = 0;
  if (text) {
    while (text[s.size]) ++s.size;
  }
  return s;
}

/* Layout of DLDataType. */
typedef struct opmux_dtype {
  uint8_t code; /* OPMUX_DTYPE_* */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} opmux_dtype;

#define OPMUX_DTYPE_INT 0
#define OPMUX_DTYPE_UINT 1
#define OPMUX_DTYPE_FLOAT 2
#define OPMUX_DTYPE_BFLOAT 4
#define OPMUX_DTYPE_BOOL 6

/* Layout of DLDevice. */
typedef struct opmux_device {
  int32_t type; /* OPMUX_DEVICE_*, numbers of DLDeviceType */
  int32_t id;
} opmux_device;

#define OPMUX_DEVICE_CPU 1
#define OPMUX_DEVICE_CUDA 2
#define OPMUX_DEVICE_OPENCL 4

/* Layout of DLTensor. Strides count elements and are never null across this line. */
typedef struct opmux_tensor {
  void* data;
  opmux_device device;
  int32_t ndim;
  opmux_dtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} opmux_tensor;

#define OPMUX_ARG_NONE 0 /* an optional argument that is absent; the value is unspecified */
#define OPMUX_ARG_TENSOR 1
#define OPMUX_ARG_I64 2
#define OPMUX_ARG_F64 3
#define OPMUX_ARG_BOOL 4        /* in i64: 0 or 1 */
#define OPMUX_ARG_ENUM 5        /* in i64: position of the word in the schema's enum */
#define OPMUX_ARG_STR 6         /* in list: bytes */
#define OPMUX_ARG_I64_LIST 7    /* in list: const int64_t, size in elements */
#define OPMUX_ARG_TENSOR_LIST 8 /* in list: const opmux_tensor* const, size in elements */

#define OPMUX_ACCESS_IN 1u
#define OPMUX_ACCESS_OUT 2u
#define OPMUX_ACCESS_INOUT 3u
#define OPMUX_ARG_READ_ONLY 4u /* memory that must not be written whatever the access says */
#define OPMUX_ARG_CONSTANT 8u  /* declared `const` in the schema: may be packed, given an owner */

typedef struct opmux_list {
  const void* data;
  uint64_t size;
} opmux_list;

typedef union opmux_value {
  const opmux_tensor* tensor;
  int64_t i64;
  double f64;
  opmux_list list;
} opmux_value;

/* One argument, 32 bytes. */
typedef struct opmux_arg {
  uint32_t tag;   /* OPMUX_ARG_* */
  uint32_t flags; /* OPMUX_ACCESS_* and OPMUX_ARG_READ_ONLY, _CONSTANT; set by the host */
  opmux_value value;
  uint64_t reserved;
} opmux_arg;

/* ---- Errors --------------------------------------------------------------------------------- */

/* Owned by whoever calls. Write at most text_capacity bytes to text, their number to text_size. */
typedef struct opmux_error {
  uint32_t struct_size;
  int32_t outcome;
  char* text;
  size_t text_capacity;
  size_t text_size;
  opmux_str code; /* stable word such as "verify.head_size", with static lifetime; may be empty */
} opmux_error;

/* ---- Facts: what a verifier may look at ------------------------------------------------------ */

/* Kinds of facts. `name` is an argument's name, a dimension's name, or empty. */
#define OPMUX_FACT_DTYPE 1      /* of a tensor: code | bits << 8 | lanes << 16 */
#define OPMUX_FACT_RANK 2       /* of a tensor */
#define OPMUX_FACT_PRESENT 3    /* of an argument: 0 or 1 */
#define OPMUX_FACT_DIM 4        /* a named dimension, or "rows" */
#define OPMUX_FACT_CONTIGUOUS 5 /* of a tensor: 0 or 1 */
#define OPMUX_FACT_ALIGNMENT 6 /* of a tensor: largest power of two dividing its address, to 4096 */
#define OPMUX_FACT_LAYOUT 7    /* of a tensor: its dimensions by falling stride, 4 bits each */
#define OPMUX_FACT_SCALAR 8    /* an int, bool or enum argument; a float as its bits */
#define OPMUX_FACT_DEVICE 9    /* of a tensor: type | id << 16 */
#define OPMUX_FACT_AMBIENT 10  /* "grad", "capturing", "deterministic", "training": 0 or 1 */
#define OPMUX_FACT_TAG 11      /* tag of the call site */

/* Names one fact; arrays of these are the `verify_reads` and `plan_reads` of an implementation. */
typedef struct opmux_fact {
  uint32_t struct_size;
  uint32_t kind;
  opmux_str name;
} opmux_fact;

/* What a verifier sees. Only facts that its `verify_reads` lists exist; the rest read as absent. */
typedef struct opmux_facts {
  uint32_t struct_size;
  uint32_t reserved;
  const void* context;
  /* Writes the fact's value and returns 1, or returns 0 if it is absent or was not listed. */
  int32_t (*get)(const void* context, uint32_t kind, opmux_str name, int64_t* value);
} opmux_facts;

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Runs body(context, i) for each i in [0, count) on the engine's threads; returns when all did. */
typedef void (*opmux_parallel_for_fn)(void* pool, int64_t count, void* context,
                                      void (*body)(void* context, int64_t index));

typedef struct opmux_call {
  uint32_t struct_size;
  uint32_t arg_count;  /* of the schema: arguments left out hold their defaults */
  uint32_t arg_stride; /* bytes from one opmux_arg to the next */
  int32_t max_threads; /* 1 = stay on this thread */
  const opmux_arg* args;
  opmux_device device;
  void* stream;
  void* workspace; /* as large as workspace() asked for, aligned to 64 bytes */
  uint64_t workspace_size;
  void* prepared;                     /* what plan() returned for arguments like these, or null */
  opmux_error* error;                 /* may be null */
  uint64_t tag;                       /* call site, 0 = none */
  opmux_parallel_for_fn parallel_for; /* may be null: then loop */
  void* pool;
  void* instance; /* what create() returned, for calls through an instance; else null */
} opmux_call;

/* ---- Capabilities: data, so that the host can check and explain them ------------------------- */

#define OPMUX_AT_LEAST 1
#define OPMUX_AT_MOST 2
#define OPMUX_MULTIPLE_OF 3
#define OPMUX_EQUALS 4

/* A condition on a named dimension or on "rows". */
typedef struct opmux_dim_rule {
  uint32_t struct_size;
  opmux_str dim;
  uint32_t relation; /* OPMUX_AT_LEAST ... */
  int64_t value;
} opmux_dim_rule;

/* dtypes that an argument may have. An empty name: every tensor argument not named by another. */
typedef struct opmux_dtype_rule {
  uint32_t struct_size;
  uint32_t count;
  opmux_str arg;
  const opmux_dtype* dtypes;
} opmux_dtype_rule;

#define OPMUX_TENSOR_CONTIGUOUS 1u /* row-major, no gaps */
#define OPMUX_TENSOR_ABSENT 2u     /* this optional argument is not honoured: it must be absent */
#define OPMUX_TENSOR_PRESENT 4u    /* this optional argument must be given */
#define OPMUX_TENSOR_INNER_CONTIGUOUS 8u /* last dimension has stride 1 */

/* A condition on one tensor argument; an empty name means every tensor argument. */
typedef struct opmux_tensor_rule {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_TENSOR_* */
  opmux_str arg;
  int32_t min_rank;
  int32_t max_rank;   /* 0 = no limit */
  uint32_t alignment; /* bytes, power of two, 0 = none */
  uint32_t reserved;
  opmux_str layout; /* order of dimensions by falling stride, as digits ("0213"); empty = any */
} opmux_tensor_rule;

/* The values that a scalar argument may have; what is not listed here is honoured in full. */
typedef struct opmux_scalar_rule {
  uint32_t struct_size;
  uint32_t count;
  opmux_str arg;
  const int64_t* values; /* int, bool 0/1, enum position */
} opmux_scalar_rule;

/* What an implementation can do. Everything left zero means "no restriction". */
typedef struct opmux_caps {
  uint32_t struct_size;
  uint32_t flags;      /* OPMUX_CAPS_* */
  int32_t device_type; /* 0 = the backend's */
  uint32_t reserved;
  opmux_str cpu_features; /* comma separated, all needed: "avx2,fma", "amx_bf16" */
  opmux_str min_arch;     /* device architecture range, compared as dotted numbers; empty = open */
  opmux_str max_arch;
  const opmux_dtype_rule* dtypes;
  uint32_t dtype_count;
  uint32_t dtype_stride;
  const opmux_dim_rule* dims;
  uint32_t dim_count;
  uint32_t dim_stride;
  const opmux_tensor_rule* tensors;
  uint32_t tensor_count;
  uint32_t tensor_stride;
  const opmux_scalar_rule* scalars;
  uint32_t scalar_count;
  uint32_t scalar_stride;
} opmux_caps;

#define OPMUX_CAPS_INFERENCE_ONLY 1u /* refused while `grad` is on */

/* ---- Implementations ------------------------------------------------------------------------- */

#define OPMUX_IMPL_SERIAL 1u          /* not re-entrant: one prepared state per thread */
#define OPMUX_IMPL_ATOMIC_OUTPUTS 2u  /* writes nothing unless the outcome is OPMUX_OK */
#define OPMUX_IMPL_DETERMINISTIC 4u   /* same inputs, same bits */
#define OPMUX_IMPL_BATCH_INVARIANT 8u /* a row's result does not depend on the other rows */
#define OPMUX_IMPL_CAPTURE_SAFE 16u   /* may run while a graph is captured */

/* Receives what describe() has to say: the operator as a graph node. */
typedef struct opmux_node_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  void (*attribute)(void* context, opmux_str key, opmux_str value);
} opmux_node_sink;

/*
 * One implementation of one operator; its id is "operator/backend.variant".
 * Life cycle, stateless: verify, plan, run ..., plan_free.
 * Life cycle, stateful:  create, load, plan, run ..., plan_free, destroy.
 */
typedef struct opmux_impl {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_IMPL_* */
  opmux_str op;
  opmux_str variant;
  /* Hash of the arguments this was built for: opmux_schema_hash of the schema's text, or 0 with
     `signature` set. */
  uint64_t prefix_hash;
  opmux_str signature; /* the schema text this was written against */
  int32_t priority;    /* 0-1000; negative = the kind's own (150, 100, 50) */
  uint32_t reserved;
  const opmux_caps* caps; /* null = none */
  void* user_data;        /* first argument of every function below */

  /* May be null. Pure and cheap: accepts (OPMUX_OK) or refuses (OPMUX_DECLINED) with code and text
     in `why`. Any other outcome is a broken verifier. */
  int32_t (*verify)(void* user_data, const opmux_facts* facts, opmux_error* why);
  const opmux_fact* verify_reads; /* null = scalars, dtypes, ranks, device */
  uint32_t verify_reads_count;
  uint32_t verify_reads_stride;

  /* May be null. Makes what run() needs for arguments and max_threads like these (a primitive);
     *prepared then belongs to the host until plan_free. */
  int32_t (*plan)(void* user_data, const opmux_call* call, void** prepared);
  void (*plan_free)(void* user_data, void* prepared);
  const opmux_fact* plan_reads; /* null = everything */
  uint32_t plan_reads_count;
  uint32_t plan_reads_stride;

  /* May be null. Bytes of workspace that run() wants for these arguments. */
  uint64_t (*workspace)(void* user_data, const opmux_call* call);

  /* Never null. */
  int32_t (*run)(void* user_data, const opmux_call* call);

  /* Stateful operators; all null otherwise. */
  int32_t (*create)(void* user_data, const opmux_arg* options, uint32_t count, void** instance,
                    opmux_error* error);
  int32_t (*load)(void* user_data, void* instance, const opmux_arg* params, uint32_t count,
                  opmux_error* error);
  void (*destroy)(void* user_data, void* instance);
  int32_t (*describe)(void* user_data, void* instance, const opmux_node_sink* sink);
} opmux_impl;

/* ---- Backends and plugins -------------------------------------------------------------------- */

#define OPMUX_KIND_DEFAULT 1
#define OPMUX_KIND_VENDOR 2
#define OPMUX_KIND_REFERENCE 3

#define OPMUX_BACKEND_DEFAULT_OFF 1u /* used only if switched on */
#define OPMUX_BACKEND_FORK_REINIT 2u /* after fork, is_available is asked again in the child */
#define OPMUX_BACKEND_FORK_LOST 4u   /* once used, refused in a forked child */
#define OPMUX_BACKEND_STREAM 8u      /* completion: run() enqueues; else run() has finished */

/* Memory that the host cannot read itself. Every function but `count` may block. */
typedef struct opmux_device_table {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*count)(void* user_data);
  int32_t (*alloc)(void* user_data, opmux_device device, uint64_t size, uint64_t alignment,
                   void** memory);
  void (*free)(void* user_data, opmux_device device, void* memory);
  /* Copies between two devices, one of which may be the CPU, in the order of the stream. */
  int32_t (*copy)(void* user_data, void* to, opmux_device to_device, const void* from,
                  opmux_device from_device, uint64_t size, void* stream);
  int32_t (*synchronize)(void* user_data, opmux_device device, void* stream);
  int32_t (*stream_create)(void* user_data, opmux_device device, void** stream);
  void (*stream_destroy)(void* user_data, opmux_device device, void* stream);
  /* Optional, for timing: record an event on a stream, later ask for the time between two. */
  int32_t (*event_record)(void* user_data, opmux_device device, void* stream, void** event);
  int32_t (*event_elapsed_ns)(void* user_data, void* start, void* stop, uint64_t* nanoseconds);
  void (*event_destroy)(void* user_data, void* event);
} opmux_device_table;

typedef struct opmux_backend {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_BACKEND_* */
  opmux_str name; /* the provider in every id; unique in a process */
  int32_t kind;   /* OPMUX_KIND_* */
  int32_t device_type;
  opmux_str vendor; /* required for OPMUX_KIND_VENDOR */
  int32_t priority; /* for answering specialization points; negative = the kind's own */
  uint32_t reserved;
  void* user_data;
  /* May be null (always available). OPMUX_OK, or OPMUX_DECLINED with the reason in `why`. Asked
     once, when a decision first needs it. */
  int32_t (*is_available)(void* user_data, opmux_error* why);
  const opmux_impl* impls;
  uint32_t impl_count;
  uint32_t impl_stride;
  const opmux_device_table* device; /* null for memory that the CPU can read */
} opmux_backend;

/* An operator that the plugin brings, named "vendor.name". */
typedef struct opmux_schema_text {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str text;
} opmux_schema_text;

/* An answer to a specialization point: `signature` is like "gemm.tile_n(Device) -> int". */
typedef struct opmux_point {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str signature;
  opmux_str backend; /* the backend on whose behalf it answers */
  void* user_data;
  /* OPMUX_OK with *answer set, or OPMUX_DECLINED for "no answer". A Device travels as I64:
     type | id << 32. */
  int32_t (*answer)(void* user_data, const opmux_arg* args, uint32_t count, opmux_arg* answer);
} opmux_point;

/* What the host offers to a plugin; valid for the life of the process. */
typedef struct opmux_host {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void* user_data;
  opmux_str version;
  /* 1 if the host has a feature that came after its ABI minor was numbered, else 0. */
  int32_t (*has)(void* user_data, opmux_str feature);
  /* level: 0 debug, 1 info, 2 warning, 3 error. */
  void (*log)(void* user_data, int32_t level, opmux_str text);
  /* For completion on a stream: an error found later. */
  void (*report_device_error)(void* user_data, opmux_device device, void* stream, int32_t code);
} opmux_host;

typedef struct opmux_plugin {
  uint32_t struct_size;
  uint16_t abi_major; /* OPMUX_ABI_MAJOR of the header it was built with */
  uint16_t abi_minor;
  opmux_str name;
  opmux_str version;
  opmux_str vendor;
  opmux_str build_id; /* changes whenever the code does; empty = the library's own */
  const opmux_backend* backends;
  uint32_t backend_count;
  uint32_t backend_stride;
  const opmux_schema_text* operators;
  uint32_t operator_count;
  uint32_t operator_stride;
  const opmux_point* points;
  uint32_t point_count;
  uint32_t point_stride;
  void* user_data;
  int32_t (*init)(void* user_data, const opmux_host* host, opmux_error* error); /* may be null */
  void (*shutdown)(void* user_data);                                            /* may be null */
  int32_t (*self_test)(void* user_data, opmux_error* error);                    /* may be null */
  uint32_t flags;                                                               /* OPMUX_PLUGIN_* */
  uint32_t reserved;
} opmux_plugin;

#define OPMUX_PLUGIN_UNLOADABLE 1u /* its code may be unmapped when nothing refers to it */

/*
 * Fills in `out`, whose struct_size the host has set to its own size: the plugin sets it to the
 * number of bytes that it wrote, at most that. Must be callable in a throw-away process: no device
 * initialisation, no threads, no global state; heavy work belongs to init.
 */
typedef int32_t (*opmux_plugin_query_fn)(const opmux_host* host, opmux_plugin* out);

#if defined(__GNUC__)
#define OPMUX_EXPORT __attribute__((visibility("default")))
#else
#define OPMUX_EXPORT
#endif

#define OPMUX_PLUGIN_SYMBOL "opmux_plugin_query_v1"

#ifdef __cplusplus
#define OPMUX_C_LINKAGE extern "C"
#else
#define OPMUX_C_LINKAGE extern
#endif

/* Head of the query function: the one exported symbol of a shared library or, with
   OPMUX_STATIC_PLUGIN defined, one of its own per plugin for static linking. */
#ifdef OPMUX_STATIC_PLUGIN
#define OPMUX_PLUGIN_ENTRY(name)                                                                   \
  OPMUX_C_LINKAGE int32_t opmux_plugin_query_v1_##name(const opmux_host* host, opmux_plugin* out); \
  int32_t opmux_plugin_query_v1_##name(const opmux_host* host, opmux_plugin* out)
#else
#define OPMUX_PLUGIN_ENTRY(name)                                                     \
  OPMUX_C_LINKAGE OPMUX_EXPORT int32_t opmux_plugin_query_v1(const opmux_host* host, \
                                                             opmux_plugin* out);     \
  OPMUX_EXPORT int32_t opmux_plugin_query_v1(const opmux_host* host, opmux_plugin* out)
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_ABI_H */
