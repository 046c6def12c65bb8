/*
 * Policies of the C API: texts, listeners, scopes, selectors, frozen runtimes and lockfiles. Part
 * of <opmux/opmux.h>, which includes this header and states the rules that hold for every
 * function.
 */
#ifndef OPMUX_C_POLICY_H
#define OPMUX_C_POLICY_H

#include <opmux/c/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the policy in code, which holds for the whole runtime until a scope overrides it. The
   struct is copied. Fails with OPMUX_INVALID_ARGUMENT, and changes nothing, if the policy is not
   valid or would leave an operator without an implementation that can run on this machine
   ("policy.no_candidates"); with OPMUX_FROZEN once the runtime is frozen. */
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
/* Flag of opmux_policy_check: absent names are errors, as with `names: strict` in the text, and in
   `deny` too. */
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
   implementations that promise it; GRAD excludes implementations for inference only. Rules and
   verifiers can read all of them. */
#define OPMUX_AMBIENT_GRAD 1u
#define OPMUX_AMBIENT_CAPTURING 2u
#define OPMUX_AMBIENT_DETERMINISTIC 4u
#define OPMUX_AMBIENT_TRAINING 8u
#define OPMUX_AMBIENT_INFERENCE 16u
#define OPMUX_AMBIENT_AUTOCAST 32u

/* Replaces the ambient facts of the calling thread, in every runtime, until the matching
   opmux_scope_pop. Fails with OPMUX_INVALID_ARGUMENT for unknown bits. */
OPMUX_EXPORT int32_t opmux_ambient_push(uint32_t facts, opmux_error* error);

/* Ends the innermost scope of either kind. Every successful push needs its pop on the same thread.
   Fails with OPMUX_INVALID_ARGUMENT ("c.scope") if nothing was pushed on this thread. */
OPMUX_EXPORT int32_t opmux_scope_pop(opmux_error* error);

/* ---- Selectors ------------------------------------------------------------------------------- */

/*
 * Selector: a function of the program that may replace choices.
 *
 * It is asked when a class of calls is decided, not on each call, and can select only candidates
 * that policy, capabilities and health accepted. Given a function of the program `int64_t
 * pick_last(void*, const opmux_selection*)`:
 *
 *    opmux_str reads[] = {OPMUX_STR("rows")};
 *    opmux_selector selector;
 *    memset(&selector, 0, sizeof selector);
 *    selector.struct_size = sizeof selector;
 *    selector.reads.items = reads;
 *    selector.reads.count = 1;
 *    selector.pick = pick_last;
 *    if (opmux_selector_set(runtime, &selector, &error) != OPMUX_OK)
 *      fprintf(stderr, "%s\n", error.text);
 */
/* One fact of a call, as a selector sees it. */
typedef struct opmux_selector_fact {
  opmux_str name;  /* as in opmux_selector.reads */
  opmux_str text;  /* "bf16", "cpu:0", "4096"; empty if absent */
  int64_t number;  /* value; unspecified if absent */
  int32_t present; /* 0: the call, or its operator, does not have the fact */
} opmux_selector_fact;

/* The question to a selector. Everything is borrowed for the call of `pick`. */
typedef struct opmux_selection {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str op;              /* operator that is being decided */
  const opmux_str* accepted; /* ids, best first; at least one */
  size_t accepted_count;
  const opmux_selector_fact* facts; /* those of opmux_selector.reads, in that order */
  size_t fact_count;
} opmux_selection;

/* The function and the facts that it reads. Calls that agree in all listed facts share one answer,
   so every fact that `pick` looks at must be listed. */
typedef struct opmux_selector {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str name;       /* appears in the event "selector.failed"; empty: "selector" */
  opmux_str_list reads; /* names of facts: "H", "rows", "dtype(x)", "tag" */
  /* Returns a position in `accepted`; -1 keeps the choice. Called from any thread; it must not call
     into the runtime. A position out of range keeps the choice and logs "selector.failed". */
  int64_t (*pick)(void* context, const opmux_selection* selection);
  void* context; /* first argument of `pick`; must stay valid like `pick` */
} opmux_selector;

/* Installs a selector, replacing an earlier one; null removes it. The struct is copied; `pick` and
   `context` must stay valid until it is replaced and running calls have returned. Fails with
   OPMUX_INVALID_ARGUMENT ("selector.function", "selector.reads" for a fact that no operator has) or
   OPMUX_FROZEN. */
OPMUX_EXPORT int32_t opmux_selector_set(opmux_runtime* runtime, const opmux_selector* selector,
                                        opmux_error* error);

/* ---- Frozen runtimes and lockfiles ----------------------------------------------------------- */

/*
 * Frozen runtimes and lockfiles.
 *
 * A lockfile records which implementation runs for each class of calls, so that another process
 * makes the same choices. Write one on a test machine:
 *
 *    size_t size = 0;
 *    if (opmux_runtime_lock(runtime, NULL, 0, &size, &error) == OPMUX_OK) {
 *      char* text = malloc(size + 1);
 *      if (text && opmux_runtime_lock(runtime, text, size + 1, &size, &error) == OPMUX_OK)
 *        fputs(text, stdout);
 *      free(text);
 *    }
 *
 * and apply it at the start of the service with opmux_runtime_freeze_by, or by mode static.
 */
/* Ends all changes: afterwards registrations, policies and switches of backends return
   OPMUX_FROZEN. Cannot be undone. Calls run the choice made for their class before freezing; other
   calls are decided as usual and reported as a deviation, as an event and in
   opmux_report.fell_back, or return OPMUX_FROZEN if the policy is strict. Freezing a frozen runtime
   succeeds. In mode static the choices come from the lockfile, and it may fail as
   opmux_runtime_freeze_by does. */
OPMUX_EXPORT int32_t opmux_runtime_freeze(opmux_runtime* runtime, opmux_error* error);
/* The same with the choices of a lockfile's text; `name` appears in messages. Fails with
   OPMUX_INVALID_ARGUMENT ("lock.text") if the text is not a lockfile, with OPMUX_FAILED
   ("lock.misfit") and all differences if it does not fit this runtime, with OPMUX_FROZEN if the
   runtime is frozen already. A failure changes nothing. */
OPMUX_EXPORT int32_t opmux_runtime_freeze_by(opmux_runtime* runtime, opmux_str lockfile,
                                             opmux_str name, opmux_error* error);
/* 1 if the runtime is frozen, else 0; null is not frozen. */
OPMUX_EXPORT int32_t opmux_runtime_frozen(const opmux_runtime* runtime);

/* Makes the decision that the first call with such arguments would make, without running it, and
   writes the id of the implementation. The decision becomes part of opmux_runtime_lock. Outputs may
   be left out. Fails as a call does, or with OPMUX_UNSUPPORTED ("lock.class") if such calls are
   decided each time. */
OPMUX_EXPORT int32_t opmux_decide(opmux_operator* op, const opmux_arg* args, uint32_t count,
                                  char* buffer, size_t capacity, size_t* size, opmux_error* error);
/* Writes the text of a lockfile with the choices made so far outside of scopes, by calls, plans and
   opmux_decide. */
OPMUX_EXPORT int32_t opmux_runtime_lock(opmux_runtime* runtime, char* buffer, size_t capacity,
                                        size_t* size, opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_C_POLICY_H */
