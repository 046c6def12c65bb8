#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/sample.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/common/integers.hpp"
#include "backends/simd/order-inl.hpp"
#include "backends/simd/sampler.hpp"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has no 64-bit lanes and is never called.

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

using U64 = hn::RepartitionToWide<U32>;

// Distance of logits below the largest, as defined by sampling_weight.
HWY_INLINE hn::Vec<U32> steps_below(V logits, const Weighing& weighing) {
  const F32 d;
  const U32 u;
  const V largest = hn::Set(d, weighing.largest), slope = hn::Set(d, weighing.slope);
  const V below = hn::Mul(hn::Mul(hn::Sub(largest, logits), slope), hn::Set(d, 0x1p24f));
  const auto steps = hn::BitCast(u, hn::ConvertTo(I32(), below));
  const auto some = hn::RebindMask(u, hn::Lt(below, hn::Set(d, 40 * 0x1p24f)));
  const auto most = hn::RebindMask(u, hn::Eq(logits, largest));
  return choose(most, hn::Zero(u), choose(some, steps, hn::Set(u, kNoWeight)));
}

// sampling_power of each lane; 0 for kNoWeight.
HWY_INLINE hn::Vec<U64> powers_of(hn::Vec<U64> steps) {
  const U64 d;
  const U32 u;
  const auto fraction = hn::BitCast(u, hn::And(steps, hn::Set(d, 0xffffff)));
  const auto term = [&](int i) { return hn::Set(d, static_cast<uint64_t>(kSamplingTerms[i])); };
  auto power = term(9);
  HWY_UNROLL(9)
  for (int i = 8; i >= 0; --i) {
    const auto product = hn::MulEven(hn::BitCast(u, power), fraction);
    power = hn::Sub(term(i), hn::ShiftRight<24>(product));
  }
  return hn::Shr(hn::ShiftLeft<9>(power), hn::ShiftRight<24>(steps));
}

// The weights of the even lanes, and of the odd lanes.
HWY_INLINE hn::Vec<U64> even_powers(hn::Vec<U32> steps) {
  return powers_of(hn::And(hn::BitCast(U64(), steps), hn::Set(U64(), 0xffffffff)));
}
HWY_INLINE hn::Vec<U64> odd_powers(hn::Vec<U32> steps) {
  return powers_of(hn::ShiftRight<32>(hn::BitCast(U64(), steps)));
}

// Calls fn(i, steps) for every i at which a vector begins; lanes past the end have no weight.
template <class T, class Fn>
HWY_INLINE void for_each_steps(const T* logits, size_t count, const Weighing& weighing,
                               const Fn& fn) {
  const U32 u;
  for_each_vector(
      count, [&](size_t i) { fn(i, steps_below(load(logits + i), weighing)); },
      [&](size_t i, size_t rest) {
        const auto steps = steps_below(load_part(logits + i, rest), weighing);
        fn(i, choose(hn::FirstN(u, rest), steps, hn::Set(u, kNoWeight)));
      });
}

template <class T>
uint64_t sum_of_weights(const T* logits, size_t count, const Weighing& weighing) {
  auto even = hn::Zero(U64()), odd = even;
  for_each_steps(logits, count, weighing, [&](size_t, hn::Vec<U32> steps) {
    even = hn::Add(even, even_powers(steps));
    odd = hn::Add(odd, odd_powers(steps));
  });
  return hn::GetLane(hn::SumOfLanes(U64(), hn::Add(even, odd)));
}

// Draws from all tokens: selects first a part of the row by the sums of the parts, then the token.
template <class T>
int64_t draw_token(const T* logits, size_t count, const Draw& draw, const Weighing& weighing) {
  constexpr size_t kParts = 256;
  const size_t size = (count / kParts + hn::Lanes(F32())) / hn::Lanes(F32()) * hn::Lanes(F32());
  uint64_t sums[kParts], total = 0;
  for (size_t i = 0; i < count; i += size) {
    total += sums[i / size] = sum_of_weights(logits + i, std::min(size, count - i), weighing);
  }
  uint64_t left = draw_below(total, random_bits(draw.seed, draw.offset));
  size_t part = 0;
  while (left >= sums[part]) left -= sums[part++];
  size_t token = part * size;
  for (uint64_t weight; left >= (weight = weighing(to_float(logits[token]))); ++token) {
    left -= weight;
  }
  return static_cast<int64_t>(token);
}

