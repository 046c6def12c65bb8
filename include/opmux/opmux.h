/*
 * opmux for programs written in C: the runtime of <opmux/opmux.hpp> with the structs of abi.h.
 *
 *     opmux_runtime* runtime;
 *     opmux_operator* rms_norm;
 *     opmux_error error = OPMUX_ERROR_INIT;
 *     if (opmux_runtime_create(NULL, &runtime, &error) ||
 *         opmux_operator_get(runtime, opmux_str_of("rms_norm"), &rms_norm, &error))
 *       return fail(&error);
 *     opmux_arg args[] = {opmux_arg_tensor(&y), opmux_arg_tensor(&x), opmux_arg_tensor(&weight)};
 *     int32_t outcome = opmux_call_operator(rms_norm, args, 3, &error);
 *
 * Rules that hold for every function:
 *  - It returns OPMUX_OK (0), another outcome of abi.h, or a code below. On failure nothing else is
 *    written, the outputs of an operator that ran apart, and `error`, which may be null, says why.
 *  - Pointers that are passed in are borrowed for the call. A handle that is written to an out
 *    pointer belongs to the caller where a function to give it back exists; it must be given back
 *    before its runtime is destroyed.
 *  - It may be called from any thread, several at a time, unless its comment says otherwise.
 *  - Structs carry struct_size as in abi.h: set it to sizeof and everything that you do not use to
 *    zero. Fields are only ever appended.
 *  - No exception leaves it, and it never prints, aborts or exits.
 */
#ifndef OPMUX_OPMUX_H
#define OPMUX_OPMUX_H

#include <stddef.h>
#include <stdint.h>

#include <opmux/abi.h>
#include <opmux/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Codes, besides the outcomes of abi.h ---------------------------------------------------- */

#define OPMUX_NOT_FOUND 16
#define OPMUX_ALREADY_EXISTS 17
#define OPMUX_NO_CANDIDATE 18 /* policy, capabilities or health left nothing to run */
#define OPMUX_OUTSIDE_PLAN 19 /* the arguments do not fit the bound plan */
#define OPMUX_REVOKED 20      /* the bound plan may not run any more */
#define OPMUX_FROZEN 21       /* the runtime takes no more changes */
#define OPMUX_UNSUPPORTED 22
#define OPMUX_UNAVAILABLE 23

/* The version of the library that runs, as OPMUX_VERSION is that of this header. */
OPMUX_EXPORT opmux_str opmux_version(void);
/* The word for an outcome or code, as it stands in logs and JSON: "invalid_argument". */
OPMUX_EXPORT opmux_str opmux_code_name(int32_t code);

/* ---- Errors ---------------------------------------------------------------------------------- */

/*
 * An error to pass along; one per thread. `text` is then a zero-terminated sentence, cut to its
 * room, `code` a stable word such as "schema.dim_mismatch" that lives as long as the process.
 * In C, OPMUX_ERROR_INIT brings room for 511 bytes that lives as long as the enclosing block.
 * C++ has no such literal: there it keeps outcome and code only, and opmux_error_of adds the text.
 */
#ifdef __cplusplus
#define OPMUX_ERROR_INIT {sizeof(opmux_error), OPMUX_OK, NULL, 0, 0, {NULL, 0}}
#else
#define OPMUX_ERROR_INIT {sizeof(opmux_error), OPMUX_OK, (char[512]){0}, 512, 0, {NULL, 0}}
#endif

/* An error whose text goes to the caller's buffer. */
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

/* An optional argument, or an output to be inferred by opmux_explain, that is left out. */
static inline opmux_arg opmux_arg_none(void) {
  opmux_arg arg;
  arg.tag = OPMUX_ARG_NONE;
  arg.flags = 0;
  arg.value.list.size = 0;
  arg.value.i64 = 0;
  arg.reserved = 0;
  return arg;
}

