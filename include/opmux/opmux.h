/*
 * The C API: the runtime of <opmux/opmux.hpp> with the structs of abi.h.
 *
 *    opmux_runtime* engine = NULL;
 *    opmux_operator* softmax = NULL;
 *    opmux_error why = OPMUX_ERROR_INIT;
 *    float x_data[4] = {1, 2, 3, 4}, y_data[4];
 *    int64_t shape[2] = {1, 4};
 *    opmux_device cpu = {OPMUX_DEVICE_CPU, 0};
 *    opmux_dtype f32 = {OPMUX_DTYPE_FLOAT, 32, 1};
 *    opmux_tensor x = {x_data, cpu, 2, f32, shape, NULL, 0}, y = x;
 *    y.data = y_data;
 *    opmux_arg both[2] = {opmux_arg_tensor(&y), opmux_arg_tensor(&x)};
 *    if (opmux_runtime_create(NULL, &engine, &why) == OPMUX_OK &&
 *        opmux_operator_get(engine, opmux_str_of("softmax"), &softmax, &why) == OPMUX_OK &&
 *        opmux_call_operator(softmax, both, 2, &why) == OPMUX_OK) {
 *      printf("%g\n", y_data[3]);
 *    } else {
 *      fprintf(stderr, "%s\n", why.text);
 *    }
 *    opmux_runtime_destroy(engine);
 *
 * Rules that hold for every function:
 * - It returns OPMUX_OK (0), another outcome of abi.h, or a code below. On failure it writes
 *   nothing to out parameters; `error`, which may be null, receives the reason. Outputs of an
 *   operator that ran and failed may be partly written.
 * - Pointers that are passed in are borrowed for the call. A handle written to an out parameter
 *   belongs to the caller if a function to destroy it exists; destroy it before its runtime.
 * - It may be called from any thread, several at a time, unless its comment says otherwise.
 * - Structs carry struct_size as in abi.h: set it to sizeof and all unused fields to zero. Fields
 *   are only ever appended.
 * - No exception leaves it, and it never prints, aborts or exits.
 *
 * The examples below are statements of a function. They assume `opmux_runtime* runtime`,
 * `opmux_error error = OPMUX_ERROR_INIT`, <stdio.h>, <stdlib.h> and <string.h>; those on calls also
 * assume an operator `opmux_operator* op` and its arguments `opmux_arg args[2]`, here those of
 * softmax.
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

/* ---- Policy ---------------------------------------------------------------------------------- */

/* A list of texts; count 0 with null items is the empty list. */
typedef struct opmux_str_list {
  const opmux_str* items;
  size_t count;
} opmux_str_list;

/* An exclusive order for one operator: only these, in this order. */
typedef struct opmux_op_order {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str op;         /* name of the operator */
  opmux_str_list order; /* tokens */
} opmux_op_order;

#define OPMUX_STRICT_UNSET 0 /* taken from the next weaker policy */
#define OPMUX_STRICT_ON 1    /* return the first outcome that is not ok; no fallback */
#define OPMUX_STRICT_OFF 2   /* fall back even if a weaker policy is strict */

/*
 * Preferences and constraints for selection. Lists hold tokens: `default`, `vendor`, `reference`,
 * `vendor:NAME`, `impl:ID`, or a glob with a slash such as "rms_norm/acme.*". An empty list sets
 * nothing. Rules with conditions are part of policy texts: opmux_policy_load.
 *
 *    opmux_str first[] = {OPMUX_STR("vendor:acme"), OPMUX_STR("default")};
 *    opmux_policy policy;
 *    memset(&policy, 0, sizeof policy);
 *    policy.struct_size = sizeof policy;
 *    policy.prefer.items = first;
 *    policy.prefer.count = 2;
 *    policy.strict = OPMUX_STRICT_ON;
 *    if (opmux_policy_set(runtime, &policy, &error) != OPMUX_OK)
 *      fprintf(stderr, "%s\n", error.text);
 */
