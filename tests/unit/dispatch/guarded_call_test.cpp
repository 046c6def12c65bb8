#include "stage.hpp"

#include <array>

#include "base/thread_pool.hpp"

namespace opmux::test {
namespace {

/// Detects whether a call took the fast path: its verifier counts the decisions, because fast calls
/// leave no other trace than their count.
struct Watched : Stage {
  explicit Watched(const std::string& schema, std::vector<FactRef> reads) : op(define(schema)) {
    add({.id = std::string(op.name()) + "/watched.one",
         .kind = Kind::default_,
         .verify = [this](const Facts&) { return ++decisions, std::string(); },
         .verify_reads = std::move(reads)});
  }
  template <class... Args>
  int decided(const Args&... args) {
    const int before = decisions;
    EXPECT_TRUE(op(args...).ok());
    return decisions - before;
  }
  int decisions = 0;
  Operator op;
};

constexpr const char* kNormWithScalars =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], int n = 0, float eps = 1)";

TEST(GuardedCall, decides_once_for_shapes_that_no_check_reads) {
  Watched stage(kNormWithScalars, {});
  for (int64_t rows = 1; rows < 20; ++rows) {
    const Rows t(rows, 8 + rows % 3);
    EXPECT_EQ(stage.decided(t.y, t.x), rows == 1 ? 1 : 0);
  }
}

TEST(GuardedCall, decides_again_for_each_value_that_a_verifier_reads) {
  Watched dim(kNormWithScalars, {{OPMUX_FACT_DIM, "H"}}),
      rows(kNormWithScalars, {{OPMUX_FACT_DIM, "rows"}}),
      scalar(kNormWithScalars, {{OPMUX_FACT_SCALAR, "n"}}),
      floating(kNormWithScalars, {{OPMUX_FACT_SCALAR, "eps"}});
  const Rows a(2, 8), b(3, 8), c(2, 16);
  EXPECT_EQ(dim.decided(a.y, a.x), 1);
  EXPECT_EQ(dim.decided(b.y, b.x), 0);
  EXPECT_EQ(dim.decided(c.y, c.x), 1);
  EXPECT_EQ(dim.decided(a.y, a.x), 0);
  EXPECT_EQ(rows.decided(a.y, a.x), 1);
  EXPECT_EQ(rows.decided(c.y, c.x), 0);
  EXPECT_EQ(rows.decided(b.y, b.x), 1);
  EXPECT_EQ(scalar.decided(a.y, a.x, none, 1), 1);
  EXPECT_EQ(scalar.decided(a.y, a.x, none, 2), 1);
  EXPECT_EQ(scalar.decided(b.y, b.x, none, 2), 0);
  EXPECT_EQ(scalar.decided(a.y, a.x, none, 1), 0);
  EXPECT_EQ(floating.decided(a.y, a.x, none, 1, 0.5), 1);
  EXPECT_EQ(floating.decided(a.y, a.x, none, 1, 0.25), 1);
  EXPECT_EQ(floating.decided(a.y, a.x, none, 2, 0.5), 0);
}

TEST(GuardedCall, decides_again_for_layout_contiguity_and_alignment_if_they_are_read) {
  Watched layout(kNormWithScalars, {{OPMUX_FACT_LAYOUT, "x"}}),
      contiguous(kNormWithScalars, {{OPMUX_FACT_CONTIGUOUS, "x"}}),
      alignment(kNormWithScalars, {{OPMUX_FACT_ALIGNMENT, "x"}});
  Rows t;
  const std::array<int64_t, 2> turned{1, 2}, gaps{32, 1};
  const TensorView column(t.in, f32, t.x.shape(), turned), wide(t.in, f32, t.x.shape(), gaps);
  const TensorView shifted(t.in + 1, f32, {2, 8}), also_shifted(t.in + 3, f32, {2, 8});
  EXPECT_EQ(layout.decided(t.y, t.x), 1);
  EXPECT_EQ(layout.decided(t.y, wide), 0);
  EXPECT_EQ(layout.decided(t.y, column), 1);
  EXPECT_EQ(contiguous.decided(t.y, t.x), 1);
  EXPECT_EQ(contiguous.decided(t.y, wide), 1);
  EXPECT_EQ(contiguous.decided(t.y, column), 0) << "not contiguous, like the previous one";
  EXPECT_EQ(alignment.decided(t.y, t.x), 1);
  EXPECT_EQ(alignment.decided(t.y, shifted), 1);
  EXPECT_EQ(alignment.decided(t.y, also_shifted), 0);
}