/* Null strides mean row-major; a null tensor is one that is left out. */
static inline opmux_arg opmux_arg_tensor(const opmux_tensor* tensor) {
  opmux_arg arg = opmux_arg_none();
  if (tensor) {
    arg.tag = OPMUX_ARG_TENSOR;
    arg.value.tensor = tensor;
  }
  return arg;
}

static inline opmux_arg opmux_arg_f64(double value) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_F64;
  arg.value.f64 = value;
  return arg;
}

static inline opmux_arg opmux_arg_i64(int64_t value) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_I64;
  arg.value.i64 = value;
  return arg;
}

static inline opmux_arg opmux_arg_bool(int value) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_BOOL;
  arg.value.i64 = value != 0;
  return arg;
}

/* The position of a word in the schema's enum; opmux_arg_str passes the word itself. */
static inline opmux_arg opmux_arg_enum(int64_t position) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_ENUM;
  arg.value.i64 = position;
  return arg;
}

static inline opmux_arg opmux_arg_str(opmux_str text) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_STR;
  arg.value.list.data = text.data;
  arg.value.list.size = text.size;
  return arg;
}

static inline opmux_arg opmux_arg_i64_list(const int64_t* items, size_t count) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_I64_LIST;
  arg.value.list.data = items;
  arg.value.list.size = count;
  return arg;
}

static inline opmux_arg opmux_arg_tensor_list(const opmux_tensor* const* items, size_t count) {
  opmux_arg arg = opmux_arg_none();
  arg.tag = OPMUX_ARG_TENSOR_LIST;
  arg.value.list.data = (const void*)items;
  arg.value.list.size = count;
  return arg;
}

/* ---- Policy: what a program wants of selection ----------------------------------------------- */

typedef struct opmux_str_list {
  const opmux_str* items;
  size_t count;
} opmux_str_list;

/* Exclusive order of the implementations of one operator. */
typedef struct opmux_op_order {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str op;
  opmux_str_list order;
} opmux_op_order;

#define OPMUX_STRICT_UNSET 0 /* whatever else says */
#define OPMUX_STRICT_ON 1
#define OPMUX_STRICT_OFF 2

/* Lists hold tokens: `default`, `vendor`, `reference`, `vendor:NAME`, `impl:ID`, or a glob with
   `/`. An empty list says nothing. */
typedef struct opmux_policy {
  uint32_t struct_size;
  uint32_t strict; /* OPMUX_STRICT_* */
  opmux_str_list prefer, require, deny, allow;
  opmux_str_list allow_vendors,
      deny_vendors; /* names; they touch only implementations of vendors */
  const opmux_op_order* per_op;
  uint32_t per_op_count;
  uint32_t per_op_stride;
  /* What may be done to tensors that an implementation does not take as they are: "contiguous",
     "widen", or "none" alone. */
  opmux_str_list transforms;
} opmux_policy;

/* ---- Runtime --------------------------------------------------------------------------------- */

/* Operators, implementations and policy, and the engine that routes calls. */
typedef struct opmux_runtime opmux_runtime;

/* Something worth telling a person; each distinct one is told once. Its texts are borrowed. */
typedef struct opmux_event {
  uint32_t struct_size;
  int32_t level;  /* 0 debug, 1 info, 2 warning, 3 error */
  opmux_str code; /* stable: "dispatch.chosen", "call.fell_back" */
  opmux_str op;
  opmux_str impl;
  opmux_str text; /* one sentence */
} opmux_event;

typedef struct opmux_variable {
  opmux_str name;
  opmux_str value;
} opmux_variable;

/* What a plugin's file must prove, besides lying where only root and this user can write. */
#define OPMUX_TRUST_ANY 0    /* nothing else */
#define OPMUX_TRUST_DIGEST 1 /* its SHA-256 is one of `digests` */
#define OPMUX_TRUST_SIGNED 2 /* a key of `keyring` signed it */

#define OPMUX_PLUGINS_SEALED 1u   /* load copies in sealed memory instead of files */
#define OPMUX_PLUGINS_NO_PROBE 2u /* load at once, without a trial in a process */

