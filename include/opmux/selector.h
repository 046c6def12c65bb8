/*
 * Selector: a function of the program that may replace choices. Part of <opmux/opmux.h>, which
 * includes this header.
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
#ifndef OPMUX_SELECTOR_H
#define OPMUX_SELECTOR_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

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
  opmux_str name;       /* appears in explanations; empty: "selector" */
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

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_SELECTOR_H */
