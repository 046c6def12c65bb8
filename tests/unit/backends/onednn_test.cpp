#include <opmux/opmux.h>
#include <opmux/opmux.hpp>

#include <dlfcn.h>
#include <atomic>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "backends/onednn/quantized_rows.hpp"
#include "base/system/cpu_features.hpp"
#include "onednn.hpp"

namespace opmux::testing {
namespace {

// A function of the OpenMP runtime in the process, if there is one.
template <class Function>
Function* openmp(const char* name) {
  void* library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

TEST_F(OneDnn, matmul_of_dense_matrices_is_right_in_every_type) {
  for (opmux_dtype dtype : kFloats) {
    if (dtype.bits == 16 && dtype.code == OPMUX_DTYPE_FLOAT && !has_f16()) continue;
    SCOPED_TRACE(name(dtype));
    const Tensor a = random(dtype, {2, 3, 5, 70}), b = random(dtype, {2, 3, 70, 33});
    const Tensor y = make(dtype, {2, 3, 5, 33});
    EXPECT_EQ(ran("matmul", {}, as_view(y), as_view(a), as_view(b)), "matmul/onednn.dense");
    expect_as_reference("matmul", y, as_view(a), as_view(b));
  }
}

TEST_F(OneDnn, matmul_takes_padded_rows_and_transposes_as_they_are) {
  const Tensor a = random(kF32, {2, 5, 70}, Layout::padded_rows);
  const Tensor y = make(kF32, {2, 5, 33}, Layout::padded_rows);
  const Tensor stored = random(kF32, {2, 33, 70});
  opmux_tensor transposed = stored.c();
  int64_t shape[] = {2, 70, 33}, strides[] = {33 * 70, 1, 70};
  transposed.shape = shape;
  transposed.strides = strides;
  const TensorView b(transposed);
  EXPECT_EQ(ran("matmul", {}, as_view(y), as_view(a), b), "matmul/onednn.strided");
  expect_as_reference("matmul", y, as_view(a), b);
}

TEST_F(OneDnn, matrices_that_interleave_are_left_to_others) {
  const Tensor a = random(kF32, {4, 5, 6}, Layout::swapped_leading), b = random(kF32, {4, 6, 3});
  const Tensor y = make(kF32, {4, 5, 3}, Layout::swapped_leading);
  EXPECT_EQ(ran("matmul", {}, as_view(y), as_view(a), as_view(b)), "matmul/reference.scalar");
  expect_as_reference("matmul", y, as_view(a), as_view(b));
}

TEST_F(OneDnn, a_sum_without_terms_is_left_to_others) {
  const Tensor a = make(kF32, {3, 0}), b = make(kF32, {0, 3}), y = make(kF32, {3, 3});
  EXPECT_EQ(ran("matmul", {}, as_view(y), as_view(a), as_view(b)), "matmul/reference.scalar");
  EXPECT_EQ(y.get(4), 0);
}

TEST_F(OneDnn, linear_is_right_with_and_without_bias) {
  for (opmux_dtype dtype : {kF32, kBF16}) {
    const Tensor x = random(dtype, {2, 5, 70}), weight = random(dtype, {33, 70});
    const Tensor y = make(dtype, {2, 5, 33});
    EXPECT_EQ(ran("linear", {}, as_view(y), as_view(x), as_view(weight)), "linear/onednn.dense");
    expect_as_reference("linear", y, as_view(x), as_view(weight));
    for (opmux_dtype bias_dtype : {kF32, dtype}) {
      const Tensor bias = random(bias_dtype, {33}, Layout::contiguous, 9);
      EXPECT_EQ(ran("linear", {}, as_view(y), as_view(x), as_view(weight), as_view(bias)),
                "linear/onednn.dense");
      expect_as_reference("linear", y, as_view(x), as_view(weight), as_view(bias));
    }
  }
}

class OneDnnConstant : public OneDnn {
 protected:
  const Tensor x_ = random(kBF16, {5, 70}), one_row_ = random(kBF16, {1, 70});
  const Tensor y_ = make(kBF16, {5, 33}), one_ = make(kBF16, {1, 33});
  Tensor weight_ = random(kBF16, {33, 70}, Layout::contiguous, 2);
};

TEST_F(OneDnnConstant, is_packed_once_for_all_numbers_of_rows) {
  Constant constant = runtime().constant(as_view(weight_)).value();
  const Tensor kept = weight_;
  EXPECT_EQ(constant.packs(), 0u);
  EXPECT_EQ(ran("linear", {}, as_view(y_), as_view(x_), constant), "linear/onednn.dense");
  EXPECT_EQ(constant.packs(), 1u);
  expect_as_reference("linear", y_, as_view(x_), as_view(kept));
  // From now on the plain weight is zero, so packing again or reading the plain weight would show.
  weight_.fill([](int64_t) { return 0; });
  EXPECT_EQ(ran("linear", {}, as_view(one_), as_view(one_row_), constant), "linear/onednn.dense");
  EXPECT_EQ(constant.packs(), 1u);
  expect_as_reference("linear", one_, as_view(one_row_), as_view(kept));
  ASSERT_TRUE(op("linear")(as_view(y_), as_view(x_), constant).ok());
  expect_as_reference("linear", y_, as_view(x_), as_view(kept));
}

TEST_F(OneDnnConstant, whose_rows_are_one_page_is_packed_with_zero_padding) {
  const Tensor weight = random(kBF16, {64, 2048}, Layout::contiguous, 2), bias = random(kF32, {64});
  Constant constant = runtime().constant(as_view(weight)).value();
  for (int64_t rows : {1, 7, 130}) {
    const Tensor x = random(kBF16, {rows, 2048}), y = make(kBF16, {rows, 64});
    EXPECT_EQ(ran("linear", {}, as_view(y), as_view(x), constant), "linear/onednn.dense");
    expect_as_reference("linear", y, as_view(x), as_view(weight));
    EXPECT_EQ(ran("linear", {.max_threads = 1}, as_view(y), as_view(x), constant, as_view(bias)),
              "linear/onednn.dense");
    expect_as_reference("linear", y, as_view(x), as_view(weight), as_view(bias));
  }
  EXPECT_EQ(constant.packs(), 1u);
  EXPECT_GT(constant.packed_bytes(), uint64_t(64 * 2048 * 2));
}

TEST_F(OneDnnConstant, is_repacked_after_a_change) {
  Constant constant = runtime().constant(as_view(weight_)).value();
  ASSERT_TRUE(op("linear")(as_view(y_), as_view(x_), constant).ok());
  weight_ = random(kBF16, {33, 70}, Layout::contiguous, 3);
  Constant moved = runtime().constant(as_view(weight_)).value();
  ASSERT_TRUE(op("linear")(as_view(y_), as_view(x_), moved).ok());
  weight_.fill([](int64_t i) { return i % 3; });
  moved.changed();
  EXPECT_EQ(moved.version(), 1u);
  EXPECT_EQ(moved.packs(), 0u);
  EXPECT_EQ(ran("linear", {}, as_view(y_), as_view(x_), moved), "linear/onednn.dense");
  EXPECT_EQ(moved.packs(), 1u);
  expect_as_reference("linear", y_, as_view(x_), as_view(weight_));
}

TEST_F(OneDnnConstant, copies_are_counted_and_go_with_it) {
  const uint64_t before = runtime().packed_bytes();
  {
    const Constant constant = runtime().constant(as_view(weight_)).value();
    ASSERT_TRUE(op("linear")(as_view(y_), as_view(x_), constant).ok());
    EXPECT_GE(constant.packed_bytes(), 33u * 70 * 2);
    EXPECT_EQ(runtime().packed_bytes(), before + constant.packed_bytes());
  }
  EXPECT_EQ(runtime().packed_bytes(), before);
}

TEST_F(OneDnnConstant, is_not_packed_beyond_the_limit_and_still_works) {
  Runtime small = Runtime::create({.max_packed_bytes = 100}).value();
  const Operator linear = small.op("linear").value();
  const Constant constant = small.constant(as_view(weight_)).value();
  CallReport report;
  ASSERT_TRUE(linear.with(report)(as_view(y_), as_view(x_), constant).ok());
  EXPECT_EQ(report.implementation, "linear/onednn.dense");
  EXPECT_EQ(constant.packs(), 0u);
  EXPECT_EQ(small.packed_bytes(), 0u);
  expect_as_reference("linear", y_, as_view(x_), as_view(weight_));
}

TEST_F(OneDnnConstant, is_packed_once_from_c_too) {
  opmux_runtime* c_runtime = nullptr;
  opmux_operator* linear = nullptr;
  opmux_constant* constant = nullptr;
  ASSERT_EQ(opmux_runtime_create(nullptr, &c_runtime, nullptr), OPMUX_OK);
  ASSERT_EQ(opmux_operator_get(c_runtime, opmux_str_of("linear"), &linear, nullptr), OPMUX_OK);
  ASSERT_EQ(opmux_constant_create(c_runtime, &weight_.c(), &constant, nullptr), OPMUX_OK);
  const Tensor kept = weight_;
  const opmux_arg args[] = {opmux_arg_tensor(&y_.c()), opmux_arg_tensor(&x_.c()),
                            opmux_arg_constant(constant)};
  ASSERT_EQ(opmux_call_operator(linear, args, 3, nullptr), OPMUX_OK);
  weight_.fill([](int64_t) { return 0; });
  opmux_report report{};
  report.struct_size = sizeof(report);
  ASSERT_EQ(opmux_call_operator_with(linear, args, 3, nullptr, &report, nullptr), OPMUX_OK);
  EXPECT_STREQ(report.implementation, "linear/onednn.dense");
  expect_as_reference("linear", y_, as_view(x_), as_view(kept));
  uint64_t bytes = 0;
  ASSERT_EQ(opmux_constant_packed_bytes(constant, &bytes, nullptr), OPMUX_OK);
  EXPECT_GE(bytes, 33u * 70 * 2);
  ASSERT_EQ(opmux_constant_changed(constant, nullptr), OPMUX_OK);
  ASSERT_EQ(opmux_call_operator(linear, args, 3, nullptr), OPMUX_OK);
  EXPECT_EQ(y_.get(0), 0);
  opmux_constant_destroy(constant);
  opmux_runtime_destroy(c_runtime);
}

TEST_F(OneDnnConstant, a_bare_tensor_is_never_packed) {
  const uint64_t before = runtime().packed_bytes();
  EXPECT_EQ(ran("linear", {}, as_view(y_), as_view(x_), as_view(weight_)), "linear/onednn.dense");
  weight_.fill([](int64_t) { return 0; });
  ASSERT_TRUE(op("linear")(as_view(y_), as_view(x_), as_view(weight_)).ok());
  EXPECT_EQ(y_.get(0), 0);
  EXPECT_EQ(runtime().packed_bytes(), before);
}

class OneDnnW8a8 : public OneDnn {
 protected:
  void SetUp() override {
    OneDnn::SetUp();
    const std::string missing =
        base::missing_features(backends::onednn::kVectorFeatures, base::cpu_features());
    if (!missing.empty()) GTEST_SKIP() << "processor lacks " << missing;
  }
  // Also covers more rows than are multiplied in one step.
  static void expect_right(opmux_dtype dtype, int64_t rows, const Tensor* scale,
                           const Tensor* bias) {
    SCOPED_TRACE(name(dtype) + " " + std::to_string(rows));
    const bool bytes = dtype.bits == 8;
    const auto numbers = [](Tensor tensor) {
      return tensor.fill([](int64_t i) { return double(i * 37 % 256 - 128); });
    };
    const Tensor x = bytes ? numbers(make(dtype, {rows, 70})) : random(dtype, {rows, 70});
    const Tensor weight = numbers(make(kI8, {33, 70}));
    const Tensor weight_scale =
        make(kF32, {33}).fill([](int64_t i) { return 0.001 * double(i + 1); });
    const Constant constant = runtime().constant(as_view(weight)).value();
    const TensorView x_scale = scale ? as_view(*scale) : TensorView();
    const TensorView added = bias ? as_view(*bias) : TensorView();
    const Tensor y = make(bytes ? kF32 : dtype, {rows, 33});
    EXPECT_EQ(ran("linear_w8a8", {}, as_view(y), as_view(x), as_view(weight), as_view(weight_scale),
                  x_scale, added),
              "linear_w8a8/onednn.dense");
    expect_as_reference("linear_w8a8", y, as_view(x), as_view(weight), as_view(weight_scale),
                        x_scale, added);
    const Tensor again = make(y.dtype(), {rows, 33});
    EXPECT_EQ(ran("linear_w8a8", {}, as_view(again), as_view(x), constant, as_view(weight_scale),
                  x_scale, added),
              "linear_w8a8/onednn.dense");
    EXPECT_EQ(again.bytes(), y.bytes());
    EXPECT_EQ(constant.packs(), 1u);
  }
};

TEST_F(OneDnnW8a8, is_right_for_every_type_with_and_without_scales) {
  const Tensor bias = random(kBF16, {33}, Layout::contiguous, 9);
  for (int64_t rows : {1, 5, 256, 300, 520}) {
    const Tensor scale =
        make(kF32, {rows}).fill([](int64_t i) { return 0.01 + 0.001 * double(i % 7); });
    for (opmux_dtype dtype : kFloats) {
      expect_right(dtype, rows, nullptr, nullptr);
      expect_right(dtype, rows, &scale, &bias);
    }
    expect_right(kI8, rows, &scale, &bias);
  }
}

TEST_F(OneDnnW8a8, bytes_without_a_scale_are_an_invalid_argument) {
  const Tensor x = make(kI8, {2, 8}), weight = make(kI8, {3, 8}), y = make(kF32, {2, 3});
  const Tensor scale = make(kF32, {3});
  const PolicyScope only(runtime(), {.require = {"impl:linear_w8a8/onednn.dense"}});
  const Status status = op("linear_w8a8")(as_view(y), as_view(x), as_view(weight), as_view(scale));
  EXPECT_EQ(status.code(), Code::invalid_argument);
}

TEST_F(OneDnn, one_primitive_serves_several_threads_at_once) {
  const Tensor a = random(kF32, {17, 70}), b = random(kF32, {70, 33}, Layout::contiguous, 2);
  Tensor expected = make(kF32, {17, 33});
  ASSERT_EQ(ran("matmul", {}, as_view(expected), as_view(a), as_view(b)), "matmul/onednn.dense");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const Tensor own_a = a;
      for (int i = 0; i < 200; ++i) {
        Tensor y = make(kF32, {17, 33});
        wrong += !op("matmul")(as_view(y), as_view(own_a), as_view(b)).ok();
        wrong += y.bytes() != expected.bytes();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(OneDnn, starts_no_more_threads_than_a_call_allows_and_leaves_the_setting_alone) {
  const Tensor a = random(kF32, {256, 256}), b = random(kF32, {256, 256});
  const Tensor y = make(kF32, {256, 256});
  ASSERT_EQ(ran("matmul", {}, as_view(y), as_view(a), as_view(b)), "matmul/onednn.dense");
  auto* const set = openmp<void(int)>("omp_set_num_threads");
  auto* const get = openmp<int()>("omp_get_max_threads");
  ASSERT_TRUE(set != nullptr && get != nullptr);
  std::thread([&] {
    set(3);
    const size_t before = threads_of_process();
    EXPECT_EQ(ran("matmul", {.max_threads = 1}, as_view(y), as_view(a), as_view(b)),
              "matmul/onednn.dense");
    EXPECT_EQ(threads_of_process(), before);
    EXPECT_EQ(get(), 3);
    EXPECT_EQ(ran("matmul", {.max_threads = 2}, as_view(y), as_view(a), as_view(b)),
              "matmul/onednn.dense");
    EXPECT_EQ(threads_of_process(), before + 1);
    EXPECT_EQ(get(), 3);
  }).join();
  expect_as_reference("matmul", y, as_view(a), as_view(b));
}

TEST_F(OneDnn, the_process_has_one_openmp_runtime) {
  const Tensor a = random(kF32, {4, 4}), y = make(kF32, {4, 4});
  ASSERT_EQ(ran("matmul", {}, as_view(y), as_view(a), as_view(a)), "matmul/onednn.dense");
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    for (const char* name : {"libgomp", "libiomp", "libomp."}) {
      if (line.find(name, path) != std::string::npos) found.insert(line.substr(path));
    }
  }
  EXPECT_EQ(found.size(), 1u);
}

}  // namespace
}  // namespace opmux::testing