typedef struct opmux_policy {
  uint32_t struct_size;
  uint32_t strict; /* OPMUX_STRICT_* */
  /* prefer: these first, then the rest. require: only these. deny: never, not even as a fallback.
     allow: if not empty, only these, the reference included. */
  opmux_str_list prefer, require, deny, allow;
  /* Vendor names. They affect only implementations of kind vendor. */
  opmux_str_list allow_vendors, deny_vendors;
  const opmux_op_order* per_op; /* exclusive orders of single operators; may be null */
  uint32_t per_op_count;
  uint32_t per_op_stride; /* sizeof(opmux_op_order) */
  /* Conversions that opmux may apply to tensors that an implementation does not accept as they are:
     "contiguous" (copy to row-major), "widen" (f16 and bf16 to f32), or "none" alone. */
  opmux_str_list transforms;
} opmux_policy;

/* ---- Runtime --------------------------------------------------------------------------------- */

/* Operators, implementations, policy and the engine that routes calls. Owned by the caller:
   opmux_runtime_create makes it, opmux_runtime_destroy destroys it. */
typedef struct opmux_runtime opmux_runtime;

/* Something a person may want to know. An event with the same code, operator, implementation and
   reason is delivered once and then only counted. Texts are borrowed for the callback. */
typedef struct opmux_event {
  uint32_t struct_size;
  int32_t level;  /* 0 debug, 1 info, 2 warning, 3 error */
  opmux_str code; /* stable: "dispatch.chosen", "call.fell_back" */
  opmux_str op;
  opmux_str impl;
  opmux_str text; /* one sentence for people */
} opmux_event;

/* An environment variable: {OPMUX_STR("OPMUX_STRICT"), OPMUX_STR("1")}. */
typedef struct opmux_variable {
  opmux_str name;
  opmux_str value;
} opmux_variable;

/* Proof that a plugin's file must provide before any of its code runs. In every case only root,
   this user and the owner of libopmux may be able to write to the file and to the folders above. */
#define OPMUX_TRUST_ANY 0    /* no further proof */
#define OPMUX_TRUST_DIGEST 1 /* its SHA-256 is one of `digests` */
#define OPMUX_TRUST_SIGNED 2 /* it is signed by a key of `keyring` */

#define OPMUX_PLUGINS_SEALED 1u   /* load copies in sealed memory instead of the files */
#define OPMUX_PLUGINS_NO_PROBE 2u /* load at once, without a trial in a child process */

/* Where plugins are searched and what they must prove. Neither environment nor policy can weaken
   it. */
typedef struct opmux_plugin_options {
  uint32_t struct_size;
  uint32_t trust; /* OPMUX_TRUST_* */
  uint32_t flags; /* OPMUX_PLUGINS_* */
  uint32_t reserved;
  uint64_t max_bytes; /* a larger file is refused; 0: 1 GiB */
  /* Absolute folders, searched after the installed backends and OPMUX_PLUGIN_PATH. */
  opmux_str_list folders;
  opmux_str_list digests; /* SHA-256 of accepted files, 64 hexadecimal digits each */
  opmux_str keyring;      /* an absolute folder with public keys */
} opmux_plugin_options;

#define OPMUX_SOURCE_NO_LAST_KNOWN_GOOD 1u /* broken files make creation fail */
#define OPMUX_SOURCE_NO_THREAD 2u          /* no maintenance thread: the program calls opmux_tick */
#define OPMUX_SOURCE_NO_FREEZE 8u          /* mode static waits for opmux_runtime_freeze */
#define OPMUX_SOURCE_LOOK_AT_FILES 4u      /* poll files even where the kernel reports changes */

/* Where policy comes from besides code. An empty text means that the environment decides:
   OPMUX_MODE, OPMUX_CONFIG, OPMUX_PLATFORM, OPMUX_LOCKFILE. */
typedef struct opmux_source_options {
  uint32_t struct_size;
  uint32_t flags;     /* OPMUX_SOURCE_* */
  opmux_str mode;     /* "static", "dynamic", "config", "hot_reload" or "auto" */
  opmux_str config;   /* a policy file, or a folder with policy files */
  opmux_str platform; /* a policy file of the machine, or the name of an installed one */
  opmux_str lockfile; /* for mode static; default: opmux.lock beside `config` */
} opmux_source_options;

