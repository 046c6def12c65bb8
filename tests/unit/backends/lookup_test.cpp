#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

Tensor make_ids(opmux_dtype dtype, std::vector<int64_t> shape, int64_t limit,
                Layout layout = Layout::contiguous) {
  return make(dtype, std::move(shape), layout).fill([=](int64_t i) {
    return double((i * 5 + 2) % limit);
  });
}

TEST(ReferenceEmbedding, copies_the_row_of_each_id_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (opmux_dtype integer : {kI32, kI64}) {
        for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {0}, {7}, {2, 3}, {2, 1, 3}}) {
          const Tensor weight = random(dtype, {11, 5}, layout);
          const Tensor ids = make_ids(integer, shape, 11);
          shape.push_back(5);
          Tensor y = make(dtype, shape, layout);
          const auto r = call(reference("embedding"), {arg(y), arg(weight), arg(ids)});
          ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
          for (int64_t i = 0; i < y.elements(); ++i) {
            ASSERT_EQ(y.bits(i), weight.bits(int64_t(ids.get(i / 5)) * 5 + i % 5));
          }
          EXPECT_TRUE(y.gaps_intact());
        }
      }
    }
  }
}

TEST(ReferenceEmbedding, rounds_to_another_type_and_keeps_the_bits_of_its_own) {
  Tensor weight = make(kF16, {1, 2}), ids = make_ids(kI64, {1}, 1), same = make(kF16, {1, 2});
  ids.set(0, 0);
  weight.set(0, 1.0009765625);
  weight.set_bits(1, 0x7c01);  // A signalling NaN, which arithmetic would make quiet.
  ASSERT_EQ(call(reference("embedding"), {arg(same), arg(weight), arg(ids)}).outcome, OPMUX_OK);
  EXPECT_EQ(same.bits(1), 0x7c01u);
  Tensor other = make(kBF16, {1, 2});
  ASSERT_EQ(call(reference("embedding"), {arg(other), arg(weight), arg(ids)}).outcome, OPMUX_OK);
  EXPECT_EQ(other.get(0), 1);
  EXPECT_TRUE(std::isnan(other.get(1)));
}

TEST(ReferenceEmbedding, id_out_of_range_is_an_invalid_argument_and_nothing_is_written) {
  for (int64_t bad : {-1, 4}) {
    const Tensor weight = random(kF32, {4, 3});
    Tensor ids = make_ids(kI32, {3}, 4), y = make(kF32, {3, 3});
    const Tensor before = y;
    ids.set(2, double(bad));
    const auto r = call(reference("embedding"), {arg(y), arg(weight), arg(ids)});
    EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
    EXPECT_EQ(r.code, "embedding.id");
    EXPECT_EQ(r.text, "id " + std::to_string(bad) + " of token 2 is outside [0, 4)");
    EXPECT_EQ(y.bytes(), before.bytes());
  }
}

struct Cache {
  Tensor k, v;
};

Cache make_cache(opmux_dtype dtype, Layout layout = Layout::contiguous) {
  return {random(dtype, {3, 4, 2, 5}, layout, 8), random(dtype, {3, 4, 2, 6}, layout, 9)};
}

Tensor make_slots(opmux_dtype dtype, const std::vector<int64_t>& slots) {
  return make(dtype, {int64_t(slots.size())}).fill([&](int64_t i) {
    return double(slots[size_t(i)]);
  });
}

CallResult write_cache(Cache& cache, const Tensor& k, const Tensor& v, const Tensor& slots) {
  return call(reference("reshape_and_cache"),
              {arg(cache.k), arg(cache.v), arg(k), arg(v), arg(slots)});
}

