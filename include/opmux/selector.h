/*
 * A program's own word in choosing, for programs written in C: a part of <opmux/opmux.h>, which
 * includes it.
 */
#ifndef OPMUX_SELECTOR_H
#define OPMUX_SELECTOR_H

#include <opmux/opmux.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One fact of a call, as a selector sees it. */
typedef struct opmux_selector_fact {
  opmux_str name; /* as in opmux_selector.reads */
  opmux_str text; /* "bf16", "cpu:0", "4096" */
  int64_t number;
  int32_t present; /* 0: the call, or its operator, has no such thing */
} opmux_selector_fact;

typedef struct opmux_selection {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str op;
  const opmux_str* accepted; /* ids, best first; at least one */
  size_t accepted_count;
  const opmux_selector_fact* facts; /* those of opmux_selector.reads, in that order */
  size_t fact_count;
} opmux_selection;

/* A program's own word in choosing: may pick another one of the candidates that policy,
   capabilities and health accept. Asked when a class of calls is decided, not at each call. */
typedef struct opmux_selector {
  uint32_t struct_size;
  uint32_t reserved;
  opmux_str name;       /* for explain; empty: "selector" */
  opmux_str_list reads; /* names of facts: "H", "rows", "dtype(x)", "tag" */
  /* The position of one in `accepted`; -1 leaves the choice as it is. From any thread; must not
     call into the runtime. */
  int64_t (*pick)(void* context, const opmux_selection* selection);
  void* context;
} opmux_selector;

/* Null takes it back. */
OPMUX_EXPORT int32_t opmux_selector_set(opmux_runtime* runtime, const opmux_selector* selector,
                                        opmux_error* error);

#ifdef __cplusplus
}
#endif

#endif /* OPMUX_SELECTOR_H */
