// bf16 products with more than a few rows, on AMX tiles. Sixteen rows of the weight, in place, are
// one operand, so only x, which is smaller, has to be repacked.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "backends/simd/amx.hpp"
#include "backends/simd/implementation.hpp"

namespace opmux::backends::simd {
namespace {

// With fewer rows gemv.cpp is as fast; with more, libraries that block for the caches are faster.
constexpr Range kFast{.dim = "rows", .least = 5, .most = 1024};
constexpr int64_t kSide = kTileSide, kDepth = kTileDepth, kLine = kTileLine;
constexpr int64_t kColumns = 64;  // Columns of y per task.
constexpr int64_t kSums = kSide * kSide;

constexpr int64_t padded(int64_t depth) { return (depth + kDepth - 1) / kDepth * kDepth; }

// Packs a group of sixteen rows of x: for each pair of elements along K, the pairs of all sixteen
// rows. Missing pairs and rows are zero.
void pack_group(const RowsOf<const BF16>& x, int64_t group, int64_t depth, uint32_t* to) {
  const int64_t rows = std::min(kSide, x.count() - group * kSide), whole = depth / 2;
  if (rows < kSide) std::fill_n(to, padded(depth) / 2 * kSide, 0u);
  std::fill(to + whole * kSide, to + padded(depth) / 2 * kSide, 0u);
  for (int64_t r = 0; r < rows; ++r) {
    const BF16* const from = x[group * kSide + r];
    for (int64_t pair = 0; pair < whole; ++pair) {
      std::memcpy(to + pair * kSide + r, from + 2 * pair, sizeof *to);
    }
    if (depth % 2 != 0) std::memcpy(to + whole * kSide + r, from + depth - 1, sizeof *from);
  }
}

struct Product {
  const BF16* weight;
  int64_t stride, depth;
  const uint32_t* x;  // Packed groups of rows.
  const opmux_tensor* bias;
  const RowsOf<BF16>& y;

  int64_t group_size() const { return padded(depth) / 2 * kSide; }
};

// Copies the last elements of some rows and pads them with zeros, because a tile load would read
// past the end.
OPMUX_TILES void copy_ends(const BF16* from, int64_t stride, int64_t count, int64_t rows,
                           BF16* to) {
  const __mmask32 rest = (1u << count) - 1;
  for (int64_t r = 0; r < rows; ++r) {
    _mm512_store_si512(to + r * kDepth, _mm512_maskz_loadu_epi16(rest, from + r * stride));
  }
}

// Computes the sums of kPanels panels (sixteen rows of the weight each) and kGroups groups of x.
// Each pair gives sixteen columns of y for sixteen rows of x. Adds in the order of K, so that
// results do not depend on the other rows.
template <int kPanels, int kGroups>
OPMUX_TILES void add_up(const Product& p, int64_t column, int64_t group, float* sums) {
  const BF16* weight = p.weight + column * p.stride;
  const uint32_t* x = p.x + group * p.group_size();
  int64_t stride = p.stride * int64_t{sizeof(BF16)}, panel = kSide * p.stride;
  _tile_zero(0);
  if constexpr (kPanels == 2) _tile_zero(1);
  if constexpr (kGroups == 2) _tile_zero(2);
  if constexpr (kPanels * kGroups == 4) _tile_zero(3);
  alignas(64) BF16 ends[kPanels * kSide * kDepth];
  for (int64_t k = 0; k < p.depth; k += kDepth, weight += kDepth, x += kDepth / 2 * kSide) {
    if (k + kDepth > p.depth) {
      copy_ends(weight, p.stride, p.depth - k, kPanels * kSide, ends);
      weight = ends;
      stride = kLine;
      panel = kSide * kDepth;
    }
    _tile_loadd(4, weight, stride);
    _tile_loadd(6, x, kLine);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels == 2) {
      _tile_loadd(5, weight + panel, stride);
      _tile_dpbf16ps(1, 5, 6);
    }
    if constexpr (kGroups == 2) {
      _tile_loadd(7, x + p.group_size(), kLine);
      _tile_dpbf16ps(2, 4, 7);
    }
    if constexpr (kPanels * kGroups == 4) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, kLine);
  if constexpr (kPanels == 2) _tile_stored(1, sums + kSums, kLine);
  if constexpr (kGroups == 2) _tile_stored(2, sums + 2 * kSums, kLine);
  if constexpr (kPanels * kGroups == 4) _tile_stored(3, sums + 3 * kSums, kLine);
}

// Writes one tile of sums, whose rows are columns of y, to the rows of y.
OPMUX_TILES void store_tile(const Product& p, int64_t column, int64_t group, const float* sums) {
  alignas(64) float bias[kSide];
  if (p.bias) load_strided(*p.bias, column * p.bias->strides[0], p.bias->strides[0], kSide, bias);
  const __m512i columns =
      _mm512_setr_epi32(0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240);
  const int64_t rows = std::min(kSide, p.y.count() - group * kSide);
  for (int64_t r = 0; r < rows; ++r) {
    // The unmasked form starts from an undefined value, about which g++ warns.
    __m512 row = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, columns, sums + r, 4);
    if (p.bias) row = _mm512_add_ps(row, _mm512_load_ps(bias));
    const __m256bh rounded = _mm512_cvtneps_pbh(row);
    std::memcpy(p.y[group * kSide + r] + column, &rounded, sizeof rounded);
  }
}

