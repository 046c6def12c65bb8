// Calls of paged_attention with their expected results. Shared by the tests of all backends.
#pragma once

#include <span>

#include "expected_attention.hpp"

namespace opmux::testing {

// Sequences over a cache of 8 blocks of 4 positions, 2 heads of 8 (keys) and 6 (values).
struct PagedCase {
  explicit PagedCase(opmux_dtype dtype = kF32, Layout layout = Layout::contiguous,
                     opmux_dtype integer = kI32)
      : k_cache(random(dtype, {8, 4, 2, 8}, layout, 2)),
        v_cache(random(dtype, {8, 4, 2, 6}, layout, 3)),
        dtype_(dtype),
        layout_(layout),
        integer_(integer) {}

  // Adds one sequence: its numbers of keys and queries, and the blocks that hold the keys.
  void add(int64_t keys, int64_t queries, std::vector<int64_t> blocks) {
    lens.push_back(keys);
    starts.push_back(starts.back() + queries);
    tables.push_back(std::move(blocks));
  }
  Tensor integers(const std::vector<int64_t>& values) const {
    return make(integer_, {int64_t(values.size())}).fill([&](int64_t i) {
      return double(values[size_t(i)]);
    });
  }
  CallResult run(const opmux_impl& impl, const AttentionCase& c = {.causal = true}) {
    q = random(dtype_, {starts.back(), 4, 8}, layout_);
    y = make(dtype_, {starts.back(), 4, 6}, layout_);
    // Entries that no key needs hold garbage.
    Tensor table = make(integer_, {int64_t(tables.size()), 5}, layout_);
    table.fill([](int64_t) { return -99; });
    for (size_t b = 0; b < tables.size(); ++b) {
      for (size_t i = 0; i < tables[b].size(); ++i) {
        table.set(int64_t(b * 5 + i), double(tables[b][i]));
      }
    }
    const Tensor seq_lens = integers(lens), query_start = integers(starts);
    return call(impl, {arg(y), arg(q), arg(k_cache), arg(v_cache), arg(table), arg(seq_lens),
                       arg(query_start), bool_arg(c.causal), c.scale ? arg(*c.scale) : absent(),
                       int_arg(c.window), arg(c.sink), arg(c.softcap)});
  }
  std::vector<Expected> expected(const AttentionCase& c = {.causal = true}) const {
    std::vector<Expected> result;
    for (size_t b = 0; b < lens.size(); ++b) {
      const int64_t queries = starts[b + 1] - starts[b];
      for (int64_t i = 0; i < queries * 4; ++i) {
        const int64_t s = i / 4, h = i % 4, token = starts[b] + s;
        const auto place = [&](int64_t j) {
          return (tables[b][size_t(j / 4)] * 4 + j % 4) * 2 + h / 2;
        };
        const OneQuery one{lens[b],
                           8,
                           6,
                           [&](int64_t d) { return q.get((token * 4 + h) * 8 + d); },
                           [&](int64_t j, int64_t d) { return k_cache.get(place(j) * 8 + d); },
                           [&](int64_t j, int64_t d) { return v_cache.get(place(j) * 6 + d); },
                           [&](int64_t j) { return sees_by_position(c, s, queries, lens[b], j); },
                           [](int64_t) { return 0.0; }};
        const auto row = expected_query(c, one, h);
        result.insert(result.end(), row.begin(), row.end());
      }
    }
    return result;
  }

  Tensor k_cache, v_cache;
  Tensor q{kF32, {0}}, y{kF32, {0}};
  std::vector<int64_t> lens, starts = {0};
  std::vector<std::vector<int64_t>> tables;

 private:
  opmux_dtype dtype_;
  Layout layout_;
  opmux_dtype integer_;
};

// Decode, a chunk of a prefill after a cached prefix, a whole prefill; blocks out of order, one of
// them shared.
inline void add_mixed(PagedCase& paged) {
  paged.add(17, 1, {5, 0, 3, 1, 7});
  paged.add(9, 4, {2, 6, 0});
  paged.add(8, 8, {4, 5});
  paged.add(1, 1, {3});
}

// Decode and prefill in one call, for every dtype, integer type and layout.
inline void expect_mixed_batches(const opmux_impl& implementation,
                                 std::span<const Layout> layouts) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : layouts) {
      for (opmux_dtype integer : {kI32, kI64}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout));
        PagedCase paged(dtype, layout, integer);
        add_mixed(paged);
        const auto r = paged.run(implementation);
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(paged.y, paged.expected());
      }
    }
  }
}

inline void expect_options_honoured(const opmux_impl& implementation) {
  const Tensor sink = random(kF32, {4}, Layout::contiguous, 5);
  for (const AttentionCase& c :
       {AttentionCase{.causal = true, .window = 3}, AttentionCase{.causal = true, .sink = &sink},
        AttentionCase{.causal = true, .scale = 2, .softcap = 1.5}, AttentionCase{},
        AttentionCase{.causal = true, .window = 6, .softcap = 20, .sink = &sink}}) {
    PagedCase paged;
    add_mixed(paged);
    ASSERT_EQ(paged.run(implementation, c).outcome, OPMUX_OK);
    expect_close(paged.y, paged.expected(c));
  }
}

}  // namespace opmux::testing