/* Contents of the crash journal; see <opmux/quarantine.h>. */
#define OPMUX_CRASH_JOURNAL_OFF 0u /* OPMUX_CRASH_JOURNAL decides; off without it */
#define OPMUX_CRASH_JOURNAL_ON 1u  /* running implementations: after a kill they are suspects */
#define OPMUX_CRASH_JOURNAL_WITH_HANDLER \
  2u /* also the faulting one, by a signal handler that calls the previous one */

/* State that a runtime keeps on disk beyond the life of its process. */
typedef struct opmux_state_options {
  uint32_t struct_size;
  uint32_t crash_journal; /* OPMUX_CRASH_JOURNAL_* */
  opmux_str folder;       /* replaces OPMUX_STATE_DIR; empty: the environment decides */
  uint32_t state_page;    /* 1: keep a status file; 0: OPMUX_STATE_PAGE decides */
  uint32_t reserved;
} opmux_state_options;

#define OPMUX_OPTION_NO_BACKENDS 1u /* do not load installed backends; the reference stays */

/* How a runtime is created; everything zero but struct_size means the defaults. All pointers are
   borrowed for opmux_runtime_create, except on_event and event_context. */
typedef struct opmux_options {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_OPTION_* */
  /* Receives events from any thread, several at a time, until the runtime is destroyed; it may call
     into the runtime. Null: events go to standard error if OPMUX_LOG is set. */
  void (*on_event)(void* context, const opmux_event* event);
  void* event_context;
  /* Variables that replace the OPMUX_* of the process; null: the process environment. A pointer
     with count 0 is an empty environment. */
  const opmux_variable* environment;
  size_t environment_count;
  /* Further folders with plugins, and the proof that they must provide; may be null. */
  const opmux_plugin_options* plugins;
  /* Initial policy, as by opmux_policy_set; may be null. */
  const opmux_policy* policy;
  /* Policy files and mode; may be null. */
  const opmux_source_options* sources;
  /* Folder for state, crash journal, status file; may be null. */
  const opmux_state_options* state;
  /* Recording of failed calls, <opmux/replay.h>; may be null. */
  const struct opmux_record_options* record;
} opmux_options;

/*
 * Reads the environment, registers the standard operators with their reference, finds backends and
 * plugins, and puts policy in force. Null options are the defaults. A plugin that is refused does
 * not fail it: opmux_list_plugins has the reason.
 *
 * Fails with OPMUX_INVALID_ARGUMENT for a wrong environment variable, a broken policy file, or a
 * null pointer; with OPMUX_FAILED ("lock.misfit") if a lockfile does not fit.
 */
OPMUX_EXPORT int32_t opmux_runtime_create(const opmux_options* options, opmux_runtime** runtime,
                                          opmux_error* error);
/* Destroys a runtime. No call may be running, and no plan, constant, registration or scope of it
   may be left. Null is allowed. */
OPMUX_EXPORT void opmux_runtime_destroy(opmux_runtime* runtime);
/* Loads plugins that wait until a decision could use them, so that no call has to. */
OPMUX_EXPORT int32_t opmux_runtime_warm_up(opmux_runtime* runtime, opmux_error* error);

/* Replaces the policy in code, which holds for the whole runtime until a scope overrides it. The
   struct is copied. Fails with OPMUX_INVALID_ARGUMENT, and changes nothing, if the policy is not
   valid or would leave an operator without candidates ("policy.no_candidates"); with OPMUX_FROZEN
   once the runtime is frozen. */
OPMUX_EXPORT int32_t opmux_policy_set(opmux_runtime* runtime, const opmux_policy* policy,
                                      opmux_error* error);
/* Removes the policy in code. Fails with OPMUX_FROZEN once frozen. */
OPMUX_EXPORT int32_t opmux_policy_reset(opmux_runtime* runtime, opmux_error* error);

