#include <vector>

#include "backends/common/checked_indices.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

constexpr int64_t kGptj = 1;

// Rotates pair i by the angle whose cosine is table[i] and whose sine is table[pairs + i]. A pair
// is (i, i + pairs) in the neox style and (2i, 2i + 1) in the gptj style.
void rotate(std::vector<float>& head, const std::vector<float>& table, bool neighbours) {
  const size_t pairs = table.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    float& first = head[neighbours ? 2 * i : i];
    float& second = head[neighbours ? 2 * i + 1 : i + pairs];
    const float a = first, b = second, cos = table[i], sin = table[pairs + i];
    first = a * cos - b * sin;
    second = b * cos + a * sin;
  }
}

// Rotates the first table.size() elements of each head of one token; the rest is unchanged.
void rotate_token(const plugin::TensorArg& heads, int64_t offset, const std::vector<float>& table,
                  bool neighbours, std::vector<float>& head) {
  for (int64_t h = 0; h < heads.dim(-2); ++h) {
    const int64_t at = offset + h * heads.stride(-2);
    load_row(heads.c(), at, int64_t(head.size()), head.data());
    rotate(head, table, neighbours);
    store_row(heads.c(), at, int64_t(head.size()), head.data());
  }
}

int32_t run_rotary_embedding(const plugin::Call& call) {
  const plugin::TensorArg q = call.tensor(0), k = call.optional_tensor(1), cos_sin = call.tensor(3);
  const Indices positions(call.tensor(2).c());
  if (const Wrong wrong = wrong_position(cos_sin.c(), positions)) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const int64_t rotated = cos_sin.dim(1);
  const bool neighbours = call.i64(4) == kGptj;
  std::vector<float> table(static_cast<size_t>(rotated)), head(static_cast<size_t>(rotated));
  const Rows q_tokens(q.c(), 2), k_tokens(k ? k.c() : q.c(), 2);
  for (int64_t t = 0; t < positions.count(); ++t) {
    load_row(cos_sin.c(), positions[t] * cos_sin.stride(0), rotated, table.data());
    rotate_token(q, q_tokens.offset(t), table, neighbours, head);
    if (k) rotate_token(k, k_tokens.offset(t), table, neighbours, head);
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl rotary_embedding() {
  constexpr std::string_view kSignature =
      "rotary_embedding(inout Tensor q[..., HQ, D], inout Tensor? k[..., HKV, D], "
      "Tensor positions[...], Tensor cos_sin[P, R], enum{neox, gptj} style = neox) "
      "where R <= D && R % 2 == 0";
  plugin::Caps caps;
  caps.dtypes("positions", {plugin::i32, plugin::i64});
  return scalar("rotary_embedding", kSignature, caps).run(run_rotary_embedding);
}

}  // namespace opmux::backends::reference
