#include "dispatch/call/thread_block.hpp"
#include "dispatch/plan/free_dims.hpp"
#include "stage.hpp"

#include <array>
#include <thread>

namespace opmux::test {
namespace {

constexpr const char* kNorm = "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H])";

/// One implementation for even H, one for the rest; `decided` counts decisions.
struct Parity : Stage {
  explicit Parity(const std::string& schema = kNorm) : op(define(schema)) {
    add({.id = "norm/even.h", .kind = Kind::default_, .caps = Caps{}.multiple_of("H", 2)});
    add({.id = "norm/any.h", .kind = Kind::reference});
  }
  template <class... Args>
  std::string runs(const Args&... args) {
    return ran_by([&] { status = op(args...); });
  }
  Operator op;
  Status status;
};

TEST(Layouts, views_of_one_layout_come_to_share_a_number) {
  Parity stage;
  const Rows a, b, other(3, 8);
  EXPECT_EQ(a.y.layout(), 0u);
  EXPECT_EQ(stage.runs(a.y, a.x, a.w), "norm/even.h");
  EXPECT_EQ(stage.runs(a.y, a.x, a.w), "norm/even.h");
  EXPECT_NE(a.y.layout(), 0u);
  EXPECT_EQ(stage.runs(b.y, b.x, b.w), "norm/even.h");
  EXPECT_EQ(a.y.layout(), b.y.layout());
  EXPECT_EQ(a.w.layout(), b.w.layout());
  EXPECT_EQ(stage.runs(other.y, other.x, other.w), "norm/even.h");
  EXPECT_NE(other.y.layout(), a.y.layout());
}

TEST(Layouts, a_changed_view_is_not_taken_for_the_old_one) {
  Parity stage;
  Rows t;
  const Rows odd(2, 7);
  EXPECT_EQ(stage.runs(odd.y, odd.x, odd.w), "norm/any.h");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stage.runs(t.y, t.x, t.w), "norm/even.h");
  t.y = odd.y;
  EXPECT_EQ(t.y.layout(), odd.y.layout());
  EXPECT_EQ(stage.runs(t.y, t.x, t.w), "");
  EXPECT_EQ(stage.status.code(), Code::invalid_argument);
  t.x = TensorView(t.in, f32, {2, 7});
  t.w = odd.w;
  EXPECT_EQ(stage.runs(t.y, t.x, t.w), "norm/any.h");
}

TEST(Layouts, other_data_behind_a_view_keep_its_number) {
  Parity stage;
  Rows t;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(stage.runs(t.y, t.x, t.w), "norm/even.h");
  const uint64_t number = t.x.layout();
  t.x.set_data(t.in + 64);
  EXPECT_EQ(stage.runs(t.y, t.x, t.w), "norm/even.h");
  EXPECT_EQ(t.x.layout(), number);
}

TEST(Layouts, views_that_were_valid_with_others_are_checked_together) {
  Parity stage;
  const Rows two(2, 8), three(3, 8);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stage.runs(two.y, two.x, two.w), "norm/even.h");
    EXPECT_EQ(stage.runs(three.y, three.x, three.w), "norm/even.h");
    EXPECT_EQ(stage.runs(two.y, three.x, two.w), "") << "2 rows are not 3";
    EXPECT_EQ(stage.status.code(), Code::invalid_argument);
  }
}

TEST(Layouts, cached_shapes_are_dropped_when_the_class_of_the_plan_changes) {
  Parity stage;
  stage.add({.id = "norm/four.h",
             .kind = Kind::reference,
             .priority = 1,
             .caps = Caps{}.multiple_of("H", 4)});
  const Rows eight(2, 8), six(2, 6), odd(2, 7);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(stage.runs(eight.y, eight.x, eight.w), "norm/even.h");
    EXPECT_EQ(stage.runs(six.y, six.x, six.w), "norm/even.h");
    EXPECT_EQ(stage.runs(odd.y, odd.x, odd.w), "norm/any.h");
  }
  EXPECT_TRUE(stage.runtime.policy().set(Policy{.deny = {"norm/even.*"}}).ok());
  EXPECT_EQ(stage.runs(eight.y, eight.x, eight.w), "norm/any.h");
  EXPECT_EQ(stage.runs(six.y, six.x, six.w), "norm/any.h");
}