/*
 * Puts the text of a policy file (YAML or JSON) in force, replacing the previous text. `name`
 * appears in messages. A refused text changes nothing.
 *
 *    opmux_str text = OPMUX_STR("opmux: 1\nrules:\n  - {op: softmax, prefer: [vendor]}\n");
 *    if (opmux_policy_load(runtime, text, opmux_str_of("inline.yaml"), &error) != OPMUX_OK)
 *      fprintf(stderr, "%s\n", error.text);
 *
 * Fails with OPMUX_INVALID_ARGUMENT, a reason that starts with "policy.", and line and column in
 * the text; with the outcome of a validator; or with OPMUX_FROZEN.
 */
OPMUX_EXPORT int32_t opmux_policy_load(opmux_runtime* runtime, opmux_str text, opmux_str name,
                                       opmux_error* error);
/* Flag of opmux_policy_check: as `names: strict` in the text, absent names are errors. */
#define OPMUX_CHECK_STRICT_NAMES 1u

/* Checks a text as the policy file of this runtime: warnings about rules and changed decisions, as
   the JSON of `opmux check --json`, written as opmux_explain writes. Changes nothing. A text that
   would not apply fails as opmux_policy_load does. */
OPMUX_EXPORT int32_t opmux_policy_check(opmux_runtime* runtime, opmux_str text, opmux_str name,
                                        uint32_t flags, char* buffer, size_t capacity, size_t* size,
                                        opmux_error* error);
/* Checks the syntax of a condition as rules of policy files write it. Fails with
   OPMUX_INVALID_ARGUMENT ("policy.when") and the column. Names and types belong to operators, so
   only opmux_policy_check checks them. */
OPMUX_EXPORT int32_t opmux_condition_check(opmux_str text, opmux_error* error);
/* Restores the previous policy text; a second call restores the later one again. Fails with
   OPMUX_NOT_FOUND if there is no previous text, or with OPMUX_FROZEN. */
OPMUX_EXPORT int32_t opmux_policy_rollback(opmux_runtime* runtime, opmux_error* error);

/* A policy text that took effect or was refused. Texts are borrowed for the callback. */
typedef struct opmux_policy_change {
  uint32_t struct_size;
  int32_t outcome;     /* OPMUX_OK: in force; else refused, and nothing changed */
  opmux_str name;      /* of the text, as given to opmux_policy_load */
  opmux_str digest;    /* SHA-256; empty if the library was built without digests */
  opmux_str origin;    /* "file", "last known good", "load_policy", "rollback" */
  opmux_str text;      /* why it was refused */
  uint64_t version;    /* of the text in force now */
  uint64_t generation; /* of the snapshot with which it took effect */
} opmux_policy_change;

/* Adds a listener for policy texts. It is called from the thread that loaded the text, never while
   opmux holds a lock, and must stay callable until the runtime is destroyed. */
OPMUX_EXPORT int32_t opmux_policy_on_change(opmux_runtime* runtime,
                                            void (*tell)(void* context,
                                                         const opmux_policy_change* change),
                                            void* context, opmux_error* error);

/* Descriptive fields of a rule. Texts are borrowed for the callback; `where` is
   "policy.yaml:12". */
typedef struct opmux_rule_info {
  opmux_str name, op, reason, owner, expires, where;
} opmux_rule_info;

/* Adds a function that reviews each policy text before it takes effect. Any result but OPMUX_OK
   refuses the text; write the reason to `why`. It must stay callable until the runtime is
   destroyed. */
OPMUX_EXPORT int32_t opmux_policy_add_validator(opmux_runtime* runtime,
                                                int32_t (*judge)(void* context,
                                                                 const opmux_rule_info* rules,
                                                                 size_t count, opmux_error* why),
                                                void* context, opmux_error* error);

/* Runs maintenance that is due at `now_ns` on the calling thread: watched files, breakers, expiring
   rules, shadow check, status file. For programs that set OPMUX_SOURCE_NO_THREAD. The time must not
   decrease; its origin is arbitrary. */