// Checks the cache contents: its 12 slots are consecutive rows of heads * size elements.
void expect_cache(const Tensor& cache, const Tensor& before, const Tensor& tokens,
                  const std::vector<int64_t>& slots) {
  const int64_t size = cache.dim(2) * cache.dim(3);
  for (int64_t i = 0; i < cache.elements(); ++i) {
    uint64_t bits = before.bits(i);
    for (size_t t = 0; t < slots.size(); ++t) {
      if (slots[t] == i / size) bits = tokens.bits(int64_t(t) * size + i % size);
    }
    ASSERT_EQ(cache.bits(i), bits) << "element " << i;
  }
  EXPECT_TRUE(cache.gaps_intact());
}

TEST(ReferenceCacheWrite, fills_slots_in_any_order_and_skips_negative_ones) {
  const std::vector<int64_t> slots = {11, -1, 0, 5, -7, 4};
  for (opmux_dtype dtype : kFloats) {
    for (opmux_dtype integer : {kI32, kI64}) {
      for (Layout layout : kLayouts) {
        SCOPED_TRACE(name(dtype) + " " + name(layout));
        Cache cache = make_cache(dtype, layout);
        const Cache before = cache;
        const Tensor k = random(dtype, {6, 2, 5}, layout), v = random(dtype, {6, 2, 6}, layout, 2);
        const auto r = write_cache(cache, k, v, make_slots(integer, slots));
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_cache(cache.k, before.k, k, slots);
        expect_cache(cache.v, before.v, v, slots);
      }
    }
  }
}

TEST(ReferenceCacheWrite, heads_may_be_outside_of_blocks_in_memory) {
  // [blocks, heads, places, size] in memory, viewed as [blocks, places, heads, size].
  Cache cache{Tensor(kF32, {3, 4, 2, 5}, {40, 5, 20, 1}),
              Tensor(kF32, {3, 4, 2, 6}, {48, 6, 24, 1})};
  const Cache before = cache;
  const Tensor k = random(kF32, {1, 2, 5}), v = random(kF32, {1, 2, 6});
  ASSERT_EQ(write_cache(cache, k, v, make_slots(kI64, {7})).outcome, OPMUX_OK);
  expect_cache(cache.k, before.k, k, {7});
  expect_cache(cache.v, before.v, v, {7});
}

TEST(ReferenceCacheWrite, the_last_token_of_a_slot_wins_and_no_token_writes_nothing) {
  Cache cache = make_cache(kF32);
  const Cache before = cache;
  const Tensor k = random(kF32, {2, 2, 5}), v = random(kF32, {2, 2, 6});
  ASSERT_EQ(write_cache(cache, k, v, make_slots(kI64, {3, 3})).outcome, OPMUX_OK);
  expect_cache(cache.k, before.k, k, {3, 3});
  Cache idle = before;
  ASSERT_EQ(
      write_cache(idle, make(kF32, {0, 2, 5}), make(kF32, {0, 2, 6}), make_slots(kI64, {})).outcome,
      OPMUX_OK);
  EXPECT_EQ(idle.k.bytes(), before.k.bytes());
}

TEST(ReferenceCacheWrite, rounds_to_the_type_of_the_cache) {
  Cache cache = make_cache(kBF16);
  Tensor k = random(kF32, {1, 2, 5}), v = random(kF32, {1, 2, 6});
  ASSERT_EQ(write_cache(cache, k, v, make_slots(kI64, {0})).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(cache.k.bits(i), Format::of(kBF16).encode(k.get(i))) << i;
  }
}

TEST(ReferenceCacheWrite, slot_out_of_range_is_an_invalid_argument_and_nothing_is_written) {
  Cache cache = make_cache(kF32);
  const Cache before = cache;
  const Tensor k = random(kF32, {2, 2, 5}), v = random(kF32, {2, 2, 6});
  const auto r = write_cache(cache, k, v, make_slots(kI64, {1, 12}));
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, "cache.slot");
  EXPECT_EQ(r.text, "slot 12 of token 1 is not below 12");
  EXPECT_EQ(cache.k.bytes(), before.k.bytes());
  EXPECT_EQ(cache.v.bytes(), before.v.bytes());
}

}  // namespace
}  // namespace opmux::testing
