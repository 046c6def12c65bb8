#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/rotary_embedding.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/common/checked_indices.hpp"
#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

constexpr int64_t kGptj = 1;

// Cosines and sines of some pairs of one token, in f32 and in the order of the head's elements.
struct Turn {
  static constexpr size_t kMost = 128;
  float cos[kMost], sin[kMost];
};

// Rotates the pairs (first[i], second[i]).
template <class T>
void rotate_halves(T* first, T* second, size_t pairs, const Turn& turn) {
  const auto lower = [](V a, V b, V c, V s) { return hn::NegMulAdd(b, s, hn::Mul(a, c)); };
  const auto upper = [](V a, V b, V c, V s) { return hn::MulAdd(a, s, hn::Mul(b, c)); };
  for_each_vector(
      pairs,
      [&](size_t i) {
        const V a = load(first + i), b = load(second + i);
        const V c = load(turn.cos + i), s = load(turn.sin + i);
        store(lower(a, b, c, s), first + i);
        store(upper(a, b, c, s), second + i);
      },
      [&](size_t i, size_t rest) {
        const V a = load_part(first + i, rest), b = load_part(second + i, rest);
        const V c = load_part(turn.cos + i, rest), s = load_part(turn.sin + i, rest);
        store_part(lower(a, b, c, s), first + i, rest);
        store_part(upper(a, b, c, s), second + i, rest);
      });
}

// Rotates pairs of neighbours. Each cosine is stored twice; each sine is stored twice, first
// negated.
template <class T>
void rotate_neighbours(T* head, size_t pairs, const Turn& turn) {
  const auto rotate = [](V v, V c, V s) {
    return hn::MulAdd(v, c, hn::Mul(hn::Reverse2(F32(), v), s));
  };
  map(head, 2 * pairs, rotate, head, turn.cos, turn.sin);
}

// Reads from the table, which has R / 2 cosines from `at` on, followed by as many sines.
Turn read_turn(const AnyFloats& table, int64_t at, int64_t half, int64_t pairs, bool neighbours) {
  Turn turn;
  table.widen(at, static_cast<size_t>(pairs), turn.cos);
  table.widen(at + half, static_cast<size_t>(pairs), turn.sin);
  for (int64_t i = neighbours ? pairs - 1 : -1; i >= 0; --i) {
    turn.cos[2 * i] = turn.cos[2 * i + 1] = turn.cos[i];
    turn.sin[2 * i + 1] = turn.sin[i];
    turn.sin[2 * i] = -turn.sin[i];
  }
  return turn;
}

// Rotates pairs [first, first + pairs) of all heads of one token.
template <class T>
void rotate_heads(T* token, const plugin::TensorArg& heads, int64_t first, int64_t pairs,
                  int64_t half, bool neighbours, const Turn& turn) {
  const size_t count = static_cast<size_t>(pairs);
  for (int64_t h = 0; h < heads.dim(-2); ++h, token += heads.stride(-2)) {
    if (neighbours) {
      rotate_neighbours(token + 2 * first, count, turn);
    } else {
      rotate_halves(token + first, token + half + first, count, turn);
    }
  }
}

int32_t run_rotary_embedding(const plugin::Call& call) {
  const plugin::TensorArg q = call.tensor(0), k = call.optional_tensor(1), cos_sin = call.tensor(3);
  const Indices positions(call.tensor(2).c());
  if (const Wrong wrong = wrong_position(cos_sin.c(), positions)) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const bool neighbours = call.i64(4) == kGptj;
  const int64_t half = cos_sin.dim(1) / 2, most = Turn::kMost / (neighbours ? 2 : 1);
  const int64_t cost = q.dim(-1) * (q.dim(-2) + (k ? k.dim(-2) : 0));
  const AnyFloats table(&cos_sin.c(), 0);
  return with_dtype(call, {q, k}, [&]<class T>(Tag<T>) {
    const RowsOf<T> q_tokens(q, 2), k_tokens(k ? k : q, 2);
    for_each_row(call, positions.count(), cost, [&](int64_t t) {
      const int64_t at = positions[t] * cos_sin.stride(0);
      for (int64_t first = 0; first < half; first += most) {
        const int64_t pairs = std::min(most, half - first);
        const Turn turn = read_turn(table, at + first, half, pairs, neighbours);
        rotate_heads(q_tokens[t], q, first, pairs, half, neighbours, turn);
        if (k) rotate_heads(k_tokens[t], k, first, pairs, half, neighbours, turn);
      }
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_rotary_embedding(plugin::Backend& backend) {
  add(backend,
      {.name = "rotary_embedding",
       .signature = "rotary_embedding(inout Tensor q[..., HQ, D], inout Tensor? k[..., HKV, D], "
                    "Tensor positions[...], Tensor cos_sin[P, R], "
                    "enum{neox, gptj} style = neox) where R <= D && R % 2 == 0",
       .alike = {dtype_of("q"), dtype_of("k")},
       .caps = plugin::Caps{}
                   .inner_contiguous("q")
                   .inner_contiguous("k")
                   .inner_contiguous("cos_sin")
                   .dtypes("positions", {plugin::i32, plugin::i64})},
      OPMUX_SIMD_VARIANTS(run_rotary_embedding));
}

}  // namespace opmux::backends::simd
#endif