OPMUX_EXPORT int32_t opmux_tick(opmux_runtime* runtime, uint64_t now_ns, opmux_error* error);

/* Switches a backend on (1) or off (0), independently of whether it is available. Fails with
   OPMUX_NOT_FOUND or OPMUX_FROZEN. */
OPMUX_EXPORT int32_t opmux_backend_enable(opmux_runtime* runtime, opmux_str name, int32_t on,
                                          opmux_error* error);
/* Runs calls on the threads of the OpenMP runtime that the process has loaded (libgomp), on as many
   as it allows the calling thread. Cannot be undone. Fails with OPMUX_UNSUPPORTED if none is
   loaded; opmux never loads one. */
OPMUX_EXPORT int32_t opmux_runtime_use_openmp(opmux_runtime* runtime, opmux_error* error);

/* A number for a word such as "layer.3", for opmux_call_options.tag, on which rules can match. The
   same word gives the same number in every runtime. */
OPMUX_EXPORT int32_t opmux_tag(opmux_runtime* runtime, opmux_str word, uint32_t* tag,
                               opmux_error* error);

/* ---- Scopes: a policy for one thread, from push to pop --------------------------------------- */

/*
 * Adds a policy for the calling thread on top of the scopes around it: `prefer`, `strict` and
 * `allow` of the innermost scope win, `require` and `deny` of all hold. The struct is copied.
 *
 *    opmux_str only[] = {OPMUX_STR("reference")};
 *    opmux_policy policy;
 *    memset(&policy, 0, sizeof policy);
 *    policy.struct_size = sizeof policy;
 *    policy.require.items = only;
 *    policy.require.count = 1;
 *    if (opmux_scope_push(runtime, &policy, &error) == OPMUX_OK) {
 *      opmux_call_operator(op, args, 2, &error);
 *      opmux_scope_pop(&error);
 *    }
 *
 * Fails with OPMUX_INVALID_ARGUMENT for an invalid policy, with OPMUX_RESOURCE if 256 different
 * scopes are alive; then nothing is pushed, and there is nothing to pop.
 */
OPMUX_EXPORT int32_t opmux_scope_push(opmux_runtime* runtime, const opmux_policy* policy,
                                      opmux_error* error);

/* Facts about the surroundings of calls. DETERMINISTIC and CAPTURING restrict candidates to
   implementations that promise it; GRAD excludes implementations for inference only. */
#define OPMUX_AMBIENT_GRAD 1u
#define OPMUX_AMBIENT_CAPTURING 2u
#define OPMUX_AMBIENT_DETERMINISTIC 4u
#define OPMUX_AMBIENT_TRAINING 8u

/* Replaces the ambient facts of the calling thread, in every runtime, until the matching
   opmux_scope_pop. Fails with OPMUX_INVALID_ARGUMENT for unknown bits. */
OPMUX_EXPORT int32_t opmux_ambient_push(uint32_t facts, opmux_error* error);

/* Ends the innermost scope of either kind. Every successful push needs its pop on the same thread.
   Fails with OPMUX_INVALID_ARGUMENT ("c.scope") if nothing was pushed on this thread. */
OPMUX_EXPORT int32_t opmux_scope_pop(opmux_error* error);

/* ---- Operators ------------------------------------------------------------------------------- */

/* A handle to an operator. Belongs to the runtime and lives as long; safe from any thread. */
typedef struct opmux_operator opmux_operator;

/* Looks up an operator. Fails with OPMUX_NOT_FOUND and suggests the nearest name. */
OPMUX_EXPORT int32_t opmux_operator_get(opmux_runtime* runtime, opmux_str name, opmux_operator** op,
                                        opmux_error* error);