TEST(GuardedCall, a_tag_is_a_fact_like_others) {
  Watched stage(kNormWithScalars, {{OPMUX_FACT_TAG, ""}});
  const Rows t;
  const Tag third = stage.runtime.tag("layer.3");
  EXPECT_EQ(stage.runtime.tag("layer.3").number, third.number);
  EXPECT_NE(stage.runtime.tag("layer.4").number, third.number);
  EXPECT_TRUE(stage.op.with({.tag = third})(t.y, t.x).ok());
  EXPECT_EQ(stage.decisions, 1);
  EXPECT_TRUE(stage.op.with({.tag = third})(t.y, t.x).ok());
  EXPECT_EQ(stage.decisions, 1);
  EXPECT_EQ(stage.decided(t.y, t.x), 1);
}

TEST(GuardedCall, options_reach_the_kernel_on_warm_calls_and_no_other_call) {
  Stage stage;
  const Operator op = stage.define(kNormWithScalars);
  std::vector<opmux_call> seen;
  stage.add({.id = "norm/one.x", .kind = Kind::default_, .run = [&](CallFrame& call) {
               seen.push_back(call.c());
               return Outcome::ok;
             }});
  const Rows t;
  const Tag tag = stage.runtime.tag("layer.3");
  int stream_a = 0, stream_b = 0;
  for (int i = 0; i < 3; ++i) {
    seen.clear();
    EXPECT_TRUE(op.with({.tag = tag, .stream = &stream_a, .max_threads = 2})(t.y, t.x).ok());
    EXPECT_TRUE(op.with({.tag = tag, .stream = &stream_b, .max_threads = 2})(t.y, t.x).ok());
    EXPECT_TRUE(op.with({.max_threads = 3})(t.y, t.x).ok());
    EXPECT_TRUE(op(t.y, t.x).ok());
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_EQ(seen[0].stream, &stream_a);
    EXPECT_EQ(seen[1].stream, &stream_b);
    EXPECT_EQ(seen[0].tag, tag.number);
    EXPECT_EQ(seen[0].max_threads, 2);
    EXPECT_EQ(seen[2].max_threads, 3);
    EXPECT_EQ(seen[2].tag, 0u);
    EXPECT_EQ(seen[2].stream, nullptr);
    EXPECT_EQ(seen[3].max_threads, base::ThreadPool::default_threads());
    EXPECT_EQ(seen[3].stream, nullptr);
  }
}

TEST(GuardedCall, a_fallback_on_a_warm_call_gets_the_options_too) {
  Stage stage;
  const Operator op = stage.define(kNormWithScalars);
  stage.add({.id = "norm/one.x", .kind = Kind::default_});
  int32_t threads = 0;
  stage.add({.id = "norm/two.x", .kind = Kind::reference, .run = [&](CallFrame& call) {
               threads = call.c().max_threads;
               return Outcome::ok;
             }});
  const Rows t;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(op.with({.max_threads = 2})(t.y, t.x).ok());
  stage.kernel("norm/one.x").body = [](CallFrame&) { return Outcome::failed; };
  ASSERT_TRUE(op.with({.max_threads = 2})(t.y, t.x).ok());
  EXPECT_EQ(threads, 2);
}

TEST(GuardedCall, checks_the_schema_on_warm_calls_too) {
  Stage stage;
  const Operator op = stage.define(
      "gate(out Tensor y[..., H], Tensor x[..., W], Tensor? w[3, H], int n = 1) "
      "where W == 2 * H && n >= 1");
  stage.add({.id = "gate/one.x", .kind = Kind::default_});
  float memory[256] = {};
  const auto y = [&](int64_t r, int64_t h) { return TensorView(memory, f32, {r, h}); };
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(op(y(2, 8), y(2, 16), none, 1).ok());
    EXPECT_EQ(op(y(2, 8), y(2, 17), none, 1).reason(), "schema.where");
    EXPECT_EQ(op(y(2, 8), y(3, 16), none, 1).code(), Code::invalid_argument);
    EXPECT_EQ(op(y(2, 8), y(2, 16), none, 0).reason(), "schema.where");
    EXPECT_EQ(op(y(-1, 8), y(-1, 16), none, 1).reason(), "schema.dim_negative");
    ASSERT_TRUE(op(y(2, 8), y(2, 16), y(3, 8), 1).ok());
    EXPECT_EQ(op(y(2, 8), y(2, 16), y(4, 8), 1).code(), Code::invalid_argument) << "3 is 3";
    EXPECT_EQ(op(y(2, 8), y(2, 16), y(3, 9), 1).code(), Code::invalid_argument);
    ASSERT_TRUE(op(y(4, 2), y(4, 4), y(3, 2), 2).ok());
  }
  EXPECT_EQ(stage.kernel("gate/one.x").runs, 6u);
}

TEST(GuardedCall, exact_aliasing_is_a_fact) {
  Stage stage;
  const Operator op = stage.define("relu(out(x) Tensor y[*], Tensor x[*])");
  bool in_place = false;
  stage.add({.id = "relu/one.x", .kind = Kind::default_, .run = [&](CallFrame& call) {
               in_place = call.data<float>(0) == call.data<float>(1);
               return Outcome::ok;
             }});
  const Rows t;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(op(t.y, t.x).ok());
    EXPECT_FALSE(in_place);
    ASSERT_TRUE(op(t.x, t.x).ok());
    EXPECT_TRUE(in_place);
  }
}