/* Where plugins are looked for and what they must prove. */
typedef struct opmux_plugin_options {
  uint32_t struct_size;
  uint32_t trust; /* OPMUX_TRUST_* */
  uint32_t flags; /* OPMUX_PLUGINS_* */
  uint32_t reserved;
  uint64_t max_bytes; /* a larger file is not read; 0: 1 GiB */
  /* Absolute folders, besides the installation's backends and OPMUX_PLUGIN_PATH. */
  opmux_str_list folders;
  opmux_str_list digests; /* 64 hexadecimal digits each */
  opmux_str keyring;      /* an absolute folder with public keys */
} opmux_plugin_options;

#define OPMUX_SOURCE_NO_LAST_KNOWN_GOOD 1u /* do not start with it if the files are broken */
#define OPMUX_SOURCE_NO_THREAD 2u          /* the program calls opmux_tick */
#define OPMUX_SOURCE_NO_FREEZE 8u          /* mode static waits for opmux_runtime_freeze */
#define OPMUX_SOURCE_LOOK_AT_FILES 4u /* in intervals, even where the kernel tells of changes */

/* Where policy comes from besides code. An empty text means what the environment says. */
typedef struct opmux_source_options {
  uint32_t struct_size;
  uint32_t flags;     /* OPMUX_SOURCE_* */
  opmux_str mode;     /* "static", "dynamic", "config", "hot_reload" or "auto" */
  opmux_str config;   /* a policy file, or a folder with them */
  opmux_str platform; /* a policy file of the machine, or the name of one that was installed */
  opmux_str lockfile; /* of mode static; else OPMUX_LOCKFILE, or opmux.lock beside `config` */
} opmux_source_options;

/* What is kept on disk about the ends of processes. */
#define OPMUX_CRASH_JOURNAL_OFF 0u
#define OPMUX_CRASH_JOURNAL_ON 1u /* what runs: who may have had a process killed */
#define OPMUX_CRASH_JOURNAL_WITH_HANDLER \
  2u /* and who faults, by a handler that calls those before */

/* What a runtime keeps beyond the life of its process, and where. */
typedef struct opmux_state_options {
  uint32_t struct_size;
  uint32_t crash_journal; /* OPMUX_CRASH_JOURNAL_* */
  opmux_str folder;       /* instead of OPMUX_STATE_DIR; empty: what the environment says */
  uint32_t state_page;    /* 1: keep one, <opmux/state_page.h>; 0: what OPMUX_STATE_PAGE says */
  uint32_t reserved;
} opmux_state_options;

#define OPMUX_OPTION_NO_BACKENDS 1u /* do not load the installation's; the reference stays */

typedef struct opmux_options {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_OPTION_* */
  /* Receives events from any thread; null: nothing is told unless OPMUX_LOG is set. */
  void (*on_event)(void* context, const opmux_event* event);
  void* event_context;
  /* Variables to use instead of the process's OPMUX_*; null: the process's. A pointer with count 0
     is an empty environment. */
  const opmux_variable* environment;
  size_t environment_count;
  /* Where else plugins are looked for, and what they must prove; may be null. */
  const opmux_plugin_options* plugins;
  /* Policy in code from the start; may be null. */
  const opmux_policy* policy;
  /* Policy files and modes; may be null. */
  const opmux_source_options* sources;
  /* Folder for state, and the crash journal in it; may be null. */
  const opmux_state_options* state;
  const struct opmux_record_options* record; /* <opmux/replay.h>; may be null */
} opmux_options;

/* Reads the environment, registers the standard operators with their reference, loads backends and
   plugins. Null options are the defaults. Fails for a wrong environment variable; a plugin that is
   refused changes nothing. */
OPMUX_EXPORT int32_t opmux_runtime_create(const opmux_options* options, opmux_runtime** runtime,
                                          opmux_error* error);
/* No call may be inside, no plan or registration may be left. Null is allowed. */
OPMUX_EXPORT void opmux_runtime_destroy(opmux_runtime* runtime);
/* Loads the plugins that wait until a decision could use them, so that no call does. */
OPMUX_EXPORT int32_t opmux_runtime_warm_up(opmux_runtime* runtime, opmux_error* error);

