#include "regret/cells.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace opmux::bench {
namespace {

using Dims = std::vector<std::pair<std::string, int64_t>>;

constexpr int64_t kHidden = 2048, kHeadSize = 128, kHeads = kHidden / kHeadSize, kKvHeads = 8;
constexpr int64_t kKeys = 1024, kBlock = 16, kExperts = 8, kChosen = 2, kGroup = 128;

struct Shape {
  int64_t tokens;
  const char* dtype;
};

/// The sizes of one operator; empty if this shape is not measured.
struct Sizes {
  Dims dims;
  std::vector<std::string> dtypes = {};  ///< of tensors whose type is not that of the shape
};

Sizes rows(const Shape& s) { return {{{"rows", s.tokens}, {"H", kHidden}}}; }

Sizes linear(const Shape& s) { return {{{"rows", s.tokens}, {"N", kHidden}, {"K", kHidden}}}; }

Sizes linear_w8a8(const Shape& s) {
  return {linear(s).dims, {std::string("x=") + s.dtype, "weight=i8", "weight_scale=f32"}};
}

Sizes linear_w4a16(const Shape& s) {
  Sizes sizes{linear(s).dims, {"weight=u8", std::string("scale=") + s.dtype}};
  sizes.dims.insert(sizes.dims.end(), {{"KP", kHidden / 2}, {"G", kHidden / kGroup}});
  return sizes;
}

Sizes matmul(const Shape& s) { return {{{"M", s.tokens}, {"N", kHidden}, {"K", kHidden}}}; }

// Up to 16 tokens are one decode step of as many sequences; more are one prompt.
Sizes attention(const Shape& s) {
  const bool decode = s.tokens <= 16;
  return {{{"B", decode ? s.tokens : 1},
           {"S", decode ? 1 : s.tokens},
           {"T", decode ? kKeys : s.tokens},
           {"HQ", kHeads},
           {"HKV", kKvHeads},
           {"D", kHeadSize},
           {"DV", kHeadSize}}};
}

Sizes paged_attention(const Shape& s) {
  if (s.tokens > 128) return {};
  const int64_t blocks = kKeys / kBlock;
  return {{{"T", s.tokens},
           {"B", s.tokens},
           {"B1", s.tokens + 1},
           {"HQ", kHeads},
           {"HKV", kKvHeads},
           {"D", kHeadSize},
           {"DV", kHeadSize},
           {"NB", s.tokens * blocks},
           {"BS", kBlock},
           {"MB", blocks}},
          {"block_table=i32", "seq_lens=i32", "query_start=i32"}};
}

Sizes fused_moe(const Shape& s) {
  return {{{"rows", s.tokens},
           {"H", kHidden},
           {"I", kHidden / 2},
           {"I2", kHidden},
           {"E", kExperts},
           {"K", kChosen}},
          {"topk_weights=f32", "topk_ids=i32"}};
}

struct Measured {
  const char* op;
  Sizes (*sizes)(const Shape&);
};
constexpr Measured kMeasured[] = {{"attention", attention},
                                  {"fused_moe", fused_moe},
                                  {"linear", linear},
                                  {"linear_w4a16", linear_w4a16},
                                  {"linear_w8a8", linear_w8a8},
                                  {"matmul", matmul},
                                  {"paged_attention", paged_attention},
                                  {"silu_and_mul", rows},
                                  {"softmax", rows}};

}  // namespace

std::vector<tuner::CellSpec> regret_families(const std::string& op) {
  std::vector<tuner::CellSpec> families;
  for (tuner::CellSpec& spec : regret_cells(op)) {
    const auto varying = std::ranges::find_if(
        spec.dims, [](const auto& dim) { return dim.first == "M" || dim.first == "rows"; });
    // One of the cells that differ only in this number.
    if (varying == spec.dims.end() || varying->second != 1) continue;
    spec.over = tune::Range{varying->first, 1, 256};
    spec.dims.erase(varying);
    families.push_back(std::move(spec));
  }
  return families;
}

std::vector<tuner::CellSpec> regret_cells(const std::string& op) {
  std::vector<tuner::CellSpec> cells;
  for (const Measured& measured : kMeasured) {
    if (!op.empty() && op != measured.op) continue;
    for (const int64_t tokens : {1, 16, 64, 256}) {
      for (const char* const dtype : {"bf16", "f32"}) {
        Sizes sizes = measured.sizes({tokens, dtype});
        if (sizes.dims.empty()) continue;
        tuner::CellSpec spec{.op = measured.op, .dtypes = {dtype}, .dims = std::move(sizes.dims)};
        spec.dtypes.insert(spec.dtypes.end(), sizes.dtypes.begin(), sizes.dtypes.end());
        cells.push_back(std::move(spec));
      }
    }
  }
  return cells;
}

}  // namespace opmux::bench