TEST(GuardedCall, outputs_without_an_element_run_nothing) {
  Stage stage;
  const Operator op = stage.define(kNormWithScalars);
  stage.add({.id = "norm/one.x", .kind = Kind::default_});
  const Rows t, empty(0, 8);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(empty.y, empty.x).ok()); }), "");
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }), "norm/one.x");
  }
  EXPECT_EQ(stage.stats("norm/one.x").calls, 2u);
}

TEST(GuardedCall, five_kinds_of_calls_share_four_cache_entries) {
  Stage stage;
  const Operator op = stage.define(kNormWithScalars);
  stage.add({.id = "norm/a.x", .kind = Kind::default_, .caps = Caps{}.dtypes({f32})});
  stage.add({.id = "norm/b.x", .kind = Kind::reference});
  const Rows t;
  const std::array<DType, 5> kinds{f32, bf16, f16, f64, i32};
  for (int i = 0; i < 4; ++i) {
    for (const DType kind : kinds) {
      const TensorView y(const_cast<float*>(t.out), kind, {2, 8}), x(t.in, kind, {2, 8});
      EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(y, x).ok()); }), kind == f32 ? "norm/a.x" : "norm/b.x");
    }
  }
}

TEST(GuardedCall, strings_lists_and_lists_of_tensors_work_without_caching) {
  Stage stage;
  const Operator op = stage.define(
      "pick(out Tensor y[H], Tensor x[H], str mode = \"a\", int[] sizes = [4], "
      "enum{low, high} rounding = low)");
  std::string seen;
  stage.add({.id = "pick/one.x", .kind = Kind::default_, .run = [&](CallFrame& call) {
               const opmux_list mode = call.c().args[2].value.list;
               const opmux_list sizes = call.c().args[3].value.list;
               seen.assign(static_cast<const char*>(mode.data), mode.size);
               for (uint64_t i = 0; i < sizes.size; ++i) {
                 seen += " " + std::to_string(static_cast<const int64_t*>(sizes.data)[i]);
               }
               seen += call.i64(4) == 1 ? " high" : " low";
               return Outcome::ok;
             }});
  float memory[16] = {};
  const TensorView y(memory, f32, {8}), x(memory + 8, f32, {8});
  const std::vector<int64_t> sizes{2, 3};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(op(y, x).ok());
    EXPECT_EQ(seen, "a 4 low");
    ASSERT_TRUE(op(y, x, "bcd", sizes).ok());
    EXPECT_EQ(seen, "bcd 2 3 low");
    ASSERT_TRUE(op(y, x, std::string("e"), sizes, "high").ok());
    EXPECT_EQ(seen, "e 2 3 high");
  }
  EXPECT_NE(op.explain(y, x, "bcd", sizes).arguments.find("mode=\"bcd\" sizes=(2 items)"),
            std::string::npos)
      << op.explain(y, x, "bcd", sizes).arguments;
}

TEST(GuardedCall, more_facts_than_a_guard_holds_are_decided_once_and_looked_up_each_time) {
  std::string schema = "many(out Tensor y[H], Tensor x[H]";
  std::vector<FactRef> reads;
  for (int i = 0; i < 22; ++i) {
    schema += ", Tensor? t" + std::to_string(i) + "[*]";
    for (const uint32_t kind : {OPMUX_FACT_CONTIGUOUS, OPMUX_FACT_ALIGNMENT, OPMUX_FACT_LAYOUT}) {
      reads.push_back({kind, "t" + std::to_string(i)});
    }
  }
  Watched stage(schema + ")", reads);
  float memory[16] = {};
  const TensorView y(memory, f32, {8}), x(memory + 8, f32, {8});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stage.decided(y, x), i == 0 ? 1 : 0);
  EXPECT_EQ(stage.stats("many/watched.one").calls, 3u);
}

TEST(GuardedCall, more_classes_than_the_table_holds_are_decided_each_time) {
  Watched stage(kNormWithScalars, {{OPMUX_FACT_SCALAR, "n"}});
  const Rows t;
  for (int n = 0; n < 4096; ++n) ASSERT_EQ(stage.decided(t.y, t.x, none, n), 1);
  for (int n = 0; n < 300; ++n) ASSERT_EQ(stage.decided(t.y, t.x, none, n), 0);
  for (int i = 0; i < 2; ++i) {
    for (int n = 5000; n < 5008; ++n) ASSERT_EQ(stage.decided(t.y, t.x, none, n), 1);
  }
  EXPECT_EQ(stage.stats("norm/watched.one").decided_each_time, 16u);
}

}  // namespace
}  // namespace opmux::test
