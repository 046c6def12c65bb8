/*
 * The contract between opmux and a plugin. A C11 header without dependencies; nothing to link. It
 * includes its part <opmux/abi/values.h>, the frozen value types.
 *
 * A plugin exports one function, opmux_plugin_query_v1 (see OPMUX_PLUGIN_ENTRY), which fills in an
 * opmux_plugin: its backends with implementations of operators, operators that it defines, and
 * answers to specialization points. In-tree backends use this header and no other.
 *
 * docs/for_kernel_vendors.md begins with a complete plugin of one C file: a kernel, its
 * capabilities, its backend and the query function. `opmux plugin new` writes such a project. The
 * smallest plugin defines an operator that others implement:
 *
 *    OPMUX_PLUGIN_ENTRY(acme) {
 *      static const opmux_schema_text schemas[] = {
 *          {sizeof(opmux_schema_text), 0, OPMUX_STR("acme.twice(out Tensor y[N], Tensor x[N])")}};
 *      const opmux_plugin plugin = {
 *          .struct_size = sizeof plugin, .abi_major = OPMUX_ABI_MAJOR,
 *          .abi_minor = OPMUX_ABI_MINOR, .name = OPMUX_STR("acme"), .version = OPMUX_STR("1.0"),
 *          .operators = schemas, .operator_count = 1, .operator_stride = sizeof schemas[0]};
 *      (void)host;
 *      if (out->struct_size < sizeof plugin) return OPMUX_INVALID_ARGUMENT;
 *      *out = plugin;
 *      return OPMUX_OK;
 *    }
 *
 * Rules that hold everywhere:
 * - A struct starts with `uint32_t struct_size`, which its author sets to sizeof. Fields are only
 *   ever appended; a reader copies the smaller of both sizes and sees zero in missing fields.
 *   Arrays of structs carry their stride. opmux_str, opmux_dtype, opmux_device, opmux_tensor and
 *   opmux_arg are frozen and carry no size.
 * - Pointers are borrowed for the call unless a comment says otherwise. Descriptors (opmux_plugin
 *   and everything it points to) must live as long as the library is loaded.
 * - Functions return an outcome (OPMUX_OK ...) and write details into the caller's opmux_error. No
 *   exception, no longjmp and no ownership crosses this boundary.
 * - Reserved fields are zero. A null function pointer means "not provided" where that is allowed.
 * - Functions may be called from any thread, several at a time, unless a comment says otherwise.
 */
#ifndef OPMUX_ABI_H
#define OPMUX_ABI_H

#include <stddef.h>
#include <stdint.h>

#include <opmux/abi/values.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this contract. A host refuses a plugin of another major version ("plugin.abi_major");
   a larger minor version only adds fields, flags and constants. */
#define OPMUX_ABI_MAJOR 1
#define OPMUX_ABI_MINOR 2

/* Most dimensions of a tensor, and most arguments of an operator. */
#define OPMUX_MAX_RANK 8
#define OPMUX_MAX_ARGS 24

/* ---- Outcomes: how a function ended, which determines what the host does next --------------- */

#define OPMUX_OK 0               /* success */
#define OPMUX_DECLINED 1         /* refused before writing anything; the next candidate runs */
#define OPMUX_INVALID_ARGUMENT 2 /* the caller's mistake; returned to the caller */
#define OPMUX_FAILED 3           /* failed; outputs may be corrupted */
#define OPMUX_RESOURCE 4         /* out of memory or workspace */
#define OPMUX_DEVICE_LOST 5      /* the device is unusable for the rest of this process */

/* ---- Errors --------------------------------------------------------------------------------- */

/* Destination for the details of a failure, owned by the caller. A function that fails sets
   `outcome`, may set `code`, writes at most text_capacity bytes to `text` and their number to
   text_size. `text` may be null, and so may a pointer to this struct. */
typedef struct opmux_error {
  uint32_t struct_size;
  int32_t outcome; /* the outcome that the function returns */
  char* text;      /* room of the caller; no closing zero is needed */
  size_t text_capacity;
  size_t text_size;
  opmux_str code; /* stable: "verify.head_size", with static lifetime; may be empty */
} opmux_error;