TEST(Layouts, threads_may_number_one_view_at_once) {
  Parity stage;
  const Rows shared, other(3, 8);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const Rows& rows = i % 3 == 0 ? other : shared;
        ASSERT_TRUE(stage.op(rows.y, rows.x, rows.w).ok());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(stage.kernel("norm/even.h").runs, 8000u);
}

TEST(Layouts, four_numbers_at_a_time_belong_to_one_thread) {
  const uint64_t mine = dispatch::own_thread_block().new_layouts();
  uint64_t theirs = 0;
  std::jthread([&] { theirs = dispatch::own_thread_block().new_layouts(); }).join();
  const uint64_t next = dispatch::own_thread_block().new_layouts();
  EXPECT_EQ(mine % 4, 0u);
  EXPECT_EQ(next, mine + 4);
  EXPECT_TRUE(theirs < mine || theirs > next);
}

/// Creates new views for each call, so only the dimensions can show that the plan holds.
struct Fresh : Parity {
  using Parity::Parity;
  std::string runs_with(std::array<int64_t, 2> y, std::array<int64_t, 2> x) {
    return runs(TensorView(memory, f32, y, {}), TensorView(memory + 512, f32, x, {}));
  }
  alignas(64) float memory[1024] = {};
};

TEST(FreeDims, rows_may_vary_as_long_as_they_agree) {
  Fresh stage;
  for (int64_t rows = 1; rows < 40; ++rows) {
    EXPECT_EQ(stage.runs_with({rows, 8}, {rows, 8}), "norm/even.h");
    EXPECT_EQ(stage.runs_with({rows, 8}, {rows + 1, 8}), "") << "on cached calls too";
    EXPECT_EQ(stage.runs_with({rows, 8}, {rows, 7}), "");
  }
  EXPECT_EQ(stage.runs_with({2, 7}, {2, 7}), "norm/any.h");
  EXPECT_EQ(stage.runs_with({0, 8}, {0, 8}), "") << "empty outputs";
  EXPECT_TRUE(stage.status.ok());
  EXPECT_EQ(stage.runs_with({-1, 8}, {-1, 8}), "");
  EXPECT_EQ(stage.status.reason(), "schema.dim_negative");
  EXPECT_EQ(stage.runs_with({int64_t{1} << 60, 8}, {int64_t{1} << 60, 8}), "");
  EXPECT_EQ(stage.status.reason(), "schema.size_overflow");
}

TEST(FreeDims, a_dimension_that_occurs_elsewhere_is_not_free) {
  Stage stage;
  const Operator op = stage.define("square(out Tensor y[N], Tensor x[N, N])");
  stage.add({.id = "square/one.x", .kind = Kind::default_});
  alignas(64) float memory[256] = {};
  const auto call = [&](int64_t n, int64_t rows, int64_t columns) {
    return op(TensorView(memory, f32, {n}), TensorView(memory, f32, {rows, columns})).code();
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call(4, 4, 4), Code::ok);
    EXPECT_EQ(call(5, 5, 5), Code::ok);
    EXPECT_EQ(call(5, 5, 4), Code::invalid_argument);
    EXPECT_EQ(call(6, 6, 5), Code::invalid_argument);
  }
}

TEST(FreeDims, dimensions_in_where_are_checked_again) {
  Fresh stage("norm(out Tensor y[..., H], Tensor x[..., W]) where W == 2 * H");
  for (int64_t rows = 1; rows < 5; ++rows) {
    EXPECT_EQ(stage.runs_with({rows, 8}, {rows, 16}), "norm/even.h");
    EXPECT_EQ(stage.runs_with({rows, 8}, {rows, 17}), "");
    EXPECT_EQ(stage.status.reason(), "schema.where");
    EXPECT_EQ(stage.runs_with({rows, 4}, {rows, 8}), "norm/even.h");
  }
}

