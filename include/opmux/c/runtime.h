/*
 * The runtime of the C API: options, creation, implementations of the program. Part of
 * <opmux/opmux.h>, which includes this header and states the rules that hold for every function.
 */
#ifndef OPMUX_C_RUNTIME_H
#define OPMUX_C_RUNTIME_H

#include <opmux/c/common.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#define OPMUX_TUNING_UNSET 0  /* taken from the next weaker policy, and finally BUNDLE */
#define OPMUX_TUNING_OFF 1    /* measured speeds do not count */
#define OPMUX_TUNING_BUNDLE 2 /* those of the bundles that the runtime found count */
#define OPMUX_TUNING_ONLINE 3 /* as BUNDLE; the runtime measures sampled calls, and proposes */
#define OPMUX_TUNING_ONLINE_APPLY 4 /* as ONLINE; later calls use what it measured */

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
  /* Not 0: permits the policy to leave operators without an implementation that can run here. */
  uint32_t allow_none;
  uint32_t tuning; /* OPMUX_TUNING_* */
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
/* refuse plugins if the system lacks a layer of the confinement of their trial */
#define OPMUX_PLUGINS_REQUIRE_CONFINEMENT 4u

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

/* Contents of the crash journal; see <opmux/c/health.h>. */
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
/* Refuse a policy file or lockfile that other users can write or replace
   ("policy.writable_by_others"): creation fails, and a changed file does not come into force.
   Without it the file is in force, and an event names it, unless /etc/opmux/trust.conf says
   `policy_trust = refuse`. */
#define OPMUX_OPTION_REFUSE_WRITABLE_POLICY 2u

/* How a runtime is created; everything zero but struct_size means the defaults. All pointers are
   borrowed for opmux_runtime_create, except on_event and event_context. */
typedef struct opmux_options {
  uint32_t struct_size;
  uint32_t flags; /* OPMUX_OPTION_* */
  /* Receives events from any thread, several at a time, until the runtime is destroyed; it may call
     into the runtime. May be null. If OPMUX_LOG is set, events go to standard error too. */
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
  /* Recording of failed calls, <opmux/c/query.h>; may be null. */
  const struct opmux_record_options* record;
} opmux_options;

/*
 * Reads the environment, registers the standard operators with their reference, finds backends and
 * plugins, and puts policy in force. Null options are the defaults. A plugin that is refused does
 * not fail it: opmux_list_plugins has the reason.
 *
 * Fails with OPMUX_INVALID_ARGUMENT for a wrong environment variable, a broken policy file, flag
 * bits that are not defined ("c.flags"), or a null pointer; with OPMUX_FAILED ("lock.misfit") if a
 * lockfile does not fit.
 */
OPMUX_EXPORT int32_t opmux_runtime_create(const opmux_options* options, opmux_runtime** runtime,
                                          opmux_error* error);
/* Destroys a runtime. No call may be running, and no plan, constant, registration or scope of it
   may be left. Null is allowed. */
OPMUX_EXPORT void opmux_runtime_destroy(opmux_runtime* runtime);
/* Loads plugins that wait until a decision could use them, so that no call has to. */
OPMUX_EXPORT int32_t opmux_runtime_warm_up(opmux_runtime* runtime, opmux_error* error);

/* Loads the plugin of one file now, with the checks of opmux_options.plugins. `path` is absolute.
   Its implementations are candidates for calls that start afterwards. Fails with OPMUX_UNAVAILABLE
   and the reason of the refusal, OPMUX_INVALID_ARGUMENT ("trust.relative") or OPMUX_FROZEN. */
OPMUX_EXPORT int32_t opmux_plugin_load(opmux_runtime* runtime, opmux_str path, opmux_error* error);
/* The same for a plugin that is linked into the program: `query` is opmux_plugin_query_v1_NAME,
   which OPMUX_PLUGIN_ENTRY(NAME) defines if OPMUX_STATIC_PLUGIN is defined. */
OPMUX_EXPORT int32_t opmux_plugin_load_static(opmux_runtime* runtime, opmux_plugin_query_fn query,
                                              opmux_error* error);

/* Runs maintenance that is due at `now_ns` on the calling thread: watched files, breakers, expiring
   rules, shadow check, status file. For programs that set OPMUX_SOURCE_NO_THREAD. The time must not
   decrease; its origin is arbitrary. */
OPMUX_EXPORT int32_t opmux_tick(opmux_runtime* runtime, uint64_t now_ns, opmux_error* error);

/* Switches a backend on (1) or off (0), independently of whether it is available. Fails with
   OPMUX_NOT_FOUND or OPMUX_FROZEN. */
OPMUX_EXPORT int32_t opmux_backend_enable(opmux_runtime* runtime, opmux_str name, int32_t on,
                                          opmux_error* error);
