#include "simd.hpp"

#include <random>

namespace opmux::testing {
namespace {

class Simd : public SimdTest {
 protected:
  const opmux_impl& rms_norm() const { return simd("rms_norm"); }
  const opmux_impl& silu_and_mul() const { return simd("silu_and_mul"); }

  // The norm of ones is one, so y becomes the weight, converted to the type of y.
  Tensor convert(const Tensor& weight, opmux_dtype to) const {
    Tensor x = make(to, {1, weight.dim(0)}), y = x;
    x.fill([](int64_t) { return 1; });
    EXPECT_EQ(call(rms_norm(), {arg(y), arg(x), arg(weight), arg(0.0)}).outcome, OPMUX_OK);
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, Simd, kSimdTargets, simd_target_name);

TEST_P(Simd, rms_norm_is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (const auto& shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        const Tensor x = random(dtype, shape, layout);
        const Tensor weight = random(dtype, {shape.back()}, layout, 2);
        Tensor y = make(dtype, shape, layout);
        const auto r = call(rms_norm(), {arg(y), arg(x), arg(weight), arg(1e-6)});
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, expected_rms_norm(x, &weight, 1e-6, lanes_error(shape.back())));
      }
    }
  }
}

TEST_P(Simd, rms_norm_is_right_for_every_length_up_to_several_vectors) {
  for (int64_t hidden = 1; hidden <= 140; ++hidden) {
    SCOPED_TRACE(hidden);
    const Tensor x = random(kBF16, {2, hidden}, Layout::padded_rows);
    Tensor y = make(kBF16, {2, hidden}, Layout::padded_rows);
    ASSERT_EQ(call(rms_norm(), {arg(y), arg(x), absent(), arg(1e-6)}).outcome, OPMUX_OK);
    expect_close(y, expected_rms_norm(x, nullptr, 1e-6, lanes_error(hidden)));
  }
}

TEST_P(Simd, rms_norm_takes_a_weight_of_any_type_or_none) {
  for (opmux_dtype dtype : kFloats) {
    const Tensor x = random(dtype, {3, 71});
    for (opmux_dtype weight_dtype : kFloats) {
      const Tensor weight = random(weight_dtype, {71}, Layout::contiguous, 2);
      for (const Tensor* given : {&weight, static_cast<const Tensor*>(nullptr)}) {
        Tensor y = make(dtype, {3, 71});
        ASSERT_EQ(call(rms_norm(), {arg(y), arg(x), arg(given), arg(0.5)}).outcome, OPMUX_OK);
        expect_close(y, expected_rms_norm(x, given, 0.5, lanes_error(71)));
      }
    }
  }
}

TEST_P(Simd, rms_norm_rounds_before_the_weight_on_request) {
  // The mean of ones is one, so the normalized value is known exactly.
  const float normal = 1 / std::sqrt(1.5f);
  for (opmux_dtype dtype : kFloats) {
    const Tensor x = make(dtype, {2, 71}).fill([](int64_t) { return 1; });
    for (opmux_dtype weight_dtype : {kF16, kBF16}) {
      const Tensor weight = random(weight_dtype, {71}, Layout::contiguous, 2);
      const Tensor* const weights[] = {&weight, nullptr};
      for (const Tensor* given : weights) {
        Tensor y = make(dtype, {2, 71});
        ASSERT_EQ(call(rms_norm(), {arg(y), arg(x), arg(given), arg(0.5), bool_arg(true)}).outcome,
                  OPMUX_OK);
        const Format between = Format::of(given ? weight_dtype : dtype), out = Format::of(dtype);
        const double rounded = between.decode(between.encode(normal));
        for (int64_t i = 0; i < y.elements(); ++i) {
          ASSERT_EQ(y.bits(i), out.encode(rounded * weight_at(given, i % 71))) << i;
        }
      }
    }
  }
}

TEST_P(Simd, silu_and_mul_is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (auto shape : kShapes) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " H=" + std::to_string(shape.back()));
        Tensor y = make(dtype, shape, layout);
        shape.back() *= 2;
        const Tensor x = random(dtype, shape, layout);
        const auto r = call(silu_and_mul(), {arg(y), arg(x)});
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y,
                     expected_gated(x, silu, [](double v) { return (8 + std::fabs(v)) * kEps; }));
      }
    }
  }
}