/* Policy for the whole runtime, until a scope says otherwise. One that is not valid, or would leave
   an operator without candidates, is refused and changes nothing. */
OPMUX_EXPORT int32_t opmux_policy_set(opmux_runtime* runtime, const opmux_policy* policy,
                                      opmux_error* error);
OPMUX_EXPORT int32_t opmux_policy_reset(opmux_runtime* runtime, opmux_error* error);

/* Puts the text of a policy file in force, in the place of one that was read before. A text that is
   refused changes nothing; `error` names line and column. */
OPMUX_EXPORT int32_t opmux_policy_load(opmux_runtime* runtime, opmux_str text, opmux_str name,
                                       opmux_error* error);
#define OPMUX_CHECK_STRICT_NAMES 1u /* as `names: strict` in the text */

/* What would become of a text as the policy file: odd rules and changed decisions, as the JSON of
   `opmux check --json`, written as opmux_explain writes. Changes nothing. A text that would not
   apply fails as opmux_policy_load does. */
OPMUX_EXPORT int32_t opmux_policy_check(opmux_runtime* runtime, opmux_str text, opmux_str name,
                                        uint32_t flags, char* buffer, size_t capacity, size_t* size,
                                        opmux_error* error);
/* Whether a text is a condition as the rules of policy files have it; `error` names the column if
   not. Names and types are those of operators: opmux_policy_check knows them. */
OPMUX_EXPORT int32_t opmux_condition_check(opmux_str text, opmux_error* error);
/* Goes back to the text before; once more, and the later one is in force again. */
OPMUX_EXPORT int32_t opmux_policy_rollback(opmux_runtime* runtime, opmux_error* error);

/* A text that came into force, or did not. Its texts are borrowed. */
typedef struct opmux_policy_change {
  uint32_t struct_size;
  int32_t outcome; /* OPMUX_OK: it is in force; else nothing changed */
  opmux_str name;
  opmux_str digest;
  opmux_str origin;    /* "file", "last known good", "load_policy", "rollback" */
  opmux_str text;      /* why it was refused */
  uint64_t version;    /* of what is in force now */
  uint64_t generation; /* of the snapshot that it came into force with */
} opmux_policy_change;

/* Tells of each text, from any thread, for as long as the runtime lives. */
OPMUX_EXPORT int32_t opmux_policy_on_change(opmux_runtime* runtime,
                                            void (*tell)(void* context,
                                                         const opmux_policy_change* change),
                                            void* context, opmux_error* error);

/* What a rule says of itself. Its texts are borrowed. */
typedef struct opmux_rule_info {
  opmux_str name, op, reason, owner, expires, where;
} opmux_rule_info;

/* Asks before each text comes into force. What is not OPMUX_OK refuses it; `why` takes the reason.
 */
OPMUX_EXPORT int32_t opmux_policy_add_validator(opmux_runtime* runtime,
                                                int32_t (*judge)(void* context,
                                                                 const opmux_rule_info* rules,
                                                                 size_t count, opmux_error* why),
                                                void* context, opmux_error* error);

/* Does what is due at `now_ns`, on this thread, for programs that want no thread for it
   (OPMUX_SOURCE_NO_THREAD). The time never goes back; its start is the program's own. */
OPMUX_EXPORT int32_t opmux_tick(opmux_runtime* runtime, uint64_t now_ns, opmux_error* error);

/* Switches a backend on or off, apart from whether it is available. */
OPMUX_EXPORT int32_t opmux_backend_enable(opmux_runtime* runtime, opmux_str name, int32_t on,
                                          opmux_error* error);
/* Runs calls on the threads of the OpenMP runtime that the process has (libgomp), on as many as it
 * allows the calling thread. OPMUX_UNSUPPORTED if the process has none; none is ever loaded. */
OPMUX_EXPORT int32_t opmux_runtime_use_openmp(opmux_runtime* runtime, opmux_error* error);