/*
 * Routes a call to the best implementation and runs it, falling back where that is safe. Arguments
 * are in the order of the schema; trailing ones with defaults may be left out. `flags` of arguments
 * are ignored, except those that opmux_arg_constant sets.
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
  char reason[512];         /* why it fell back; empty otherwise */
  uint8_t fell_back;        /* the first choice did not run, or a preferred one was refused */
  uint8_t cached;           /* the decision was made before this call */
  uint8_t reserved[6];
  uint64_t generation;  /* number of the snapshot that decided */
  uint64_t select_ns;   /* time spent checking arguments and choosing */
  uint64_t run_ns;      /* time inside implementations, failed attempts included */
  char transforms[256]; /* conversions of tensors: "contiguous(x), widen(y, x)" */
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
   does; with OPMUX_INVALID_ARGUMENT ("schema.overlap") if an output overlaps an input; with
   OPMUX_UNSUPPORTED for strings, lists and tensors that need a conversion. */
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

/* ---- Operators and implementations of the program -------------------------------------------- */

/* Flag of opmux_define: kernels check data, so OPMUX_INVALID_ARGUMENT from one is final. */
#define OPMUX_DEFINE_DATA_CHECKED 1u

/*
 * Defines an operator by its schema. The same text again succeeds.
 *
 *    opmux_str schema = OPMUX_STR("swish(out Tensor y[N], Tensor x[N])");
 *    if (opmux_define(runtime, schema, 0, &error) != OPMUX_OK)
 *      fprintf(stderr, "%s\n", error.text);
 *
 * Fails with OPMUX_INVALID_ARGUMENT and the column for a text that is not a schema, with
 * OPMUX_ALREADY_EXISTS if the name has another schema, or with OPMUX_FROZEN.
 */
OPMUX_EXPORT int32_t opmux_define(opmux_runtime* runtime, opmux_str schema, uint32_t flags,
                                  opmux_error* error);

/* Keeps implementations registered. Owned by the caller until opmux_withdraw or
   opmux_registration_keep. */
typedef struct opmux_registration opmux_registration;

/*
 * Adds a backend with its implementations, all or none, or adds implementations to a backend that
 * the program added before. An implementation without signature and hash uses the schema of the
 * operator. The structs are copied; functions and user_data must stay valid until opmux_withdraw
 * has returned. docs/for_kernel_vendors.md has a complete opmux_backend.
 *
 * Fails with OPMUX_NOT_FOUND for an unknown operator, OPMUX_ALREADY_EXISTS for an id or backend
 * that exists, OPMUX_INVALID_ARGUMENT for a struct that is malformed or does not fit the schema, or
 * OPMUX_FROZEN.
 */
OPMUX_EXPORT int32_t opmux_implement(opmux_runtime* runtime, const opmux_backend* backend,
                                     opmux_registration** registration, opmux_error* error);
/* Withdraws the implementations, waits until no call is inside them, and frees the handle. Inside
   such a call it does not wait and returns OPMUX_FAILED ("withdraw.inside"); the handle is freed
   nevertheless. Null is allowed. */
OPMUX_EXPORT int32_t opmux_withdraw(opmux_registration* registration, opmux_error* error);
/* Frees only the handle: the implementations stay until the runtime is destroyed. Null is
   allowed. */
OPMUX_EXPORT void opmux_registration_keep(opmux_registration* registration);

/* ---- Queries --------------------------------------------------------------------------------- */

#define OPMUX_FORMAT_TEXT 0 /* the table that `opmux explain` prints */
#define OPMUX_FORMAT_JSON 1 /* one line; docs/schemas describes each form */

/*
 * Functions below write text as snprintf does: at most `capacity` bytes with a closing zero, and
 * *size is the length of the whole text, which may be more than fitted. A null buffer with capacity
 * 0 asks for the size alone. `size` may be null. A truncated text is not an error.
 *
 *    size_t size = 0;
 *    if (opmux_health(runtime, NULL, 0, &size, &error) == OPMUX_OK) {
 *      char* json = malloc(size + 1);
 *      if (json && opmux_health(runtime, json, size + 1, &size, &error) == OPMUX_OK) puts(json);
 *      free(json);
 *    }
 */

