#include "backends/simd/implementation.hpp"
#include "backends/simd/int4_tiles.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/linear_w4a16.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Outputs and input rows whose sums are in registers at a time.
constexpr size_t kOutputs = 4, kInputs = 4;

template <class T>
void split_row(const T* x, size_t bytes, float* to) {
  for_each_tile(bytes, [&](size_t first, size_t count, size_t at) {
    float wide[2 * kTileBytes] = {};
    map(wide, 2 * count, [](V v) { return v; }, x + 2 * first);
    const size_t half = filled_up(count);
    for (size_t i = 0; i < half; i += hn::Lanes(F32())) {
      V even, odd;
      hn::LoadInterleaved2(F32(), wide + 2 * i, even, odd);
      store(even, to + at + i);
      store(odd, to + at + half + i);
    }
  });
}

// Dequantizes the weights of one output to f32, some bytes at a time.
class Int4Row {
 public:
  Int4Row(const plugin::Call& call, int64_t n)
      : bytes_(call.tensor(2).data<const uint8_t>() + n * call.tensor(2).stride(0)),
        scale_(call.tensor(3)),
        zero_point_(call.optional_tensor(4)),
        n_(n),
        group_(static_cast<size_t>(call.tensor(2).dim(1) / scale_.dim(1))) {}

  // Dequantizes bytes [first, first + count): even inputs to `even`, odd inputs to `odd`, both
  // padded with zeros.
  void widen(size_t first, size_t count, float* even, float* odd) const {
    for (size_t done = 0; done < count;) {
      const size_t g = (first + done) / group_;
      const size_t part = std::min(count - done, (g + 1) * group_ - first - done);
      widen_group(bytes_ + first + done, part, static_cast<int64_t>(g), even + done, odd + done);
      done += part;
    }
    for (size_t i = count; i < filled_up(count); ++i) even[i] = odd[i] = 0;
  }

 private:
  void widen_group(const uint8_t* from, size_t count, int64_t g, float* even, float* odd) const {
    const V scale = hn::Set(F32(), element_at(scale_.c(), place(scale_, g)));
    const V zero = hn::Set(F32(), zero_point(g));
    const auto value = [&](hn::Vec<U32> integer) {
      return hn::Mul(hn::Sub(hn::ConvertTo(F32(), hn::BitCast(I32(), integer)), zero), scale);
    };
    const auto low = [](hn::Vec<U32> byte) { return hn::And(byte, hn::Set(U32(), 15)); };
    for_each_vector(
        count,
        [&](size_t i) {
          const auto byte = load_bytes(from + i);
          store(value(low(byte)), even + i);
          store(value(hn::ShiftRight<4>(byte)), odd + i);
        },
        [&](size_t i, size_t rest) {
          uint8_t lanes[kMostLanes] = {};
          std::memcpy(lanes, from + i, rest);
          const auto byte = load_bytes(lanes);
          store_part(value(low(byte)), even + i, rest);
          store_part(value(hn::ShiftRight<4>(byte)), odd + i, rest);
        });
  }

  static HWY_INLINE hn::Vec<U32> load_bytes(const uint8_t* from) {
    return hn::PromoteTo(U32(), hn::LoadU(hn::Rebind<uint8_t, F32>(), from));
  }

  int64_t place(const plugin::TensorArg& t, int64_t g) const {
    return n_ * t.stride(0) + g * t.stride(1);
  }

  float zero_point(int64_t g) const {
    if (!zero_point_) return 8;
    const int64_t at = place(zero_point_, g);
    if (zero_point_.is(plugin::u8)) return zero_point_.data<const uint8_t>()[at];
    return element_at(zero_point_.c(), at);
  }

  const uint8_t* bytes_;
  plugin::TensorArg scale_, zero_point_;
  int64_t n_;
  size_t group_;  // In bytes.
};

// sums[i][j] += x[i] . w[j] over `count` floats, a multiple of every vector length. The order of
// additions does not depend on the other rows and outputs.
template <size_t kRows>
HWY_INLINE void add_products(const float* x, size_t x_stride, const float* w, size_t count,
                             float* sums, size_t sums_stride, size_t outputs) {
  V total[kRows][kOutputs];
  for (auto& row : total) std::fill_n(row, kOutputs, hn::Zero(F32()));
  for (size_t k = 0; k < count; k += hn::Lanes(F32())) {
    V weight[kOutputs];
    for (size_t j = 0; j < kOutputs; ++j) weight[j] = load(w + j * 2 * kTileBytes + k);
    for (size_t i = 0; i < kRows; ++i) {
      const V input = load(x + i * x_stride + k);
      for (size_t j = 0; j < kOutputs; ++j) {
        total[i][j] = hn::MulAdd(input, weight[j], total[i][j]);
      }
    }
  }
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < outputs; ++j) {
      sums[i * sums_stride + j] += hn::GetLane(hn::SumOfLanes(F32(), total[i][j]));
    }
  }
}

// Operands of one call: x, split and widened, and the sums of all rows and outputs.
struct Int4Product {
  const float* x;
  size_t rows, bytes;
  float* sums;
  size_t width;
};