/* ---- Facts: properties of a call that a verifier may read ----------------------------------- */

/* Kinds of facts. `name` is that of an argument or dimension, or empty. Values are int64_t. */
#define OPMUX_FACT_DTYPE 1      /* of a tensor: code | bits << 8 | lanes << 16 */
#define OPMUX_FACT_RANK 2       /* of a tensor: number of dimensions */
#define OPMUX_FACT_PRESENT 3    /* of an argument: 0 or 1 */
#define OPMUX_FACT_DIM 4        /* a named dimension, or "rows", the product of the leading ones */
#define OPMUX_FACT_CONTIGUOUS 5 /* of a tensor: 0 or 1 */
#define OPMUX_FACT_ALIGNMENT 6 /* of a tensor: largest power of two dividing its address, to 4096 */
#define OPMUX_FACT_LAYOUT 7    /* of a tensor: its dimensions by falling stride, 4 bits each */
#define OPMUX_FACT_SCALAR 8    /* an int, bool or enum argument; a float as its bits */
#define OPMUX_FACT_DEVICE 9    /* of a tensor: type | id << 16 */
#define OPMUX_FACT_AMBIENT 10  /* 0 or 1: "grad", "capturing", "deterministic", "training" ... */
#define OPMUX_FACT_TAG 11      /* tag of the call, 0 = none */
#define OPMUX_FACT_OUTSIDE 12 /* get(): `name` was read besides facts, so do not cache the answer */

/* Names one fact, in the `verify_reads`, `plan_reads` and `create_reads` of an implementation. */
typedef struct opmux_fact {
  uint32_t struct_size;
  uint32_t kind;  /* OPMUX_FACT_* */
  opmux_str name; /* argument, dimension or ambient fact */
} opmux_fact;

/* Facts of a call, for a verifier: those that its `verify_reads` lists; others read as absent. With
   OPMUX_IMPL_VERIFY_RECORDED all are visible, and the host adds those that are read to the list. */
typedef struct opmux_facts {
  uint32_t struct_size;
  uint32_t reserved;
  const void* context; /* first argument of get */
  /* Writes the value and returns 1, or returns 0 if the fact is absent or not visible. */
  int32_t (*get)(const void* context, uint32_t kind, opmux_str name, int64_t* value);
} opmux_facts;

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Runs body(context, i) for each i in [0, count) on the threads of the pool, in any order, and
   returns when all have run. `body` must not throw. */
typedef void (*opmux_parallel_for_fn)(void* pool, int64_t count, void* context,
                                      void (*body)(void* context, int64_t index));

/* One call, as plan(), workspace() and run() receive it. Everything is borrowed until the function
   returns. Arguments are checked against the schema and the capabilities of the implementation. */
typedef struct opmux_call {
  uint32_t struct_size;
  uint32_t arg_count;    /* arguments of the schema; those left out hold their defaults */
  uint32_t arg_stride;   /* bytes from one opmux_arg to the next */
  int32_t max_threads;   /* 1 = stay on this thread */
  const opmux_arg* args; /* in the order of the schema */
  opmux_device device;   /* device of the tensors */
  void* stream;          /* queue of the device; null = its default stream */
  void* workspace;       /* of the size that workspace() returned, aligned to 64 bytes */
  uint64_t workspace_size;
  void* prepared;                     /* result of plan() for arguments like these, or null */
  opmux_error* error;                 /* may be null */
  uint64_t tag;                       /* of the call site, 0 = none */
  opmux_parallel_for_fn parallel_for; /* may be null: then use a loop */
  void* pool;                         /* first argument of parallel_for */
  void* instance; /* result of create(), for calls with a packed constant; else null */
} opmux_call;

/* ---- Capabilities: data, so that the host can check and explain them ------------------------- */

/* Relations of a dimension rule. */
#define OPMUX_AT_LEAST 1
#define OPMUX_AT_MOST 2
#define OPMUX_MULTIPLE_OF 3
#define OPMUX_EQUALS 4

