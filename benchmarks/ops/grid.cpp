#include "grid.hpp"

#include <algorithm>
#include <functional>

namespace opmux::bench {
namespace {

constexpr int64_t kHeadSize = 128, kKvHeads = 8, kKeys = 1024, kBlock = 16, kVocabulary = 8192,
                  kExperts = 8, kChosen = 2, kGroup = 128;

struct Shape {
  int64_t tokens, hidden;
  DType dtype;
  int64_t heads() const { return hidden / kHeadSize; }
};

using Sort = Argument::Kind;
using Shape64 = std::vector<int64_t>;

Argument tensor(std::string name, DType dtype, Shape64 shape) {
  return {std::move(name), Sort::tensor, dtype, std::move(shape)};
}
Argument filled(std::string name, DType dtype, Shape64 shape, Fill fill, double number = 0) {
  return {std::move(name), Sort::tensor, dtype, std::move(shape), fill, number};
}
Argument constant(std::string name, DType dtype, Shape64 shape) {
  return {std::move(name), Sort::constant, dtype, std::move(shape)};
}
Argument absent(std::string name) { return {std::move(name)}; }
Argument flag(std::string name, bool value) {
  return {std::move(name), Sort::boolean, {}, {}, Fill::uniform, value ? 1.0 : 0.0};
}

// Arguments and work of one operator at one shape; `arguments` is empty if the shape is not
// measured.
struct Call {
  std::vector<Argument> arguments;
  double work = 0;
};
using Maker = std::function<Call(const Shape&)>;

double product(std::initializer_list<int64_t> numbers) {
  double result = 1;
  for (const int64_t number : numbers) result *= static_cast<double>(number);
  return result;
}

Call rms_norm(const Shape& s) {
  const Shape64 rows = {s.tokens, s.hidden};
  return {{tensor("y", s.dtype, rows), tensor("x", s.dtype, rows),
           tensor("weight", s.dtype, {s.hidden})},
          product({s.tokens, s.hidden})};
}

Call fused_add_rms_norm(const Shape& s) {
  const Shape64 rows = {s.tokens, s.hidden};
  return {{tensor("x", s.dtype, rows), tensor("residual", s.dtype, rows),
           tensor("weight", s.dtype, {s.hidden})},
          product({s.tokens, s.hidden})};
}

Call layer_norm(const Shape& s) {
  Call call = rms_norm(s);
  call.arguments.push_back(tensor("bias", s.dtype, {s.hidden}));
  return call;
}

Call gate(const Shape& s) {
  return {
      {tensor("y", s.dtype, {s.tokens, s.hidden}), tensor("x", s.dtype, {s.tokens, 2 * s.hidden})},
      product({s.tokens, s.hidden})};
}

Call softmax(const Shape& s) {
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}), tensor("x", s.dtype, {s.tokens, s.hidden})},
          product({s.tokens, s.hidden})};
}

Call rotary_embedding(const Shape& s) {
  return {{tensor("q", s.dtype, {s.tokens, s.heads(), kHeadSize}),
           tensor("k", s.dtype, {s.tokens, kKvHeads, kHeadSize}),
           filled("positions", i64, {s.tokens}, Fill::counting),
           tensor("cos_sin", s.dtype, {4096, kHeadSize})},
          product({s.tokens, s.hidden})};
}

Call matmul(const Shape& s) {
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}), tensor("a", s.dtype, {s.tokens, s.hidden}),
           tensor("b", s.dtype, {s.hidden, s.hidden})},
          product({s.tokens, s.hidden, s.hidden})};
}

Call linear(const Shape& s) {
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}), tensor("x", s.dtype, {s.tokens, s.hidden}),
           constant("weight", s.dtype, {s.hidden, s.hidden})},
          product({s.tokens, s.hidden, s.hidden})};
}

// Up to 16 tokens are one decode step of as many sequences; more are one prompt.
Call attention(const Shape& s) {
  const bool decode = s.tokens <= 16;
  const int64_t batch = decode ? s.tokens : 1, queries = decode ? 1 : s.tokens;
  const int64_t keys = decode ? kKeys : s.tokens;
  return {{tensor("y", s.dtype, {batch, queries, s.heads(), kHeadSize}),
           tensor("q", s.dtype, {batch, queries, s.heads(), kHeadSize}),
           tensor("k", s.dtype, {batch, keys, kKvHeads, kHeadSize}),
           tensor("v", s.dtype, {batch, keys, kKvHeads, kHeadSize}), absent("mask"),
           flag("causal", true)},
          product({2, batch, queries, keys, s.hidden})};
}

Call paged_attention(const Shape& s) {
  if (s.tokens > 128) return {};
  const int64_t blocks = kKeys / kBlock;
  const Shape64 cache = {s.tokens * blocks, kBlock, kKvHeads, kHeadSize};
  return {{tensor("y", s.dtype, {s.tokens, s.heads(), kHeadSize}),
           tensor("q", s.dtype, {s.tokens, s.heads(), kHeadSize}),
           tensor("k_cache", s.dtype, cache), tensor("v_cache", s.dtype, cache),
           filled("block_table", i32, {s.tokens, blocks}, Fill::counting),
           filled("seq_lens", i32, {s.tokens}, Fill::value, kKeys),
           filled("query_start", i32, {s.tokens + 1}, Fill::counting)},
          product({2, s.tokens, kKeys, s.hidden})};
}