TEST_P(Simd, silu_of_large_values_and_nan_is_right) {
  Tensor x = make(kF32, {1, 12}), y = make(kF32, {1, 6});
  const double values[] = {-1e30, -200, -0.0, 200, HUGE_VAL, NAN};
  x.fill([&](int64_t i) { return i < 6 ? values[i] : 1; });
  ASSERT_EQ(call(silu_and_mul(), {arg(y), arg(x)}).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(0), 0);
  EXPECT_EQ(y.get(1), 0);
  EXPECT_EQ(y.get(2), 0);
  EXPECT_EQ(y.get(3), 200);
  EXPECT_EQ(y.get(4), HUGE_VAL);
  EXPECT_TRUE(std::isnan(y.get(5)));
}

TEST_P(Simd, reads_every_f16_and_bf16_value_exactly) {
  for (opmux_dtype dtype : {kF16, kBF16}) {
    Tensor all = make(dtype, {65536});
    auto* bits = static_cast<uint16_t*>(all.c().data);
    for (uint32_t i = 0; i < 65536; ++i) bits[i] = uint16_t(i);
    const Tensor wide = convert(all, kF32);
    for (int64_t i = 0; i < 65536; ++i) {
      const double meaning = Format::of(dtype).decode(uint32_t(i));
      if (std::isnan(meaning)) {
        ASSERT_TRUE(std::isnan(wide.get(i))) << name(dtype) << " " << i;
      } else {
        ASSERT_EQ(wide.get(i), meaning) << name(dtype) << " " << i;
        ASSERT_EQ(wide.bits(i) >> 31, uint64_t(i >> 15));
      }
    }
  }
}

TEST_P(Simd, rounds_to_nearest_even) {
  std::mt19937 engine(3);
  for (opmux_dtype dtype : {kF16, kBF16}) {
    const Format format = Format::of(dtype);
    Tensor wide = make(kF32, {200000});
    wide.fill([&](int64_t i) {
      // Ties, their neighbours, and arbitrary bits.
      const uint32_t below = uint32_t(engine()) % (format.encode(HUGE_VAL) - 1);
      const float tie = float((format.decode(below) + format.decode(below + 1)) / 2);
      const float any = std::bit_cast<float>(uint32_t(engine()));
      const float kinds[] = {tie, -std::nextafter(tie, 0.0f), std::nextafter(tie, HUGE_VALF),
                             std::isnan(any) ? 0 : any};
      return double{kinds[i % 4]};
    });
    const Tensor narrow = convert(wide, dtype);
    for (int64_t i = 0; i < wide.elements(); ++i) {
      ASSERT_EQ(narrow.bits(i), format.encode(wide.get(i))) << name(dtype) << " " << wide.get(i);
    }
  }
}

TEST_P(Simd, nan_stays_nan_in_narrow_types) {
  for (opmux_dtype dtype : {kF16, kBF16}) {
    Tensor wide = make(kF32, {4});
    auto* bits = static_cast<uint32_t*>(wide.c().data);
    const uint32_t nans[] = {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu};
    std::copy(std::begin(nans), std::end(nans), bits);
    const Tensor narrow = convert(wide, dtype);
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(narrow.get(i))) << name(dtype) << i;
  }
}

TEST_P(Simd, runs_the_code_of_its_instruction_set) {
  // 2^24 + 1 is 2^24 in f32, so ones that are added in the lane of the large square are lost. Which
  // ones are lost depends on the number of lanes: four sums of 4, 8 or 16 lanes.
  const std::string variant = GetParam();
  const int64_t period = variant == "sse4" ? 16 : variant == "avx2" ? 32 : 64, hidden = 4096;
  for (int64_t distance : {16, 32}) {
    Tensor x = make(kF32, {1, hidden}), y = x;
    const auto is_one = [&](int64_t i) { return i % (2 * distance) == distance; };
    x.fill([&](int64_t i) { return i == 0 ? 4096 : is_one(i) ? 1 : 0; });
    double sum = 0x1p24;
    for (int64_t i = 1; i < hidden; ++i) sum += is_one(i) && i % period != 0;
    ASSERT_EQ(call(rms_norm(), {arg(y), arg(x), absent(), arg(0.0)}).outcome, OPMUX_OK);
    EXPECT_NEAR(y.get(0), 4096 / std::sqrt(sum / double(hidden)), 64 * 4 * kEps);
  }
}