/* A condition on a named dimension, or on "rows", the product of the leading dimensions. */
typedef struct opmux_dim_rule {
  uint32_t struct_size;
  opmux_str dim;     /* name in the schema */
  uint32_t relation; /* OPMUX_AT_LEAST ... */
  int64_t value;     /* right side of the relation */
} opmux_dim_rule;

/* Allowed element types of an argument. An empty name means every tensor argument that no other
   rule names. */
typedef struct opmux_dtype_rule {
  uint32_t struct_size;
  uint32_t count; /* number of dtypes */
  opmux_str arg;
  const opmux_dtype* dtypes;
} opmux_dtype_rule;

/* Flags of a tensor rule. */
#define OPMUX_TENSOR_CONTIGUOUS 1u /* row-major, no gaps */
#define OPMUX_TENSOR_ABSENT 2u     /* this optional argument is not supported: it must be absent */
#define OPMUX_TENSOR_PRESENT 4u    /* this optional argument must be given */
#define OPMUX_TENSOR_INNER_CONTIGUOUS 8u /* last dimension has stride 1 */

/* A condition on one tensor argument; an empty name means every tensor argument. */
typedef struct opmux_tensor_rule {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_TENSOR_* */
  opmux_str arg;
  int32_t min_rank;   /* fewest dimensions */
  int32_t max_rank;   /* most dimensions; 0 = no limit */
  uint32_t alignment; /* of the first element: bytes, power of two up to 4096, 0 = any */
  uint32_t reserved;
  opmux_str layout; /* dimensions by falling stride, as digits ("0213"); empty = any */
} opmux_tensor_rule;

/* Values of a scalar argument that are supported. A scalar without a rule must be supported with
   every value. */
typedef struct opmux_scalar_rule {
  uint32_t struct_size;
  uint32_t count;
  opmux_str arg;
  const int64_t* values; /* int, bool 0/1, enum position */
} opmux_scalar_rule;

/* Capabilities of an implementation: the calls that it accepts, whether it is good at them or not
   (see opmux_hint). A field that is zero restricts nothing. The host refuses other calls with a
   reason such as "caps.dtype", and warm calls pay nothing for the check. */
typedef struct opmux_caps {
  uint32_t struct_size;
  uint32_t flags;      /* OPMUX_CAPS_* */
  int32_t device_type; /* 0 = the backend's */
  uint32_t reserved;
  opmux_str cpu_features; /* all needed, comma separated, as in /proc/cpuinfo: "avx2,fma" */
  opmux_str
      min_arch; /* range of device architectures, as numbers with dots; empty = open. Numbers */
  opmux_str max_arch; /* that are missing at the end are 0. Without an architecture: refused */
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

#define OPMUX_CAPS_INFERENCE_ONLY 1u /* refused while the ambient fact `grad` is on */

/* ---- Implementations ------------------------------------------------------------------------- */

/* Promises and properties of an implementation. A promise makes it a candidate where that is
   required, so it must hold for every call. */
#define OPMUX_IMPL_SERIAL 1u /* not re-entrant: each thread gets a separate prepared state */
#define OPMUX_IMPL_ATOMIC_OUTPUTS 2u   /* writes nothing unless the outcome is OPMUX_OK */
#define OPMUX_IMPL_DETERMINISTIC 4u    /* same inputs, same bits */
#define OPMUX_IMPL_BATCH_INVARIANT 8u  /* a row's result does not depend on the other rows */
#define OPMUX_IMPL_CAPTURE_SAFE 16u    /* may run while a graph is captured */
#define OPMUX_IMPL_VERIFY_RECORDED 32u /* verify() sees every fact; see opmux_facts */

/* A hint: the priority of an implementation for calls in which a dimension is in a range, in place
   of opmux_impl.priority. Capabilities say what it can do, hints what it is good at. A hint refuses
   nothing, and policies rank above it. */
typedef struct opmux_hint {
  uint32_t struct_size;
  int32_t priority; /* 0-1000 */
  opmux_str dim;    /* name in the schema, or "rows", the product of the leading dimensions */
  int64_t least;
  int64_t most; /* both ends belong to the range; 0 = no limit */
} opmux_hint;

/* Receives the attributes that describe() reports. */
typedef struct opmux_node_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* first argument of attribute */
  /* The host reads "packed_bytes", the size of an instance in decimal. Texts are copied. */
  void (*attribute)(void* context, opmux_str key, opmux_str value);
} opmux_node_sink;

