#include <opmux/opmux.hpp>

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "expected.hpp"

namespace opmux::testing {
namespace {

TensorView as_view(const Tensor& tensor) { return TensorView(tensor.c()); }

// Functions of the OpenMP runtime that the process has, if it has one.
template <class Function>
Function* openmp(const char* name) {
  void* library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

class OneDnn : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef OPMUX_TEST_ONEDNN
    GTEST_SKIP() << "the onednn backend is not built: oneDNN was not found";
#endif
  }
  static Runtime& runtime() {
    static Runtime made = Runtime::create().value();
    return made;
  }
  static Operator op(const char* name) { return runtime().op(name).value(); }

  // Which implementation ran.
  template <class... Args>
  static std::string ran(const char* name, const opmux::CallOptions& options, const Args&... args) {
    // Another engine is as good where this one refuses.
    const PolicyScope no_other(runtime(), {.deny = {"vendor:openblas"}});
    CallReport report;
    const Status status = op(name).with(report, options)(args...);
    EXPECT_TRUE(status.ok()) << status.message();
    return report.implementation;
  }
  template <class... Args>
  static void expect_as_reference(const char* name, const Tensor& y, const Args&... args) {
    Tensor expected = y;
    const PolicyScope reference(runtime(), {.require = {"reference"}});
    ASSERT_TRUE(op(name)(as_view(expected), args...).ok());
    for (int64_t i = 0; i < y.elements(); ++i) {
      const double rounding = 2 * Format::of(y.dtype()).half_ulp() * std::fabs(expected.get(i));
      ASSERT_NEAR(y.get(i), expected.get(i), rounding + 1e-4) << i;
    }
    EXPECT_TRUE(y.gaps_intact());
  }
  static bool has_f16() { return __builtin_cpu_supports("avx512fp16"); }
};

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
    EXPECT_EQ(ran("matmul", {}, as_view(y), as_view(a), as_view(b)), "matmul/onednn.dense");
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