TEST_P(Simd, a_row_has_the_same_bits_in_any_batch_and_on_any_number_of_threads) {
  const Tensor x = random(kF32, {70, 1031});
  Tensor y = make(kF32, {70, 1031}), spread = y;
  ASSERT_EQ(call(rms_norm(), {arg(y), arg(x), absent(), arg(1e-6)}).outcome, OPMUX_OK);
  int64_t blocks = 0;
  ASSERT_EQ(
      call(rms_norm(), {arg(spread), arg(x), absent(), arg(1e-6)}, {4, backwards, &blocks}).outcome,
      OPMUX_OK);
  EXPECT_GT(blocks, 1);
  EXPECT_EQ(y.bytes(), spread.bytes());
  Tensor one = make(kF32, {1, 1031}, Layout::padded_rows), y_one = one;
  one.fill([&](int64_t i) { return x.get(69 * 1031 + i); });
  ASSERT_EQ(call(rms_norm(), {arg(y_one), arg(one), absent(), arg(1e-6)}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 1031; ++i) ASSERT_EQ(y_one.bits(i), y.bits(69 * 1031 + i));
}

TEST_P(Simd, stays_on_the_callers_thread_if_only_one_is_lent) {
  const Tensor x = random(kF32, {64, 2048});
  Tensor y = make(kF32, {64, 1024});
  int64_t blocks = 0;
  ASSERT_EQ(call(silu_and_mul(), {arg(y), arg(x)}, {1, backwards, &blocks}).outcome, OPMUX_OK);
  EXPECT_EQ(blocks, 0);
}

TEST_P(Simd, declines_an_output_of_another_type) {
  const Tensor x = random(kF32, {1, 8});
  Tensor y = make(kF16, {1, 8});
  const Tensor before = y;
  EXPECT_EQ(call(rms_norm(), {arg(y), arg(x), absent(), arg(1e-6)}).outcome, OPMUX_DECLINED);
  EXPECT_EQ(y.bytes(), before.bytes());
}

TEST(SimdPlugin, better_instructions_have_the_higher_priority_and_are_named_as_needed) {
  EXPECT_EQ(view(simd_plugin().backend().name), "simd");
  EXPECT_EQ(simd_plugin().backend().kind, OPMUX_KIND_DEFAULT);
  for (const char* op : {"rms_norm", "fused_add_rms_norm", "layer_norm", "silu_and_mul",
                         "gelu_and_mul", "rotary_embedding", "softmax", "embedding",
                         "reshape_and_cache", "attention", "paged_attention"}) {
    int32_t priority = 150;
    for (const char* variant : {"avx512", "avx2", "sse4"}) {
      const opmux_impl* impl = simd_plugin().find(op, variant);
      ASSERT_NE(impl, nullptr) << op << " " << variant;
      EXPECT_EQ(impl->priority, priority);
      priority -= 5;
      ASSERT_GE(impl->caps->tensor_count, 1u);
      EXPECT_EQ(impl->caps->tensors[0].flags, OPMUX_TENSOR_INNER_CONTIGUOUS);
    }
  }
  const std::set<std::string, std::less<>> none;
  const auto needs = [&](const char* variant) {
    return base::missing_features(view(simd_plugin().find("rms_norm", variant)->caps->cpu_features),
                                  none);
  };
  EXPECT_THAT(needs("avx512"), ::testing::HasSubstr("avx512f"));
  EXPECT_THAT(needs("avx2"), ::testing::Not(::testing::HasSubstr("avx512")));
  EXPECT_THAT(needs("sse4"), ::testing::Not(::testing::HasSubstr("avx")));
}

TEST(SimdPlugin, verifier_refuses_an_output_of_another_type) {
  const opmux_impl& impl = *simd_plugin().find("rms_norm", "avx2");
  bool same = true;
  const opmux_facts facts{
      sizeof(opmux_facts), 0, &same,
      [](const void* context, uint32_t, opmux_str name, int64_t* value) -> int32_t {
        *value = view(name) == "x" || *static_cast<const bool*>(context) ? 1 : 2;
        return 1;
      }};
  Sink why;
  EXPECT_EQ(impl.verify(impl.user_data, &facts, &why.c), OPMUX_OK);
  same = false;
  EXPECT_EQ(impl.verify(impl.user_data, &facts, &why.c), OPMUX_DECLINED);
  EXPECT_EQ(why.code(), "verify.dtype");
}

}  // namespace
}  // namespace opmux::testing
