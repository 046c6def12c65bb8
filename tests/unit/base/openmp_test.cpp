#include "base/thread_pool.hpp"

#include <dlfcn.h>

#include <atomic>
#include <latch>

#include <gtest/gtest.h>

#include "base/thread_pool.hpp"
#include "forked.hpp"

namespace opmux::base {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kSeesOpenMp = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kSeesOpenMp = false;
#else
constexpr bool kSeesOpenMp = true;
#endif
#else
constexpr bool kSeesOpenMp = true;
#endif

/// GNU OpenMP, loaded as if another library had brought it.
class OpenMpThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (!kSeesOpenMp) GTEST_SKIP() << "the thread sanitizer does not see how OpenMP waits";
    library_ = dlopen("libgomp.so.1", RTLD_NOW);
    if (library_ == nullptr) GTEST_SKIP() << "this machine has no libgomp.so.1";
    function<void(int)>("omp_set_num_threads")(2);
  }

  template <class Function>
  Function* function(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  /// The number of two pieces, which wait for each other, that ran on OpenMP threads.
  int pieces_inside(ThreadPool& pool) {
    struct Seen {
      std::latch both{2};
      std::atomic<int> inside{0};
      int (*in_parallel)();
    } seen;
    seen.in_parallel = function<int()>("omp_in_parallel");
    ThreadPool::parallel_for(pool.lend(2), 2, &seen, [](void* context, int64_t) {
      Seen& own = *static_cast<Seen*>(context);
      own.both.arrive_and_wait();
      own.inside += own.in_parallel();
    });
    return seen.inside;
  }

  void* library_ = nullptr;
};

TEST(OpenMp, is_not_found_or_loaded_in_a_process_without_it) {
  if (dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) {
    GTEST_SKIP() << "this process has one from the start";
  }
  EXPECT_EQ(loaded_openmp(), nullptr);
  EXPECT_EQ(dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST_F(OpenMpThreads, are_found_if_the_process_has_loaded_openmp) {
  ASSERT_NE(loaded_openmp(), nullptr);
  EXPECT_EQ(loaded_openmp()->max_threads(), 2);
}

TEST_F(OpenMpThreads, run_loops_after_the_pool_is_switched) {
  ThreadPool pool(2);
  EXPECT_EQ(pieces_inside(pool), 0);
  pool.use_openmp(*loaded_openmp(), 0);
  EXPECT_EQ(pieces_inside(pool), 2);
}

TEST_F(OpenMpThreads, are_as_many_as_openmp_and_the_limit_allow) {
  function<void(int)>("omp_set_num_threads")(3);
  ThreadPool pool(1), limited(1);
  pool.use_openmp(*loaded_openmp(), 0);
  limited.use_openmp(*loaded_openmp(), 2);
  EXPECT_EQ(pool.threads(), 3);
  EXPECT_EQ(limited.threads(), 2);
  function<void(int)>("omp_set_num_threads")(1);
  EXPECT_EQ(pool.threads(), 1);
}

TEST_F(OpenMpThreads, are_left_alone_in_a_forked_child) {
  ThreadPool pool(2);
  pool.use_openmp(*loaded_openmp(), 0);
  ASSERT_EQ(pieces_inside(pool), 2);
  EXPECT_TRUE(test::true_in_forked_child([&] { return pieces_inside(pool) == 0; }));
  // A pool created in the child does not use them either.
  EXPECT_TRUE(test::true_in_forked_child([] { return loaded_openmp() == nullptr; }));
}

}  // namespace
}  // namespace opmux::base
