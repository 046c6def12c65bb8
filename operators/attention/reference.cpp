#include "backends/common/attention_mask.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/attend.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

int32_t read_mask(const plugin::Call& call, const plugin::TensorArg& q, const plugin::TensorArg& k,
                  AttentionMask& mask) {
  const plugin::TensorArg given = call.optional_tensor(4);
  if (!given) return OPMUX_OK;
  if (mask.broadcast(given.c(), {q.dim(0), q.dim(2), q.dim(1), k.dim(1)})) return OPMUX_OK;
  return plugin::invalid(call.error(), "attention.mask", mask_refusal(given.c()));
}

// Returns a function (j, d) that reads element d of key j, for one head of one batch entry of k or
// v.
auto head_of(const plugin::TensorArg& tensor, int64_t batch, int64_t head) {
  return
      [&tensor, offset = batch * tensor.stride(0) + head * tensor.stride(2)](int64_t j, int64_t d) {
        return element_at(tensor.c(), offset + j * tensor.stride(1) + d * tensor.stride(3));
      };
}

int32_t run_attention(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), q = call.tensor(1), k = call.tensor(2),
                          v = call.tensor(3);
  AttendOptions options;
  AttentionMask mask;
  int32_t outcome = read_options(call, 5, false, options);
  if (outcome == OPMUX_OK) outcome = read_mask(call, q, k, mask);
  if (outcome != OPMUX_OK) return outcome;
  const int64_t queries = q.dim(1), group = q.dim(2) / k.dim(2);
  Attend attend(options, k.dim(1), q.dim(3), v.dim(3));
  std::vector<float> row(static_cast<size_t>(q.dim(3))), result(static_cast<size_t>(v.dim(3)));
  for (int64_t b = 0; b < q.dim(0); ++b) {
    for (int64_t h = 0; h < q.dim(2); ++h) {
      if (h % group == 0) {
        attend.load(k.dim(1), head_of(k, b, h / group), head_of(v, b, h / group));
      }
      for (int64_t s = 0; s < queries; ++s) {
        load_row(q.c(), b * q.stride(0) + s * q.stride(1) + h * q.stride(2), q.dim(3), row.data());
        attend.query(
            row.data(), s, queries, h, [&](int64_t j) { return mask.at(b, h, s, j); },
            result.data());
        store_row(y.c(), b * y.stride(0) + s * y.stride(1) + h * y.stride(2), y.dim(3),
                  result.data());
      }
    }
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl attention() {
  constexpr std::string_view kSignature =
      "attention(out Tensor y[B, S, HQ, DV], Tensor q[B, S, HQ, D], Tensor k[B, T, HKV, D], "
      "Tensor v[B, T, HKV, DV], Tensor? mask[*], bool causal = false, float? scale, "
      "int window = 0, Tensor? sink[HQ], float softcap = 0) where HQ % HKV == 0 && window >= 0";
  plugin::Caps caps;
  caps.dtypes("mask", {plugin::boolean, plugin::f32, plugin::f16, plugin::bf16});
  return scalar("attention", kSignature, caps).run(run_attention);
}

}  // namespace opmux::backends::reference