template <int kPanels, int kGroups>
OPMUX_TILES void compute(const Product& p, int64_t column, int64_t group) {
  alignas(64) float sums[4 * kSums];
  add_up<kPanels, kGroups>(p, column, group, sums);
  for (int g = 0; g < kGroups; ++g) {
    for (int n = 0; n < kPanels; ++n) {
      store_tile(p, column + n * kSide, group + g, sums + (2 * g + n) * kSums);
    }
  }
}

template <int kPanels>
OPMUX_TILES void compute_panels(const Product& p, int64_t column, int64_t groups) {
  int64_t group = 0;
  for (; group + 2 <= groups; group += 2) compute<kPanels, 2>(p, column, group);
  if (group < groups) compute<kPanels, 1>(p, column, group);
}

OPMUX_TILES void compute_columns(const Product& p, int64_t first, int64_t last) {
  use_tiles(TileShapes{});
  const int64_t groups = (p.y.count() + kSide - 1) / kSide;
  int64_t column = first;
  for (; column + 2 * kSide <= last; column += 2 * kSide) compute_panels<2>(p, column, groups);
  if (column < last) compute_panels<1>(p, column, groups);
  _tile_release();
}

int32_t run_linear_amx(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2);
  const plugin::TensorArg bias = call.optional_tensor(3);
  const int64_t depth = weight.dim(1), width = weight.dim(0);
  const RowsOf<const BF16> from(x);
  const RowsOf<BF16> to(y);
  auto* const packed = static_cast<uint32_t*>(call.workspace());
  const Product p{
      weight.data<const BF16>(), weight.stride(0), depth, packed, bias ? &bias.c() : nullptr, to};
  call.for_each((from.count() + kSide - 1) / kSide, [&](int64_t group) {
    pack_group(from, group, depth, packed + group * p.group_size());
  });
  call.for_each((width + kColumns - 1) / kColumns, [&](int64_t b) {
    compute_columns(p, b * kColumns, std::min(width, (b + 1) * kColumns));
  });
  return OPMUX_OK;
}

uint64_t packed_bytes(const plugin::Call& call) {
  const plugin::TensorArg x = call.tensor(1);
  const int64_t groups = (Rows(x.c()).count() + kSide - 1) / kSide;
  return static_cast<uint64_t>(groups * kSide * padded(x.dim(-1))) * sizeof(BF16);
}

int32_t verify_tiles(const plugin::Facts&, opmux_error* why) { return tiles_are_lent(why); }

}  // namespace

void add_linear_amx(plugin::Backend& backend) {
  const Operator op{.name = "linear",
                    .signature =
                        "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], "
                        "Tensor? bias[N])",
                    .alike = {},
                    .caps = plugin::Caps{}
                                .inner_contiguous()
                                .dtypes("y", {plugin::bf16})
                                .dtypes("x", {plugin::bf16})
                                .dtypes("weight", {plugin::bf16})
                                .at_least("N", kSide)
                                .multiple_of("N", kSide)
                                .at_least("K", kDepth),
                    .workspace = packed_bytes,
                    .fast = kFast};
  backend.add(
      implementation(op, kAmx).verify(verify_tiles, {{OPMUX_FACT_DTYPE, "x"}}).run(run_linear_amx));
}

}  // namespace opmux::backends::simd