/* A tag for call sites, for opmux_call_options; the same word gives the same tag. */
OPMUX_EXPORT int32_t opmux_tag(opmux_runtime* runtime, opmux_str word, uint32_t* tag,
                               opmux_error* error);

/* ---- Scopes: this thread, from push to pop --------------------------------------------------- */

/* A policy for this thread on top of those around it. An invalid one is refused and not pushed. */
OPMUX_EXPORT int32_t opmux_scope_push(opmux_runtime* runtime, const opmux_policy* policy,
                                      opmux_error* error);

#define OPMUX_AMBIENT_GRAD 1u
#define OPMUX_AMBIENT_CAPTURING 2u
#define OPMUX_AMBIENT_DETERMINISTIC 4u
#define OPMUX_AMBIENT_TRAINING 8u

/* Facts that surround the calls of this thread, in every runtime, instead of those around it. */
OPMUX_EXPORT int32_t opmux_ambient_push(uint32_t facts, opmux_error* error);

/* Ends the innermost of either. Every push needs its pop, on the same thread. */
OPMUX_EXPORT int32_t opmux_scope_pop(opmux_error* error);

/* ---- Operators ------------------------------------------------------------------------------- */

/* An operator; belongs to its runtime and lives as long. */
typedef struct opmux_operator opmux_operator;

/* Fails with OPMUX_NOT_FOUND and the nearest name. */
OPMUX_EXPORT int32_t opmux_operator_get(opmux_runtime* runtime, opmux_str name, opmux_operator** op,
                                        opmux_error* error);

/* Routes a call to the best implementation and runs it. Arguments stand in the order of the schema;
   trailing ones with defaults may be left out. `flags` of arguments are ignored. */
OPMUX_EXPORT int32_t opmux_call_operator(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                         opmux_error* error);

typedef struct opmux_call_options {
  uint32_t struct_size;
  uint32_t tag;
  void* stream;
  int32_t max_threads; /* 1 = stay on this thread, 0 = as many as the runtime has */
  uint32_t reserved;
} opmux_call_options;

/* What one call did; set struct_size before. Texts are zero-terminated and cut to their room. */
typedef struct opmux_report {
  uint32_t struct_size;
  int32_t outcome;
  char implementation[256]; /* that ran last: "rms_norm/simd.avx512"; empty if none did */
  char reason[512];         /* why it fell back; empty otherwise */
  uint8_t fell_back;        /* not the first choice ran, or a preferred one was refused */
  uint8_t cached;           /* the decision was known before this call */
  uint8_t reserved[6];
  uint64_t generation;  /* of the snapshot that decided */
  uint64_t select_ns;   /* checking arguments and choosing */
  uint64_t run_ns;      /* inside implementations, failed attempts included */
  char transforms[256]; /* of tensors, for its sake: "contiguous(x), widen(y, x)" */
} opmux_report;

/* The same with options and a report, each of which may be null. The report is filled in on failure
   too. */
OPMUX_EXPORT int32_t opmux_call_operator_with(opmux_operator* op, const opmux_arg* args,
                                              uint32_t count, const opmux_call_options* options,
                                              opmux_report* report, opmux_error* error);

/* ---- Constants: weights that are packed once ------------------------------------------------- */

/* A tensor with an owner, for `const` arguments. Implementations may keep packed copies of it,
   which belong to this object, are counted, and go when it is destroyed. It borrows the data. */
typedef struct opmux_constant opmux_constant;

OPMUX_EXPORT int32_t opmux_constant_create(opmux_runtime* runtime, const opmux_tensor* tensor,
                                           opmux_constant** constant, opmux_error* error);
/* Null is allowed. No call with it may be running or follow. */
OPMUX_EXPORT void opmux_constant_destroy(opmux_constant* constant);
/* The data are others now: copies are dropped, the next calls make new ones. */
OPMUX_EXPORT int32_t opmux_constant_changed(opmux_constant* constant, opmux_error* error);
/* Bytes of its packed copies. */
OPMUX_EXPORT int32_t opmux_constant_packed_bytes(const opmux_constant* constant, uint64_t* bytes,
                                                 opmux_error* error);
