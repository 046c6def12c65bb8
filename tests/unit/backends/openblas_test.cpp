#include <cblas.h>

#include "expected_attention.hpp"
#include "expected_matmul.hpp"
#include "library.hpp"

namespace opmux::testing {
namespace {

const LoadedPlugin& openblas() {
  static const LoadedPlugin plugin = load_library(OPMUX_TEST_OPENBLAS_LIBRARY);
  return plugin;
}

const opmux_impl& gemm(std::string_view op) {
  const opmux_impl* impl = openblas().find(op, "gemm");
  if (!impl) throw std::runtime_error("no gemm of " + std::string(op));
  return *impl;
}

// A sum in any order has at most one rounding per term.
std::vector<Expected> in_any_order(std::vector<Expected> expected, int64_t terms) {
  for (Expected& e : expected) e.error *= 1 + double(terms) / 32;
  return expected;
}

uint64_t workspace(const opmux_impl& impl, const std::vector<opmux_arg>& args,
                   const CallOptions& options = {}) {
  opmux_call c{};
  c.struct_size = sizeof c;
  c.arg_count = uint32_t(args.size());
  c.arg_stride = sizeof(opmux_arg);
  c.max_threads = options.max_threads;
  c.parallel_for = options.parallel_for;
  c.args = args.data();
  return impl.workspace(impl.user_data, &c);
}

// Runs the pieces in reverse order and records their number.
void last_first(void* pool, int64_t count, void* context, void (*body)(void*, int64_t)) {
  *static_cast<int64_t*>(pool) = count;
  for (int64_t i = count; i-- > 0;) body(context, i);
}

TEST(Openblas, is_a_vendor_with_the_priority_of_one) {
  EXPECT_EQ(view(openblas().backend().name), "openblas");
  EXPECT_EQ(view(openblas().backend().vendor), "openblas");
  EXPECT_EQ(openblas().backend().kind, OPMUX_KIND_VENDOR);
  EXPECT_EQ(openblas().backend().priority, -1);
  EXPECT_EQ(gemm("matmul").priority, -1);
}

TEST(OpenblasMatmul, is_right_for_every_type_shape_and_stride) {
  struct Shape {
    std::vector<int64_t> leading;
    int64_t m, n, k;
  };
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const Shape& shape :
           {Shape{{}, 1, 1, 1}, Shape{{}, 3, 65, 33}, Shape{{2, 3}, 5, 7, 9},
            Shape{{2}, 1, 300, 257}, Shape{{}, 260, 70, 3}, Shape{{0}, 2, 3, 4}}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " K=" + std::to_string(shape.k));
        const auto dims = [&](int64_t rows, int64_t columns) {
          std::vector<int64_t> all = shape.leading;
          all.insert(all.end(), {rows, columns});
          return all;
        };
        const Tensor a = random(dtype, dims(shape.m, shape.k), layout);
        const Tensor b = random(dtype, dims(shape.k, shape.n), layout, 2);
        Tensor y = make(dtype, dims(shape.m, shape.n), layout);
        const auto r = call(gemm("matmul"), {arg(y), arg(a), arg(b)});
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, in_any_order(expected_matmul(a, b), shape.k));
      }
    }
  }
}

TEST(OpenblasMatmul, f32_that_openblas_can_read_is_not_copied) {
  const Tensor a = random(kF32, {2, 40, 30}, Layout::padded_rows);
  Tensor transposed(kF32, {2, 30, 50}, {1500, 1, 30}), y = make(kF32, {2, 40, 50});
  transposed.fill([](int64_t i) { return double(i % 17); });
  EXPECT_EQ(workspace(gemm("matmul"), {arg(y), arg(a), arg(transposed)}), 0u);
  ASSERT_EQ(call(gemm("matmul"), {arg(y), arg(a), arg(transposed)}).outcome, OPMUX_OK);
  expect_close(y, in_any_order(expected_matmul(a, transposed), 30));

  const Tensor narrow = random(kBF16, {2, 30, 50});
  EXPECT_GE(workspace(gemm("matmul"), {arg(y), arg(a), arg(narrow)}), 30u * 50 * sizeof(float));
  const Tensor repeated_rows(kF32, {2, 30, 50}, {0, 0, 1});
  EXPECT_GE(workspace(gemm("matmul"), {arg(y), arg(a), arg(repeated_rows)}), 6000u);
}

