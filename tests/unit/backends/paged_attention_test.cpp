#include "expected_attention.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

// Sequences over a cache of 8 blocks of 4 places, 2 heads of 8 (keys) and 6 (values).
struct PagedCall {
  explicit PagedCall(opmux_dtype dtype = kF32, Layout layout = Layout::contiguous,
                     opmux_dtype integer = kI32)
      : k_cache(random(dtype, {8, 4, 2, 8}, layout, 2)),
        v_cache(random(dtype, {8, 4, 2, 6}, layout, 3)),
        dtype_(dtype),
        layout_(layout),
        integer_(integer) {}

  // One sequence: how many keys and queries it has, and the blocks that hold the keys.
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
  CallResult run(const AttentionCase& c = {.causal = true}) {
    q = random(dtype_, {starts.back(), 4, 8}, layout_);
    y = make(dtype_, {starts.back(), 4, 6}, layout_);
    // Entries that no key needs hold nonsense.
    Tensor table = make(integer_, {int64_t(tables.size()), 5}, layout_);
    table.fill([](int64_t) { return -99; });
    for (size_t b = 0; b < tables.size(); ++b) {
      for (size_t i = 0; i < tables[b].size(); ++i) {
        table.set(int64_t(b * 5 + i), double(tables[b][i]));
      }
    }
    const Tensor seq_lens = integers(lens), query_start = integers(starts);
    return call(reference("paged_attention"),
                {arg(y), arg(q), arg(k_cache), arg(v_cache), arg(table), arg(seq_lens),
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

// Decode, a chunk of a prefill behind a cached prefix, a whole prefill, blocks out of order, one
// of them shared.
void add_mixed(PagedCall& paged) {
  paged.add(17, 1, {5, 0, 3, 1, 7});
  paged.add(9, 4, {2, 6, 0});
  paged.add(8, 8, {4, 5});
  paged.add(1, 1, {3});
}

TEST(ReferencePagedAttention, serves_decode_and_prefill_at_once_for_every_type_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (opmux_dtype integer : {kI32, kI64}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout));
        PagedCall paged(dtype, layout, integer);
        add_mixed(paged);
        const auto r = paged.run();
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(paged.y, paged.expected());
      }
    }
  }
}

TEST(ReferencePagedAttention, honours_window_sink_softcap_scale_and_causal) {
  const Tensor sink = random(kF32, {4}, Layout::contiguous, 5);
  for (const AttentionCase& c :
       {AttentionCase{.causal = true, .window = 3}, AttentionCase{.causal = true, .sink = &sink},
        AttentionCase{.causal = true, .scale = 2, .softcap = 1.5}, AttentionCase{},
        AttentionCase{.causal = true, .window = 6, .softcap = 20, .sink = &sink}}) {
    PagedCall paged;
    add_mixed(paged);
    ASSERT_EQ(paged.run(c).outcome, OPMUX_OK);
    expect_close(paged.y, paged.expected(c));
  }
}

TEST(ReferencePagedAttention, a_sequence_without_keys_gives_zeros_and_one_without_queries_nothing) {
  PagedCall paged;
  paged.add(0, 2, {});
  paged.add(7, 0, {1, 2});
  paged.add(3, 5, {6});
  ASSERT_EQ(paged.run().outcome, OPMUX_OK);
  expect_close(paged.y, paged.expected());
  for (int64_t i = 0; i < 4 * 4 * 6; ++i) EXPECT_EQ(paged.y.get(i), 0) << i;
  EXPECT_NE(paged.y.get(4 * 4 * 6), 0);
}

TEST(ReferencePagedAttention, places_behind_the_end_of_a_sequence_are_not_read) {
  PagedCall paged;
  paged.add(6, 1, {2, 3});
  for (int64_t i = 0; i < paged.k_cache.elements(); ++i) {
    const int64_t slot = i / 16;
    if (slot < 8 || slot >= 14) paged.k_cache.set(i, NAN);
  }
  for (int64_t i = 0; i < paged.v_cache.elements(); ++i) {
    const int64_t slot = i / 12;
    if (slot < 8 || slot >= 14) paged.v_cache.set(i, NAN);
  }
  ASSERT_EQ(paged.run().outcome, OPMUX_OK);
  expect_close(paged.y, paged.expected());
}

void expect_refused(PagedCall& paged, const std::string& code, const std::string& text) {
  const auto r = paged.run();
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, code);
  EXPECT_EQ(r.text, text);
  const Tensor untouched = make(kF32, {paged.starts.back(), 4, 6});
  EXPECT_EQ(paged.y.bytes(), untouched.bytes());
}

TEST(ReferencePagedAttention, wrong_data_is_the_callers_fault_and_nothing_is_written) {
  for (int64_t block : {-1, 8}) {
    PagedCall paged;
    paged.add(4, 1, {0});
    paged.add(5, 1, {1, block});
    expect_refused(paged, "paged.block",
                   "block " + std::to_string(block) + " of sequence 1 is outside [0, 8)");
  }
  for (int64_t keys : {-1, 21}) {
    PagedCall paged;
    paged.add(keys, 1, {0, 1, 2, 3, 4});
    expect_refused(paged, "paged.seq_len",
                   "length " + std::to_string(keys) + " of sequence 0 is outside [0, 20]");
  }
  PagedCall falls;
  falls.add(4, 3, {0});
  falls.add(4, -1, {0});
  falls.add(4, 1, {0});
  expect_refused(falls, "paged.query_start", "query_start must rise from 0 to T, which is 3");
  PagedCall late;
  late.starts = {1};
  late.add(4, 3, {0});
  expect_refused(late, "paged.query_start", "query_start must rise from 0 to T, which is 4");
}

}  // namespace
}  // namespace opmux::testing