/* The decision that a call with these arguments would make, with a reason for every candidate, as
   OPMUX_FORMAT_TEXT or OPMUX_FORMAT_JSON. Nothing runs. Outputs may be left out: their shapes are
   inferred. Arguments that do not fit the schema give an explanation whose note says why. */
OPMUX_EXPORT int32_t opmux_explain(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                   uint32_t format, char* buffer, size_t capacity, size_t* size,
                                   opmux_error* error);
/* Every operator with its implementations, as JSON. Asks each backend whether it is available. */
OPMUX_EXPORT int32_t opmux_list_operators(opmux_runtime* runtime, char* buffer, size_t capacity,
                                          size_t* size, opmux_error* error);
/* Plugins that were found, loaded or refused, with reasons, as JSON. Loads waiting plugins. */
OPMUX_EXPORT int32_t opmux_list_plugins(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);
/* The policy text in force, and counters of loads and refusals, as JSON. */
OPMUX_EXPORT int32_t opmux_policy_state(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);
/* Every effective setting and where it came from, as JSON. */
OPMUX_EXPORT int32_t opmux_list_settings(opmux_runtime* runtime, char* buffer, size_t capacity,
                                         size_t* size, opmux_error* error);

/* Health of the runtime as JSON: a verdict for a health endpoint ("healthy", "degraded", "fatal"),
   the reasons, and every breaker of an implementation with recent failures. */
OPMUX_EXPORT int32_t opmux_health(opmux_runtime* runtime, char* buffer, size_t capacity,
                                  size_t* size, opmux_error* error);

#define OPMUX_BREAKER_OPEN 0u    /* as if the failure limit were reached; probes follow */
#define OPMUX_BREAKER_CLOSE 1u   /* close, and clear all counters */
#define OPMUX_BREAKER_ISOLATE 2u /* open until it is closed by hand */

/* Opens, closes or isolates the breaker of an implementation for all its calls; `what` is an
   OPMUX_BREAKER_*. Fails with OPMUX_NOT_FOUND for an unknown id and OPMUX_UNSUPPORTED for a
   reference, which always stays closed. */
OPMUX_EXPORT int32_t opmux_force_breaker(opmux_runtime* runtime, opmux_str implementation,
                                         uint32_t what, opmux_error* error);

#define OPMUX_BREAKER_IS_CLOSED 0u    /* calls run */
#define OPMUX_BREAKER_IS_OPEN 1u      /* calls run another candidate */
#define OPMUX_BREAKER_IS_HALF_OPEN 2u /* a few probe calls run at a time */
#define OPMUX_BREAKER_IS_ISOLATED 3u  /* open until it is closed by hand */

/* A breaker that changed its state. Texts are borrowed for the callback. */
typedef struct opmux_breaker_event {
  uint32_t struct_size;
  uint32_t openings; /* consecutive openings */
  opmux_str implementation, op;
  opmux_str what;       /* class of calls: "f32 H<=4096 rows<=32 on cpu:0", or "all calls" */
  opmux_str why;        /* cause in words */
  uint32_t from, to;    /* OPMUX_BREAKER_IS_* */
  uint64_t open_for_ms; /* duration, if it opened */
} opmux_breaker_event;

/* Adds a listener for breakers that change their state. It is called from the thread that caused
   the change, or from the maintenance thread, never while opmux holds a lock, and must stay
   callable until the runtime is destroyed. */
OPMUX_EXPORT int32_t opmux_on_breaker(opmux_runtime* runtime,
                                      void (*listener)(void* context,
                                                       const opmux_breaker_event* event),
                                      void* context, opmux_error* error);

/* Counters of one implementation, summed over all threads. The id is borrowed for the visit. */
typedef struct opmux_stats {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str implementation;
  uint64_t calls; /* calls that ended ok */
  /* Calls that ended with that outcome. */
  uint64_t declined, failed, resource, invalid_argument, device_lost;
  uint64_t stood_in;     /* calls taken over as a fallback for another implementation */
  uint64_t packed_bytes; /* bytes of its packed copies that exist now */
} opmux_stats;

/* Calls `visit` on this thread with the counters of every implementation, sorted by id. */
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