template <class T>
void fill(Histogram& histogram, const T* logits, size_t count, const Weighing& weighing) {
  constexpr size_t kLanes = hn::MaxLanes(F32());
  uint32_t steps[kLanes];
  uint64_t even[kLanes / 2], odd[kLanes / 2];
  for_each_steps(logits, count, weighing, [&](size_t, hn::Vec<U32> v) {
    hn::StoreU(v, U32(), steps);
    hn::StoreU(even_powers(v), U64(), even);
    hn::StoreU(odd_powers(v), U64(), odd);
    for (size_t i = 0; i < kLanes / 2; ++i) {
      histogram.add(steps[2 * i], even[i]);
      histogram.add(steps[2 * i + 1], odd[i]);
    }
  });
}

// Collects the tokens of buckets up to `last`; returns the end of the written candidates.
template <class T>
Candidate* collect(const T* logits, size_t count, const Weighing& weighing, size_t last,
                   Candidate* to) {
  constexpr size_t kLanes = hn::MaxLanes(F32());
  const auto limit = hn::Set(U32(), static_cast<uint32_t>(last + 1) << 18);
  for_each_steps(logits, count, weighing, [&](size_t first, hn::Vec<U32> v) {
    if (hn::AllFalse(U32(), hn::Lt(v, limit))) return;
    uint32_t steps[kLanes];
    hn::StoreU(v, U32(), steps);
    for (size_t i = 0; i < kLanes; ++i) {
      if (Histogram::bucket(steps[i]) > last) continue;
      *to++ = {to_float(logits[first + i]), static_cast<int32_t>(first + i)};
    }
  });
  return to;
}

// Returns the drawn token; -1 if no token has a logit above -inf. `room` has space for one
// candidate per token.
template <class T>
int64_t sample_row(const T* logits, size_t count, const Draw& draw, Candidate* room) {
  const float largest = max_over(logits, count, [](V v) { return rank_values(v); });
  if (largest == -std::numeric_limits<float>::infinity()) return -1;
  if (draw.temperature == 0) {
    const V wanted = hn::Set(F32(), largest);
    return static_cast<int64_t>(find_first(logits, count, [&](V v) { return hn::Eq(v, wanted); }));
  }
  const Weighing weighing{largest, sampling_slope(draw.temperature)};
  if (!draw.filters()) return draw_token(logits, count, draw, weighing);
  Histogram histogram;
  fill(histogram, logits, count, weighing);
  // Tokens without weight come after all others and are never drawn.
  const uint64_t asked = draw.top_k > 0 ? static_cast<uint64_t>(draw.top_k) : count;
  const uint64_t top_k = asked < histogram.tokens() ? asked : 0, total = histogram.total();
  if (top_k == 0 && draw.top_p >= 1) return draw_token(logits, count, draw, weighing);
  const double share = static_cast<double>(draw.top_p) * static_cast<double>(total);
  const size_t last = top_k > 0 ? histogram.reaches_count(top_k) : histogram.reaches_share(share);
  Candidate* const end = collect(logits, count, weighing, last, room);
  return draw_filtered(room, end, top_k, total, draw, weighing);
}

int32_t run_sample(const plugin::Call& call) {
  const plugin::TensorArg tokens = call.tensor(0), logits = call.tensor(1);
  const Rows to(tokens.c(), 0);
  const Draws draws = read_draws(call);
  if (const Wrong wrong = draws.wrong(to.count())) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const size_t count = static_cast<size_t>(logits.dim(-1));
  int32_t outcome = OPMUX_OK;
  const int32_t known = with_dtype(call, {logits}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(logits);
    outcome = for_each_sampled_row(call, [&](int64_t r, Candidate* room) {
      put_integer(tokens.c(), to.offset(r), sample_row(from[r], count, draws.of(r), room));
    });
  });
  return known == OPMUX_OK ? outcome : known;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#if HWY_ONCE
namespace opmux::backends::simd {

void add_sample(plugin::Backend& backend) {
  plugin::Caps caps = plugin::Caps{}.inner_contiguous("logits");
  for (const char* name : {"tokens", "top_k", "seed", "offset"}) {
    caps.dtypes(name, {plugin::i32, plugin::i64});
  }
  add(backend,
      {.name = "sample",
       .signature = "sample(out Tensor tokens[...], Tensor logits[..., V], "
                    "Tensor? temperature[...], Tensor? top_k[...], Tensor? top_p[...], "
                    "Tensor? seed[...], Tensor? offset[...]) where V < 16777216",
       .alike = {},
       .caps = caps,
       .workspace = sampling_workspace},
      OPMUX_SIMD_VARIANTS(run_sample));
}

}  // namespace opmux::backends::simd
#endif