/* One implementation of one operator; its id is "operator/backend.variant". Life cycle, stateless:
   verify, plan, run ..., plan_free. Life cycle with an instance: create, load, describe, plan,
   run ..., plan_free, destroy. */
typedef struct opmux_impl {
  uint32_t struct_size;
  uint32_t flags;    /* OPMUX_IMPL_* */
  opmux_str op;      /* operator: "rms_norm", or "vendor.name" */
  opmux_str variant; /* last part of the id, unique in the backend */
  /* Identifies the arguments this was written for: the hash of the schema text, or 0 with
     `signature` set. */
  uint64_t prefix_hash;
  opmux_str signature; /* the schema text this was written against */
  int32_t priority;    /* 0-1000; negative = default of the kind (150, 100, 50) */
  uint32_t reserved;
  const opmux_caps* caps; /* null = no restriction */
  void* user_data;        /* first argument of every function below */

  /* May be null. Checks what capabilities cannot express: accepts (OPMUX_OK) or refuses
     (OPMUX_DECLINED) with code and text in `why`. It must be pure and fast, because the answer is
     cached for all calls with equal facts. Any other outcome counts as a broken verifier, which
     refuses too. */
  int32_t (*verify)(void* user_data, const opmux_facts* facts, opmux_error* why);
  const opmux_fact* verify_reads; /* facts it reads; null = scalars, dtypes, ranks, device */
  uint32_t verify_reads_count;
  uint32_t verify_reads_stride;

  /* May be null. Prepares state that run() needs for arguments and max_threads like these, such as
     a compiled primitive. The object in *prepared belongs to the host until it calls plan_free; it
     is shared between threads unless OPMUX_IMPL_SERIAL is set. It is reused for calls with equal
     facts, so it may depend on shapes, strides, alignments, scalars, the tag, and whether there is
     an instance, but not on the contents of tensors and instances, addresses or the stream. */
  int32_t (*plan)(void* user_data, const opmux_call* call, void** prepared);
  /* Destroys a prepared state once no call uses it. Null if there is nothing to free. */
  void (*plan_free)(void* user_data, void* prepared);
  const opmux_fact* plan_reads; /* facts that the state depends on; null = all of these */
  uint32_t plan_reads_count;
  uint32_t plan_reads_stride;

  /* May be null. Bytes of scratch memory that run() needs for these arguments. It may depend on
     what plan() may depend on, on the prepared state and on the instance. The answer is reused
     until one of these changes, so it must be fast. */
  uint64_t (*workspace)(void* user_data, const opmux_call* call);

  /* Never null. Computes the outputs, or enqueues that on call->stream for OPMUX_BACKEND_STREAM.
     Must not write outside of outputs and workspace, nor keep pointers after it returned. */
  int32_t (*run)(void* user_data, const opmux_call* call);

  /* All four are null, or at least create and destroy are set. Makes an instance for one constant,
     or for one opmux_instance of the program; *instance belongs to the host until destroy. Without
     a `const` tensor run() is only called through the latter ("caps.instance"). `options`: the
     arguments of the call, or those that the opmux_instance fixes, without tensors and scalars that
     create_reads does not list; calls with equal ones share it. The 17th replaces the oldest. */
  int32_t (*create)(void* user_data, const opmux_arg* options, uint32_t count, void** instance,
                    opmux_error* error);
  /* Passes the constant, or the tensors that an opmux_instance fixes, to the instance. */
  int32_t (*load)(void* user_data, void* instance, const opmux_arg* params, uint32_t count,
                  opmux_error* error);
  /* Frees the instance and its copy; no call uses it any more. */
  void (*destroy)(void* user_data, void* instance);
  /* May be null. Reports attributes of an instance; see opmux_node_sink. */
  int32_t (*describe)(void* user_data, void* instance, const opmux_node_sink* sink);
  /* Facts of kind OPMUX_FACT_SCALAR that create() gets; null = all scalars, strings and lists. The
     constant is packed again for each value of a scalar that is not left out. */
  const opmux_fact* create_reads;
  uint32_t create_reads_count;
  uint32_t create_reads_stride;
  const opmux_hint* hints; /* the first one whose range has the call's dimension counts */
  uint32_t hint_count;
  uint32_t hint_stride;
} opmux_impl;