// Multiplies all rows with `outputs` adjacent outputs.
void multiply_outputs(const plugin::Call& call, const Int4Product& p, size_t n, size_t outputs) {
  const size_t stride = row_floats(p.bytes);
  alignas(64) float w[kOutputs][2 * kTileBytes] = {};
  for_each_tile(p.bytes, [&](size_t first, size_t count, size_t at) {
    const size_t half = filled_up(count);
    for (size_t j = 0; j < outputs; ++j) {
      const Int4Row row(call, static_cast<int64_t>(n + j));
      row.widen(first, count, w[j], w[j] + half);
    }
    size_t r = 0;
    for (; r + kInputs <= p.rows; r += kInputs) {
      add_products<kInputs>(p.x + r * stride + at, stride, w[0], 2 * half, p.sums + r * p.width + n,
                            p.width, outputs);
    }
    for (; r < p.rows; ++r) {
      add_products<1>(p.x + r * stride + at, stride, w[0], 2 * half, p.sums + r * p.width + n,
                      p.width, outputs);
    }
  });
}

int32_t run_linear_w4a16(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2);
  const size_t bytes = static_cast<size_t>(weight.dim(1)), width = static_cast<size_t>(y.dim(-1));
  return with_dtype(call, {y, x}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(x);
    const RowsOf<T> to(y);
    const int64_t rows = from.count();
    float* const split = static_cast<float*>(call.workspace());
    float* const sums = split + static_cast<size_t>(rows) * row_floats(bytes);
    for_each_row(call, rows, x.dim(-1) + y.dim(-1), [&](int64_t r) {
      const size_t row = static_cast<size_t>(r);
      split_row(from[r], bytes, split + row * row_floats(bytes));
      std::fill_n(sums + row * width, width, 0.0F);
    });
    const Int4Product product{split, static_cast<size_t>(rows), bytes, sums, width};
    const int64_t blocks = static_cast<int64_t>((width + kOutputs - 1) / kOutputs);
    for_each_row(call, blocks, x.dim(-1) * static_cast<int64_t>(kOutputs) * (1 + rows / 4),
                 [&](int64_t block) {
                   const size_t n = static_cast<size_t>(block) * kOutputs;
                   multiply_outputs(call, product, n, std::min(kOutputs, width - n));
                 });
    const plugin::TensorArg bias = call.optional_tensor(5);
    const AnyFloats added(bias ? &bias.c() : nullptr, 0);
    for_each_row(call, rows, y.dim(-1), [&](int64_t r) {
      const float* row = sums + static_cast<size_t>(r) * width;
      for_each_vector(
          width, [&](size_t i) { store(hn::Add(load(row + i), added.load_at(i)), to[r] + i); },
          [&](size_t i, size_t rest) {
            const V sum = hn::Add(load_part(row + i, rest), added.load_part_at(i, rest));
            store_part(sum, to[r] + i, rest);
          });
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {
namespace {

// Requires even groups, so that the two inputs of a byte belong to the same group.
int32_t verify_groups(const plugin::Facts& facts, opmux_error* why) {
  const auto k = facts.dim("K"), g = facts.dim("G");
  if (facts.dtype("x") != facts.dtype("y")) {
    return plugin::decline(why, "verify.dtype", "y must have the dtype of x");
  }
  if (k && g && *g > 0 && *k / *g % 2 == 0) return OPMUX_OK;
  return plugin::decline(why, "verify.group", "K / G must be even");
}

uint64_t w4a16_workspace(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), weight = call.tensor(2);
  const uint64_t bytes = static_cast<uint64_t>(weight.dim(1));
  const uint64_t row = row_floats(bytes) + static_cast<uint64_t>(y.dim(-1));
  return static_cast<uint64_t>(Rows(y.c()).count()) * row * sizeof(float);
}

}  // namespace

void add_linear_w4a16(plugin::Backend& backend) {
  const Operator op{
      .name = "linear_w4a16",
      .signature =
          "linear_w4a16(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, KP], "
          "const Tensor scale[N, G], const Tensor? zero_point[N, G], Tensor? bias[N]) "
          "where K == 2 * KP && K % G == 0",
      .alike = {},
      .caps = plugin::Caps{}
                  .inner_contiguous("y")
                  .inner_contiguous("x")
                  .inner_contiguous("weight")
                  .inner_contiguous("bias")
                  .dtypes("weight", {plugin::u8})
                  .dtypes("zero_point", {plugin::u8, plugin::f32, plugin::f16, plugin::bf16})};
  const std::pair<const Target&, RunFn> variants[] = {{kAvx512, HWY_CHOOSE_AVX3(run_linear_w4a16)},
                                                      {kAvx2, HWY_CHOOSE_AVX2(run_linear_w4a16)},
                                                      {kSse4, HWY_CHOOSE_SSE4(run_linear_w4a16)}};
  for (const auto& [target, run] : variants) {
    if (!run) continue;
    backend.add(implementation(op, target)
                    .verify(verify_groups, {{OPMUX_FACT_DTYPE, "x"},
                                            {OPMUX_FACT_DTYPE, "y"},
                                            {OPMUX_FACT_DIM, "K"},
                                            {OPMUX_FACT_DIM, "G"}})
                    .workspace(w4a16_workspace)
                    .run(run));
  }
}

}  // namespace opmux::backends::simd
#endif