TEST(OpenblasMatmul, a_sum_without_terms_is_zero) {
  const Tensor a = make(kF32, {3, 0}), b = make(kF32, {0, 2});
  Tensor y = random(kF32, {3, 2});
  ASSERT_EQ(call(gemm("matmul"), {arg(y), arg(a), arg(b)}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.bits(i), 0u);
}

TEST(OpenblasMatmul, takes_no_more_threads_than_are_lent_and_gives_the_same_bits) {
  if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) GTEST_SKIP() << "it takes one caller only";
  for (opmux_dtype dtype : {kF32, kBF16}) {
    const Tensor a = random(dtype, {9, 64}), b = random(dtype, {64, 2500}, Layout::contiguous, 2);
    Tensor y = make(dtype, {9, 2500}), spread = y;
    ASSERT_EQ(call(gemm("matmul"), {arg(y), arg(a), arg(b)}).outcome, OPMUX_OK);
    int64_t workers = 0;
    const CallOptions lent{3, last_first, &workers};
    ASSERT_EQ(call(gemm("matmul"), {arg(spread), arg(a), arg(b)}, lent).outcome, OPMUX_OK);
    EXPECT_EQ(workers, 3);
    EXPECT_EQ(y.bytes(), spread.bytes());
    EXPECT_EQ(workspace(gemm("matmul"), {arg(y), arg(a), arg(b)}, lent),
              3 * workspace(gemm("matmul"), {arg(y), arg(a), arg(b)}));
  }
}

TEST(OpenblasLinear, is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (auto shape : kShapes) {
        if (shape.back() > 300) shape.back() = 300;
        const int64_t terms = shape.back();
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " K=" + std::to_string(terms));
        const Tensor x = random(dtype, shape, layout);
        const Tensor weight = random(dtype, {67, terms}, layout, 2);
        const Tensor bias = random(kF32, {67}, layout, 3);
        shape.back() = 67;
        for (const Tensor* given : {&bias, static_cast<const Tensor*>(nullptr)}) {
          Tensor y = make(dtype, shape, layout);
          const auto r = call(gemm("linear"), {arg(y), arg(x), arg(weight), arg(given)});
          ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
          expect_close(y, in_any_order(expected_linear(x, weight, given), terms));
        }
      }
    }
  }
}

TEST(OpenblasLinear, a_batch_without_gaps_is_one_product_in_place) {
  const Tensor x = random(kF32, {40, 5, 64}), weight = random(kF32, {10, 64});
  Tensor y = make(kF32, {40, 5, 10});
  int64_t workers = 0;
  const std::vector<opmux_arg> args = {arg(y), arg(x), arg(weight), absent()};
  EXPECT_EQ(workspace(gemm("linear"), args), 0u);
  EXPECT_EQ(call(gemm("linear"), args, {4, last_first, &workers}).outcome, OPMUX_OK);
  EXPECT_EQ(workers, 0);  // A single product is not divided.
  expect_close(y, in_any_order(expected_linear(x, weight, nullptr), 64));
}

TEST(OpenblasLinear, no_inputs_leave_the_bias) {
  const Tensor x = make(kF32, {2, 0}), weight = make(kF32, {3, 0}), bias = random(kF32, {3});
  Tensor y = random(kF32, {2, 3});
  ASSERT_EQ(call(gemm("linear"), {arg(y), arg(x), arg(weight), arg(bias)}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.bits(i), bias.bits(i % 3));
}

TEST(OpenblasAttention, is_right_for_every_type_and_stride) {
  const Tensor sink = random(kF32, {4}), mask = random(kF16, {1, 66, 20}, Layout::contiguous, 5);
  const AttentionCase cases[] = {{}, {true}, {true, 0.3, 7}, {false, {}, 9, 4.0, &sink}};
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      const Heads x = make_heads(dtype, 2, 66, 20, 4, 2, 24, 10, layout);
      for (const AttentionCase& c : cases) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " window " + std::to_string(c.window));
        Tensor y = make(dtype, {2, 66, 4, 10}, layout);
        const auto r = call(gemm("attention"), attention_args(y, x, c, &mask));
        ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
        expect_close(y, in_any_order(expected_attention(x, c, &mask), 20));
      }
    }
  }
}