/* ---- Backends and plugins -------------------------------------------------------------------- */

/* Kinds of backends, with default priorities 150, 100 and 50. */
#define OPMUX_KIND_DEFAULT 1
#define OPMUX_KIND_VENDOR 2
#define OPMUX_KIND_REFERENCE 3

/* Flags of a backend. */
#define OPMUX_BACKEND_DEFAULT_OFF 1u /* used only if it is switched on */
#define OPMUX_BACKEND_FORK_REINIT 2u /* is_available is called again in a forked child */
#define OPMUX_BACKEND_FORK_LOST 4u   /* once used, refused in a forked child */
#define OPMUX_BACKEND_STREAM 8u      /* run() enqueues and returns; without it run() has finished */

/* Memory and queues of a device whose memory the host cannot access directly. Every function except
   `count` may block. A null stream is the default stream of the device. */
typedef struct opmux_device_table {
  uint32_t struct_size;
  uint32_t reserved;
  /* Number of devices; their ids are 0, 1 ... */
  int32_t (*count)(void* user_data);
  /* Allocates memory; OPMUX_RESOURCE if there is not enough. *memory becomes opmux_tensor.data. */
  int32_t (*alloc)(void* user_data, opmux_device device, uint64_t size, uint64_t alignment,
                   void** memory);
  /* Frees memory from alloc. Work that uses it has finished. */
  void (*free)(void* user_data, opmux_device device, void* memory);
  /* Copies between two devices, one of which may be the CPU, in the order of the stream. May return
     before the copy is done: the host keeps CPU memory valid until it synchronizes. */
  int32_t (*copy)(void* user_data, void* to, opmux_device to_device, const void* from,
                  opmux_device from_device, uint64_t size, void* stream);
  /* Waits for the stream; returns the first outcome that was not ok since the last time. */
  int32_t (*synchronize)(void* user_data, opmux_device device, void* stream);
  /* Create a queue, and destroy it after waiting for the work in it. */
  int32_t (*stream_create)(void* user_data, opmux_device device, void** stream);
  void (*stream_destroy)(void* user_data, opmux_device device, void* stream);
  /* Optional, for timing: records an event on a stream; later the time between two can be read,
     which waits for both. The host times calls on streams by them if a policy limits their time. */
  int32_t (*event_record)(void* user_data, opmux_device device, void* stream, void** event);
  int32_t (*event_elapsed_ns)(void* user_data, void* start, void* stop, uint64_t* nanoseconds);
  void (*event_destroy)(void* user_data, void* event);
} opmux_device_table;

/* A set of implementations of one provider, with one answer to "can it work on this machine?". */
typedef struct opmux_backend {
  uint32_t struct_size;
  uint32_t flags;      /* OPMUX_BACKEND_* */
  opmux_str name;      /* the provider in every id; unique in a process */
  int32_t kind;        /* OPMUX_KIND_* */
  int32_t device_type; /* OPMUX_DEVICE_* of the memory that it works on */
  opmux_str vendor;    /* required for OPMUX_KIND_VENDOR */
  int32_t priority;    /* order of answers to points; negative = default of the kind */
  uint32_t reserved;
  void* user_data; /* first argument of is_available and the device table */
  /* May be null (always available). Returns OPMUX_OK, or OPMUX_DECLINED with the reason in `why`.
     Called once, when first needed; must answer within 30 s and not call the runtime. */
  int32_t (*is_available)(void* user_data, opmux_error* why);
  const opmux_impl* impls;
  uint32_t impl_count;
  uint32_t impl_stride;
  const opmux_device_table* device; /* null for memory that the CPU can read */
  /* May be null. Writes the architecture of a device by its number, as numbers with dots between
     them ("9.0", with static lifetime), or returns OPMUX_DECLINED if it has none. min_arch and
     max_arch of capabilities are compared with it. Called once per device, when available. */
  int32_t (*architecture)(void* user_data, int32_t device, opmux_str* architecture);
  /* Name of device_type if it is OPMUX_DEVICE_VENDOR or above: "acme", for policies, explain and
     commands. All backends of a process that use the type give it the same name or none. */
  opmux_str device_name;
} opmux_backend;

