// The keys that a query may attend to, by position: causal and sliding-window attention.
#pragma once

#include <algorithm>
#include <cstdint>

namespace opmux::backends {

// Keys [first, last); empty if first == last.
struct KeyRange {
  int64_t first, last;
};

// Query i of `queries` has position i + keys - queries, so that the last query is aligned with the
// last key. A window w > 0 keeps only the keys less than w positions away; 0 disables the window.
inline KeyRange visible_keys(int64_t query, int64_t queries, int64_t keys, bool causal,
                             int64_t window) {
  const int64_t position = query + keys - queries;
  int64_t first = 0, last = keys;
  if (causal) last = std::min(last, position + 1);
  if (window > 0) {
    const int64_t reach = std::min(window, keys + queries);
    first = std::max(first, position - reach + 1);
    last = std::min(last, position + reach);
  }
  last = std::max<int64_t>(last, 0);
  return {std::min(first, last), last};
}

}  // namespace opmux::backends