Call reshape_and_cache(const Shape& s) {
  const int64_t blocks = std::max<int64_t>(64, 2 * s.tokens / kBlock);
  const Shape64 cache = {blocks, kBlock, kKvHeads, kHeadSize};
  const Shape64 rows = {s.tokens, kKvHeads, kHeadSize};
  return {{tensor("k_cache", s.dtype, cache), tensor("v_cache", s.dtype, cache),
           tensor("k", s.dtype, rows), tensor("v", s.dtype, rows),
           filled("slots", i64, {s.tokens}, Fill::counting)},
          product({s.tokens, kKvHeads, kHeadSize})};
}

Call embedding(const Shape& s) {
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}),
           tensor("weight", s.dtype, {kVocabulary, s.hidden}),
           filled("ids", i64, {s.tokens}, Fill::below, kVocabulary)},
          product({s.tokens, s.hidden})};
}

Call topk_softmax(const Shape& s) {
  constexpr int64_t experts = 128, chosen = 8;
  return {{tensor("weights", f32, {s.tokens, chosen}),
           filled("ids", i32, {s.tokens, chosen}, Fill::value),
           tensor("logits", s.dtype, {s.tokens, experts})},
          product({s.tokens, experts})};
}

Call fused_moe(const Shape& s) {
  const int64_t inner = s.hidden / 2;
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}), tensor("x", s.dtype, {s.tokens, s.hidden}),
           constant("w1", s.dtype, {kExperts, 2 * inner, s.hidden}),
           constant("w2", s.dtype, {kExperts, s.hidden, inner}),
           filled("topk_weights", f32, {s.tokens, kChosen}, Fill::value, 0.5),
           filled("topk_ids", i32, {s.tokens, kChosen}, Fill::below, kExperts)},
          product({3, s.tokens, kChosen, s.hidden, inner})};
}

Call linear_w8a8(const Shape& s) {
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}),
           tensor("x", s.dtype, {s.tokens, s.hidden}),
           {"weight", Sort::constant, i8, {s.hidden, s.hidden}, Fill::below, 100},
           {"weight_scale", Sort::tensor, f32, {s.hidden}, Fill::value, 0.01}},
          product({s.tokens, s.hidden, s.hidden})};
}

Call linear_w4a16(const Shape& s) {
  return {{tensor("y", s.dtype, {s.tokens, s.hidden}),
           tensor("x", s.dtype, {s.tokens, s.hidden}),
           {"weight", Sort::constant, u8, {s.hidden, s.hidden / 2}, Fill::below, 256},
           filled("scale", s.dtype, {s.hidden, s.hidden / kGroup}, Fill::value, 0.01)},
          product({s.tokens, s.hidden, s.hidden})};
}

Call sample(const Shape& s) {
  if (s.tokens > 1024) return {};
  return {{filled("tokens", i64, {s.tokens}, Fill::value),
           tensor("logits", s.dtype, {s.tokens, 8 * s.hidden}),
           filled("temperature", f32, {s.tokens}, Fill::value, 0.8)},
          product({s.tokens, 8, s.hidden})};
}

struct Measured {
  const char* op;
  Maker make;
};

const std::vector<Measured>& makers() {
  static const std::vector<Measured> all = {{"attention", attention},
                                            {"embedding", embedding},
                                            {"fused_add_rms_norm", fused_add_rms_norm},
                                            {"fused_moe", fused_moe},
                                            {"gelu_and_mul", gate},
                                            {"layer_norm", layer_norm},
                                            {"linear", linear},
                                            {"linear_w4a16", linear_w4a16},
                                            {"linear_w8a8", linear_w8a8},
                                            {"matmul", matmul},
                                            {"paged_attention", paged_attention},
                                            {"reshape_and_cache", reshape_and_cache},
                                            {"rms_norm", rms_norm},
                                            {"rotary_embedding", rotary_embedding},
                                            {"sample", sample},
                                            {"silu_and_mul", gate},
                                            {"softmax", softmax},
                                            {"topk_softmax", topk_softmax}};
  return all;
}

// In ascending order, so that an implementation's speed at a small shape tells whether a large one
// would take too long.
std::vector<Shape> shapes(Size size) {
  const std::vector<int64_t> tokens = size == Size::full
                                          ? std::vector<int64_t>{1, 16, 128, 1024, 4096}
                                          : std::vector<int64_t>{1, 16, 64, 256};
  const std::vector<int64_t> hidden =
      size == Size::full ? std::vector<int64_t>{2048, 4096} : std::vector<int64_t>{2048};
  std::vector<Shape> all;
  for (const int64_t t : tokens) {
    for (const int64_t h : hidden) {
      for (const DType dtype : {bf16, f32}) all.push_back({t, h, dtype});
    }
  }
  return all;
}

}  // namespace

std::vector<Point> grid(Size size) {
  std::vector<Point> points;
  for (const Measured& measured : makers()) {
    for (const Shape& s : shapes(size)) {
      Call call = measured.make(s);
      if (call.arguments.empty()) continue;
      points.push_back({measured.op,
                        name_of(s.dtype) + " tokens=" + std::to_string(s.tokens) +
                            " hidden=" + std::to_string(s.hidden),
                        s.tokens, s.hidden, s.dtype, call.work, std::move(call.arguments)});
    }
  }
  return points;
}

}  // namespace opmux::bench