TEST(OpenblasAttention, only_the_logits_of_f32_need_memory_and_only_for_64_queries) {
  const Heads x = make_heads(kF32, 1, 200, 100, 2, 1, 16, 16);
  Tensor y = make(kF32, {1, 200, 2, 16});
  EXPECT_EQ(workspace(gemm("attention"), attention_args(y, x, {})), 64u * 100 * sizeof(float));
}

TEST(OpenblasAttention, a_query_that_sees_no_key_gives_zeros_even_beside_nan) {
  Heads x = make_heads(kF32, 1, 3, 2, 1, 1, 4, 4);
  for (int64_t i = 0; i < 8; ++i) x.v.set(i, NAN);
  Tensor y = random(kF32, {1, 3, 1, 4});
  ASSERT_EQ(call(gemm("attention"), attention_args(y, x, {true})).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.bits(i), 0u);
  for (int64_t i = 4; i < 12; ++i) EXPECT_TRUE(std::isnan(y.get(i)));
}

TEST(OpenblasAttention, blocks_of_queries_are_shared_out_and_give_the_same_bits) {
  if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) GTEST_SKIP() << "it takes one caller only";
  const Heads x = make_heads(kBF16, 1, 150, 150, 2, 1, 16, 16);
  Tensor y = make(kBF16, {1, 150, 2, 16}), spread = y;
  ASSERT_EQ(call(gemm("attention"), attention_args(y, x, {true})).outcome, OPMUX_OK);
  int64_t workers = 0;
  ASSERT_EQ(
      call(gemm("attention"), attention_args(spread, x, {true}), {8, last_first, &workers}).outcome,
      OPMUX_OK);
  EXPECT_EQ(workers, 3);
  EXPECT_EQ(y.bytes(), spread.bytes());
}

TEST(OpenblasAttention, refuses_a_mask_that_does_not_fit_and_a_negative_softcap) {
  const Heads x = make_heads(kF32, 1, 3, 5, 1, 1, 4, 4);
  Tensor y = random(kF32, {1, 3, 1, 4});
  const Tensor before = y, mask = make(kBool, {3, 4});
  EXPECT_EQ(call(gemm("attention"), attention_args(y, x, {}, &mask)).code, "attention.mask");
  AttentionCase negative;
  negative.softcap = -1;
  EXPECT_EQ(call(gemm("attention"), attention_args(y, x, negative)).code, "attention.softcap");
  EXPECT_EQ(y.bytes(), before.bytes());
}

// Records the number of OpenBLAS threads while the pieces run.
void note_threads(void* pool, int64_t count, void* context, void (*body)(void*, int64_t)) {
  for (int64_t i = 0; i < count; ++i) body(context, i);
  *static_cast<int*>(pool) = openblas_get_num_threads();
}

TEST(OpenblasThreads, openblas_has_one_thread_during_a_call_and_its_own_number_afterwards) {
  if (openblas_get_parallel() != OPENBLAS_THREAD) GTEST_SKIP() << "it has no threads of its own";
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(2);
  const Tensor a = random(kF32, {8, 8}), b = random(kF32, {8, 2100});
  Tensor y = make(kF32, {8, 2100});
  int during = 0;
  const CallOptions lent{2, note_threads, &during};
  EXPECT_EQ(call(gemm("matmul"), {arg(y), arg(a), arg(b)}, lent).outcome, OPMUX_OK);
  EXPECT_EQ(during, 1);
  EXPECT_EQ(openblas_get_num_threads(), 2);
  openblas_set_num_threads(before);
}

// Sets another number of threads during a call, as a program might.
void set_three(void*, int64_t count, void* context, void (*body)(void*, int64_t)) {
  for (int64_t i = 0; i < count; ++i) body(context, i);
  openblas_set_num_threads(3);
}

TEST(OpenblasThreads, a_number_that_the_program_sets_during_a_call_stays) {
  if (openblas_get_parallel() != OPENBLAS_THREAD) GTEST_SKIP() << "it has no threads of its own";
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(2);
  const Tensor a = random(kF32, {8, 8}), b = random(kF32, {8, 2100});
  Tensor y = make(kF32, {8, 2100});
  EXPECT_EQ(call(gemm("matmul"), {arg(y), arg(a), arg(b)}, {2, set_three, nullptr}).outcome,
            OPMUX_OK);
  EXPECT_EQ(openblas_get_num_threads(), 3);
  openblas_set_num_threads(before);
}

}  // namespace
}  // namespace opmux::testing