/* Names a device type that a vendor defines, OPMUX_DEVICE_VENDOR to OPMUX_DEVICE_LAST, for the
   whole process: policies, explain and commands use the name. Naming it again in the same way
   changes nothing; another name, or a name of another type, is refused ("device.name"). */
OPMUX_EXPORT int32_t opmux_name_device_type(int32_t type, opmux_str name, opmux_error* error);
/* States the architecture of a device, as numbers with dots between them ("9.0"), for backends that
   do not state it. Capabilities with min_arch or max_arch are compared with it. */
OPMUX_EXPORT int32_t opmux_set_architecture(opmux_runtime* runtime, opmux_device device,
                                            opmux_str architecture, opmux_error* error);
/* States the place of this process among those that share a model, for the names `rank` and
   `tp_size` (number of processes that share its tensors) in conditions; -1: not stated. Effective
   for calls that start after it returns. Fails with OPMUX_INVALID_ARGUMENT ("ambient.rank"). */
OPMUX_EXPORT int32_t opmux_set_rank(opmux_runtime* runtime, int32_t rank, int32_t tp_size,
                                    opmux_error* error);
/* Runs calls on the threads of the OpenMP runtime that the process has loaded (libgomp), on as many
   as it allows the calling thread. Cannot be undone. Fails with OPMUX_UNSUPPORTED if none is
   loaded; opmux never loads one. */
OPMUX_EXPORT int32_t opmux_runtime_use_openmp(opmux_runtime* runtime, opmux_error* error);

/* A number for a word such as "layer.3", for opmux_call_options.tag, on which rules can match. The
   same word gives the same number in every runtime. */
OPMUX_EXPORT int32_t opmux_tag(opmux_runtime* runtime, opmux_str word, uint32_t* tag,
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
 * Fails with OPMUX_INVALID_ARGUMENT and the column for a text that is not a schema, or for flag
 * bits that are not defined; with OPMUX_ALREADY_EXISTS if the name has another schema, or with
 * OPMUX_FROZEN.
 */
OPMUX_EXPORT int32_t opmux_define(opmux_runtime* runtime, opmux_str schema, uint32_t flags,
                                  opmux_error* error);

/*
 * Defines several operators in one step: all of them, or none if one is refused. A program with
 * thousands of operators should use it, because each opmux_define publishes the runtime's state
 * once more. `flags` apply to every operator. The texts are borrowed for this call.
 *
 *    opmux_str schemas[] = {OPMUX_STR("first_layer(out Tensor y[N], Tensor x[N])"),
 *                           OPMUX_STR("second_layer(out Tensor y[N], Tensor x[N])")};
 *    if (opmux_define_all(runtime, schemas, 2, 0, &error) != OPMUX_OK)
 *      fprintf(stderr, "%s\n", error.text);
 *
 * Fails as opmux_define does, with the first operator that is refused; the message begins with its
 * name. Fails with OPMUX_INVALID_ARGUMENT for a null pointer, unless `count` is 0.
 */
OPMUX_EXPORT int32_t opmux_define_all(opmux_runtime* runtime, const opmux_str* schemas,
                                      size_t count, uint32_t flags, opmux_error* error);

/* Keeps implementations registered. Owned by the caller until opmux_withdraw or
   opmux_registration_keep. */
typedef struct opmux_registration opmux_registration;

/*
 * Adds a backend with its implementations, all or none, or adds implementations to a backend that
 * the program added before. All implementations of the struct are registered and published in one
 * step, so put as many into it as belong to the backend. An implementation without signature and
 * hash uses the schema of the operator. The structs are copied; functions and user_data must stay
 * valid until opmux_withdraw has returned. docs/for_kernel_vendors.md has a complete opmux_backend.
 *
 * Fails with OPMUX_NOT_FOUND for an unknown operator, OPMUX_ALREADY_EXISTS for an id or backend
 * that exists, OPMUX_INVALID_ARGUMENT for a struct that is malformed or does not fit the schema, or
 * OPMUX_FROZEN. The message begins with the first implementation that is refused, or with the
 * backend.
 */
OPMUX_EXPORT int32_t opmux_implement(opmux_runtime* runtime, const opmux_backend* backend,
                                     opmux_registration** registration, opmux_error* error);
/* Withdraws the implementations, waits until no call is inside them, and frees the handle. Inside
   such a call it does not wait and returns OPMUX_FAILED ("withdraw.inside"), and also if a sandbox
   refuses the system calls that tell whether a call is left ("withdraw.barrier"); the handle is
   freed nevertheless. Null is allowed. */
OPMUX_EXPORT int32_t opmux_withdraw(opmux_registration* registration, opmux_error* error);
/* Frees only the handle: the implementations stay until the runtime is destroyed. Null is
   allowed. */
OPMUX_EXPORT void opmux_registration_keep(opmux_registration* registration);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_C_RUNTIME_H */