TEST(FreeDims, one_row_with_a_strange_stride_says_nothing_about_two) {
  Stage stage;
  const Operator op = stage.define("norm(out Tensor y[..., H], Tensor x[..., H])");
  stage.add({.id = "norm/dense.x", .kind = Kind::default_, .caps = Caps{}.contiguous("x")});
  stage.add({.id = "norm/any.x", .kind = Kind::reference});
  alignas(64) float memory[512] = {};
  const std::array<int64_t, 2> gaps{20, 1};
  const auto runs = [&](int64_t rows) {
    const std::array<int64_t, 2> shape{rows, 8};
    return ran_by([&] {
      ASSERT_TRUE(
          op(TensorView(memory, f32, shape, {}), TensorView(memory, f32, shape, gaps)).ok());
    });
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(runs(1), "norm/dense.x") << "a single row has no gaps";
    EXPECT_EQ(runs(2), "norm/any.x");
    EXPECT_EQ(runs(3), "norm/any.x");
    EXPECT_EQ(runs(1), "norm/dense.x");
  }
}

TEST(FreeDims, a_fifth_tensor_is_checked_too) {
  Stage stage;
  const Operator op = stage.define(
      "five(out Tensor y[N, H], Tensor a[N, H], Tensor b[N, H], Tensor c[N, H], Tensor d[N, H])");
  stage.add({.id = "five/one.x", .kind = Kind::default_});
  alignas(64) float memory[256] = {};
  const auto call = [&](int64_t rows, int64_t last) {
    const TensorView t(memory, f32, {rows, 4}), d(memory, f32, {last, 4});
    return op(t, t, t, t, d).code();
  };
  for (int64_t rows = 1; rows < 6; ++rows) {
    EXPECT_EQ(call(rows, rows), Code::ok);
    EXPECT_EQ(call(rows, rows + 1), Code::invalid_argument);
  }
}

TEST(FreeDims, a_fifth_dimension_is_checked_too) {
  Stage stage;
  const Operator op = stage.define("deep(out Tensor y[A, B, C, D, E], Tensor x[A, B, C, D, E])");
  stage.add({.id = "deep/one.x", .kind = Kind::default_});
  alignas(64) float memory[256] = {};
  for (int64_t e = 1; e < 6; ++e) {
    const TensorView y(memory, f32, {1, 2, 1, 2, e}), x(memory, f32, {1, 2, 1, 2, e});
    const TensorView longer(memory, f32, {1, 2, 1, 2, e + 1});
    EXPECT_EQ(op(y, x).code(), Code::ok);
    EXPECT_EQ(op(y, longer).code(), Code::invalid_argument);
  }
}

TEST(Layouts, strides_are_remembered_with_their_shape) {
  Stage stage;
  const Operator op = stage.define("norm(out Tensor y[..., H], Tensor x[..., H])");
  stage.add({.id = "norm/dense.x", .kind = Kind::default_, .caps = Caps{}.contiguous("x")});
  stage.add({.id = "norm/any.x", .kind = Kind::reference});
  alignas(64) float memory[512] = {};
  const auto runs = [&](int64_t width, int64_t distance) {
    const std::array<int64_t, 2> shape{2, width}, strides{distance, 1};
    return ran_by([&] {
      ASSERT_TRUE(
          op(TensorView(memory, f32, shape, {}), TensorView(memory, f32, shape, strides)).ok());
    });
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(runs(16, 16), "norm/dense.x");
    EXPECT_EQ(runs(8, 8), "norm/dense.x");
    EXPECT_EQ(runs(8, 16), "norm/any.x") << "the strides of the first with the shape of the second";
  }
}

}  // namespace
}  // namespace opmux::test