/* An operator that the plugin defines, named "vendor.name". */
typedef struct opmux_schema_text {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str text; /* "acme.twice(out Tensor y[N], Tensor x[N])" */
} opmux_schema_text;

/* An answer to a specialization point, a typed question in shared code. */
typedef struct opmux_point {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str signature; /* "gemm.tile_n(Device) -> int" */
  opmux_str backend;   /* backend of this plugin that answers */
  void* user_data;
  /* Returns OPMUX_OK with *answer set, or OPMUX_DECLINED for "no answer". A Device is passed as
     I64: type | id << 32. Text in the answer must stay valid until the next call on this thread. */
  int32_t (*answer)(void* user_data, const opmux_arg* args, uint32_t count, opmux_arg* answer);
} opmux_point;

/* Services of the host for a plugin; valid for the life of the process. */
typedef struct opmux_host {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void* user_data;   /* first argument of every function */
  opmux_str version; /* of opmux: "0.1.0" */
  /* Returns 1 if the host has a feature that is newer than its ABI minor version, else 0. */
  int32_t (*has)(void* user_data, opmux_str feature);
  /* Logs an event "plugin.log". level: 0 debug, 1 info, 2 warning, 3 error. */
  void (*log)(void* user_data, int32_t level, opmux_str text);
  /* For OPMUX_BACKEND_STREAM: reports an error that was found after run() had returned, with the
     driver's number and the stream as the call named it. */
  void (*report_device_error)(void* user_data, opmux_device device, void* stream, int32_t code);
} opmux_host;

/* Description of a plugin. Everything it points to must live as long as the library is loaded. */
typedef struct opmux_plugin {
  uint32_t struct_size;
  uint16_t abi_major; /* OPMUX_ABI_MAJOR of the header it was built with */
  uint16_t abi_minor; /* OPMUX_ABI_MINOR */
  opmux_str name;     /* identifies the plugin in lists and messages */
  opmux_str version;
  opmux_str vendor;
  opmux_str build_id; /* changes whenever the code does; empty = the library's build id */
  const opmux_backend* backends;
  uint32_t backend_count;
  uint32_t backend_stride;
  const opmux_schema_text* operators;
  uint32_t operator_count;
  uint32_t operator_stride;
  const opmux_point* points;
  uint32_t point_count;
  uint32_t point_stride;
  void* user_data; /* first argument of the functions below */
  /* init starts work that the query function must not do (devices, threads); a failure refuses the
     plugin ("plugin.init"). shutdown ends it when no runtime uses the plugin any more. self_test is
     run by the probe. Each may be null. */
  int32_t (*init)(void* user_data, const opmux_host* host, opmux_error* error);
  void (*shutdown)(void* user_data);
  int32_t (*self_test)(void* user_data, opmux_error* error);
  uint32_t flags; /* OPMUX_PLUGIN_* */
  uint32_t reserved;
} opmux_plugin;

#define OPMUX_PLUGIN_UNLOADABLE 1u /* the library may be unmapped when nothing refers to it */

/* Fills in `out`. The host sets out->struct_size to the size that it knows; the plugin writes at
   most that many bytes and sets struct_size to the number written. The function must be harmless,
   because it is first called in a throw-away process: no device initialisation, no threads, no
   global state. */
typedef int32_t (*opmux_plugin_query_fn)(const opmux_host* host, opmux_plugin* out);

/* Marks the exported function; build the plugin with hidden visibility. */
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

/* Head of the query function: OPMUX_PLUGIN_ENTRY(acme) { ... } with parameters `host` and `out`. It
   is the one exported symbol of a shared library. With OPMUX_STATIC_PLUGIN defined the symbol
   contains the name, so that several plugins can be linked statically. */
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