/* The constant as an argument of a call or plan, valid while it lives; null is one that is left
   out. */
OPMUX_EXPORT opmux_arg opmux_arg_constant(const opmux_constant* constant);

/* ---- Plans: decide once, call many times ----------------------------------------------------- */

/* Belongs to the caller, and to one thread at a time. */
typedef struct opmux_plan opmux_plan;

#define OPMUX_PLAN_FOR_CAPTURE 1u /* may run while a graph is captured; staleness is ignored */

OPMUX_EXPORT int32_t opmux_plan_bind(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                     uint32_t flags, opmux_plan** plan, opmux_error* error);
/* Null is allowed. */
OPMUX_EXPORT void opmux_plan_destroy(opmux_plan* plan);

/* Runs if the arguments fit: OPMUX_OUTSIDE_PLAN, OPMUX_INVALID_ARGUMENT or OPMUX_REVOKED if not. */
OPMUX_EXPORT int32_t opmux_plan_call(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                                     opmux_error* error);

/* Checks arguments as a call does and keeps them, shapes and addresses copied, for
   opmux_plan_run_unchecked, which runs on them without another look: the data must still be there.
   A revoked plan refuses. */
OPMUX_EXPORT int32_t opmux_plan_prepare(opmux_plan* plan, const opmux_arg* args, uint32_t count,
                                        opmux_error* error);
OPMUX_EXPORT int32_t opmux_plan_run_unchecked(opmux_plan* plan, opmux_error* error);

#define OPMUX_PLAN_CURRENT 0 /* what would be decided now */
#define OPMUX_PLAN_STALE 1   /* another choice would be made now; it still runs */
#define OPMUX_PLAN_REVOKED 2 /* denied, withdrawn, or its device lost; it does not run */

OPMUX_EXPORT int32_t opmux_plan_state(const opmux_plan* plan, uint32_t* state, opmux_error* error);
/* Decides anew for the arguments it was bound with. */
OPMUX_EXPORT int32_t opmux_plan_refresh(opmux_plan* plan, opmux_error* error);
/* The id of what it runs; the text lives until the plan is refreshed or destroyed. */
OPMUX_EXPORT int32_t opmux_plan_implementation(const opmux_plan* plan, opmux_str* id,
                                               opmux_error* error);

/* ---- Operators and implementations of the program -------------------------------------------- */

#define OPMUX_DEFINE_DATA_CHECKED 1u /* its kernels look at data: their invalid_argument is final */

/* Defines an operator. The same text again is the same operator; another text is refused. */
OPMUX_EXPORT int32_t opmux_define(opmux_runtime* runtime, opmux_str schema, uint32_t flags,
                                  opmux_error* error);

/* Keeps implementations registered. */
typedef struct opmux_registration opmux_registration;

/* Adds a backend with its implementations, all or none, or implementations to a backend that the
   program added before; a signature may be left out, it is the operator's. The structs are copied;
   functions, and what user_data points to, must stay until opmux_withdraw has returned. */
OPMUX_EXPORT int32_t opmux_implement(opmux_runtime* runtime, const opmux_backend* backend,
                                     opmux_registration** registration, opmux_error* error);
/* Takes them out again, returns when no call is inside any more, and frees the handle. From inside
   such a call it does not wait and says OPMUX_FAILED. Null is allowed. */
OPMUX_EXPORT int32_t opmux_withdraw(opmux_registration* registration, opmux_error* error);
/* Frees the handle only: they stay until the runtime is destroyed. Null is allowed. */
OPMUX_EXPORT void opmux_registration_keep(opmux_registration* registration);

/* ---- Asking ---------------------------------------------------------------------------------- */

#define OPMUX_FORMAT_TEXT 0
#define OPMUX_FORMAT_JSON 1

/*
 * The texts below are written like snprintf does: at most `capacity` bytes with a closing zero, and
 * `*size` is the length that the whole text has, which may be more than fitted. A null buffer with
 * capacity 0 asks for the size alone. `size` may be null.
 */

