#include <cmath>

#include "conformance/shaper.hpp"
#include "operators/common/cases/heads.hpp"
#include "operators/common/cases/indices.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_paged_attention(Draft& draft) {
  shape_heads(draft);
  draft.dim("B") = draft.size(5);
  draft.dim("B1") = draft.dim("B") + 1;
  draft.dim("NB") = draft.size(12);
  draft.dim("BS") = draft.size(16);
  draft.dim("MB") = draft.size(4);
  draft.dim("T") = draft.random().chance(40) ? draft.dim("B") : draft.size_or_none(14);
  for (const char* name : {"block_table", "seq_lens", "query_start"}) {
    draft.dtype(name, draw_index_type(draft));
  }
}

/// Decoding has one query per sequence; otherwise the starts are random and ascending.
void fill_starts(Draft& draft) {
  const int64_t sequences = draft.dim("B"), tokens = draft.dim("T");
  std::vector<double>& start = draft.tensor("query_start").values;
  const bool decode = tokens == sequences && draft.random().chance(70);
  for (size_t b = 0; b < start.size(); ++b) {
    start[b] =
        static_cast<double>(decode ? static_cast<int64_t>(b) : draft.random().between(0, tokens));
  }
  if (!decode) std::ranges::sort(start);
  start.front() = 0;
  start.back() = static_cast<double>(tokens);
}

/// Lengths are mostly at least the number of queries, as far as the table has room.
void fill_lengths(Draft& draft) {
  const std::vector<double>& start = draft.tensor("query_start").values;
  std::vector<double>& lengths = draft.tensor("seq_lens").values;
  const int64_t most = draft.dim("MB") * draft.dim("BS");
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto queries = static_cast<int64_t>(start[b + 1] - start[b]);
    const int64_t least = draft.random().chance(85) ? std::min(queries, most) : 0;
    lengths[b] = static_cast<double>(draft.random().between(least, most));
  }
}

/// Entries of blocks that no key uses are arbitrary, even out of range.
void fill_blocks(Draft& draft) {
  Random& random = draft.random();
  const int64_t blocks = draft.dim("MB"), places = draft.dim("BS");
  const std::vector<double>& lengths = draft.tensor("seq_lens").values;
  std::vector<double>& table = draft.tensor("block_table").values;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto b = static_cast<int64_t>(i) / blocks, block = static_cast<int64_t>(i) % blocks;
    const bool needed = static_cast<double>(block * places) < lengths[static_cast<size_t>(b)];
    table[i] = static_cast<double>(needed ? random.below(draft.dim("NB"))
                                          : random.pick<int64_t>({-1, 1 << 20, 0}));
  }
}

void poison_unreached(Draft& draft) {
  const int64_t places = draft.dim("BS"), blocks = draft.dim("MB");
  std::vector<bool> reached(static_cast<size_t>(draft.dim("NB") * places));
  for (int64_t b = 0; b < draft.dim("B"); ++b) {
    const auto keys = static_cast<int64_t>(draft.tensor("seq_lens").values[static_cast<size_t>(b)]);
    for (int64_t j = 0; j < keys; ++j) {
      const double block =
          draft.tensor("block_table").values[static_cast<size_t>(b * blocks + j / places)];
      reached[static_cast<size_t>(static_cast<int64_t>(block) * places + j % places)] = true;
    }
  }
  for (const char* name : {"k_cache", "v_cache"}) {
    CaseTensor& cache = draft.tensor(name);
    const auto per_place = static_cast<size_t>(cache.shape[2] * cache.shape[3]);
    for (size_t i = 0; i < cache.values.size(); ++i) {
      if (!reached[i / per_place]) cache.values[i] = NAN;
    }
  }
}

/// Removes broadcasts, because the fill functions assign independent values to all elements.
void make_plain(Draft& draft) {
  for (const char* name : {"block_table", "seq_lens", "query_start", "k_cache", "v_cache"}) {
    CaseTensor& tensor = draft.tensor(name);
    if (std::ranges::find(tensor.strides, 0) != tensor.strides.end()) set_contiguous(tensor);
  }
}

void fill_paged_attention(Draft& draft) {
  make_plain(draft);
  fill_queries(draft, "q", "k_cache");
  fill_starts(draft);
  fill_lengths(draft);
  fill_blocks(draft);
  poison_unreached(draft);
  Random& random = draft.random();
  if (!random.chance(4)) return;
  const char* wrong = random.pick({"seq_lens", "query_start"});
  draft.tensor(wrong).values.back() = static_cast<double>(random.pick<int64_t>({-1, 1000000}));
  draft.make_invalid();
}

}  // namespace

Shaper paged_attention() {
  return {.op = "paged_attention", .shape = shape_paged_attention, .fill = fill_paged_attention};
}

}  // namespace opmux::conformance::operators