/* The decision that a call with these arguments would make, with a reason for every candidate: the
   table of the command line, or its JSON. Outputs may be left out: they are inferred. */
OPMUX_EXPORT int32_t opmux_explain(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                   uint32_t format, char* buffer, size_t capacity, size_t* size,
                                   opmux_error* error);
/* Every operator with its implementations, as JSON. Asks each backend whether it is available. */
OPMUX_EXPORT int32_t opmux_list_operators(opmux_runtime* runtime, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);
/* What plugins were found, loaded or refused, and why, as JSON. */
OPMUX_EXPORT int32_t opmux_list_plugins(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);
/* What is in force of the policy texts, and what was refused, as JSON. */
OPMUX_EXPORT int32_t opmux_policy_state(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);
/* Every effective setting and where it came from, as JSON. */
OPMUX_EXPORT int32_t opmux_list_settings(opmux_runtime* runtime, char* buffer, size_t capacity,
                                         size_t* size, opmux_error* error);

/* How everything is doing, as JSON: a verdict for a health endpoint ("healthy", "degraded",
   "fatal"), why, and every breaker of what failed lately. */
OPMUX_EXPORT int32_t opmux_health(opmux_runtime* runtime, char* buffer, size_t capacity,
                                  size_t* size, opmux_error* error);

#define OPMUX_BREAKER_OPEN 0u    /* as if it had failed too often */
#define OPMUX_BREAKER_CLOSE 1u   /* forgets everything */
#define OPMUX_BREAKER_ISOLATE 2u /* open until it is closed by hand */

/* Opens, closes or isolates an implementation by hand. Not the reference: it stays closed. */
OPMUX_EXPORT int32_t opmux_force_breaker(opmux_runtime* runtime, opmux_str implementation,
                                         uint32_t what, opmux_error* error);

#define OPMUX_BREAKER_IS_CLOSED 0u    /* runs */
#define OPMUX_BREAKER_IS_OPEN 1u      /* does not run */
#define OPMUX_BREAKER_IS_HALF_OPEN 2u /* a few calls at a time try it */
#define OPMUX_BREAKER_IS_ISOLATED 3u  /* does not run until it is closed by hand */

/* A breaker that changed its state. All texts are borrowed for the visit. */
typedef struct opmux_breaker_event {
  uint32_t struct_size;
  uint32_t openings; /* since it was last trusted */
  opmux_str implementation, op;
  opmux_str what;       /* the calls: "f32 H<=4096 rows<=32 on cpu:0", or "all calls" */
  opmux_str why;        /* "too many failures in a row", "by hand" */
  uint32_t from, to;    /* OPMUX_BREAKER_IS_* */
  uint64_t open_for_ms; /* if it opened */
} opmux_breaker_event;

/* Tells of each later change, from the thread that caused it, never under a lock of opmux, for as
   long as the runtime lives. */
OPMUX_EXPORT int32_t opmux_on_breaker(opmux_runtime* runtime,
                                      void (*listener)(void* context,
                                                       const opmux_breaker_event* event),
                                      void* context, opmux_error* error);

/* Folded counters of one implementation. The id is borrowed for the visit. */
typedef struct opmux_stats {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str implementation;
  uint64_t calls; /* that ended ok */
  uint64_t declined, failed, resource, invalid_argument, device_lost;
  uint64_t stood_in;     /* calls that it took over from another one */
  uint64_t packed_bytes; /* of its copies of constants that live now */
} opmux_stats;

/* Visits the counters of every implementation that was called. */
OPMUX_EXPORT int32_t opmux_stats_visit(opmux_runtime* runtime,
                                       void (*visit)(void* context, const opmux_stats* stats),
                                       void* context, opmux_error* error);

#ifdef __cplusplus
}
#endif

#include <opmux/lock.h>
#include <opmux/quarantine.h>
#include <opmux/replay.h>
#include <opmux/selector.h>
#include <opmux/state_page.h>

#endif /* OPMUX_OPMUX_H */
