#include "stage.hpp"

#include <array>

namespace opmux::test {
namespace {

constexpr const char* kGroupNorm =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], int group = 1)";

/// An implementation with the given capabilities, and one that takes everything.
struct Choosy : Stage {
  explicit Choosy(Caps caps, uint32_t flags = 0) : op(define(kGroupNorm)) {
    add({.id = "norm/choosy.one", .kind = Kind::default_, .caps = std::move(caps), .flags = flags});
    add({.id = "norm/plain.one",
         .kind = Kind::reference,
         .flags = OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_CAPTURE_SAFE});
  }
  template <class... Args>
  bool choosy_runs(const Args&... args) {
    const std::string ran = ran_by([&] { EXPECT_TRUE(op(args...).ok()); });
    EXPECT_TRUE(ran == "norm/choosy.one" || ran == "norm/plain.one") << ran;
    CallReport report;
    EXPECT_TRUE(op.with(report)(args...).ok());
    EXPECT_EQ(report.implementation, ran);
    return ran == "norm/choosy.one";
  }
  Operator op;
};

TensorView strided(const TensorView& view, std::array<int64_t, 2> strides) {
  return {view.data(), view.dtype(), view.shape(), strides};
}

// Each pair of calls differs only in the fact that the check uses; both are cached after one round.
TEST(Defects, the_cache_key_omits_contiguity_that_the_check_used) {
  Choosy stage(Caps{}.contiguous("x"));
  const Rows rows;
  const TensorView gaps = strided(rows.x, {16, 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(stage.choosy_runs(rows.y, rows.x));
    EXPECT_FALSE(stage.choosy_runs(rows.y, gaps));
  }
}

TEST(Defects, the_cache_key_omits_strides_that_the_check_used) {
  Choosy inner(Caps{}.inner_contiguous("x"));
  Choosy order(Caps{}.layout("x", "01"));
  const Rows rows;
  const TensorView transposed = strided(rows.x, {1, 2}), gaps = strided(rows.x, {16, 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(inner.choosy_runs(rows.y, rows.x));
    EXPECT_FALSE(inner.choosy_runs(rows.y, transposed));
    EXPECT_TRUE(inner.choosy_runs(rows.y, gaps));
    EXPECT_TRUE(order.choosy_runs(rows.y, gaps));
    EXPECT_FALSE(order.choosy_runs(rows.y, transposed));
  }
}

TEST(Defects, the_cache_key_omits_alignment_that_the_check_used) {
  Choosy stage(Caps{}.aligned("x", 64));
  Rows rows;
  const TensorView shifted(rows.in + 1, f32, {2, 8});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(stage.choosy_runs(rows.y, rows.x));
    EXPECT_FALSE(stage.choosy_runs(rows.y, shifted));
  }
}

TEST(Defects, the_cache_key_omits_determinism_that_the_check_used) {
  Choosy stage(Caps{}.inference_only(), OPMUX_IMPL_CAPTURE_SAFE);
  const Rows rows;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(stage.choosy_runs(rows.y, rows.x));
    {
      const AmbientScope scope({.deterministic = true});
      EXPECT_FALSE(stage.choosy_runs(rows.y, rows.x));
    }
    {
      const AmbientScope scope({.grad = true});
      EXPECT_FALSE(stage.choosy_runs(rows.y, rows.x));
    }
    const AmbientScope scope({.capturing = true});
    EXPECT_TRUE(stage.choosy_runs(rows.y, rows.x));
  }
}

TEST(Defects, the_cache_key_omits_a_scalar_a_dtype_a_rank_or_presence) {
  Choosy scalar(Caps{}.scalar("group", {1, 4})), dtype(Caps{}.dtypes("x", {f32})),
      rank(Caps{}.rank("x", 2, 2)), present(Caps{}.absent("weight"));
  const Rows rows;
  const TensorView half(rows.in, bf16, {2, 8});
  const TensorView y3(const_cast<float*>(rows.out), f32, {1, 2, 8}), x3(rows.in, f32, {1, 2, 8});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(scalar.choosy_runs(rows.y, rows.x, none, 4));
    EXPECT_FALSE(scalar.choosy_runs(rows.y, rows.x, none, 2));
    EXPECT_TRUE(dtype.choosy_runs(rows.y, rows.x));
    EXPECT_FALSE(dtype.choosy_runs(rows.y, half));
    EXPECT_TRUE(rank.choosy_runs(rows.y, rows.x));
    EXPECT_FALSE(rank.choosy_runs(y3, x3));
    EXPECT_TRUE(present.choosy_runs(rows.y, rows.x, none));
    EXPECT_FALSE(present.choosy_runs(rows.y, rows.x, rows.w));
  }
}

TEST(Defects, the_cache_key_omits_a_dimension_that_a_verifier_or_a_rule_used) {
  Stage stage;
  const Operator op = stage.define(kGroupNorm);
  stage.add({.id = "norm/choosy.one",
             .kind = Kind::default_,
             .verify = [](const Facts& facts) -> std::string {
               return facts.dim("H") == 24 ? "24 is unlucky" : "";
             },
             .verify_reads = {{{OPMUX_FACT_DIM, "H"}}}});
  stage.add({.id = "norm/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(stage.runtime.policy()
                  .set({.rules = {{.op = "norm",
                                   .when = Condition::rows(Compare::greater, 4),
                                   .deny = {"impl:norm/choosy.one"}}}})
                  .ok());
  for (int i = 0; i < 2; ++i) {
    for (const int64_t h : {8, 16, 24, 32, 24, 8}) {
      for (const int64_t r : {1, 4, 5, 4}) {
        const Rows rows(r, h);
        EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }),
                  h == 24 || r > 4 ? "norm/plain.one" : "norm/choosy.one")
            << r << " x " << h;
      }
    }
  }
}

struct Prepared {
  std::string mode;
  std::vector<int64_t> sizes;
};

int32_t plan_words(void*, const opmux_call* call, void** prepared) {
  const opmux_list mode = call->args[2].value.list, sizes = call->args[3].value.list;
  const auto* first = static_cast<const int64_t*>(sizes.data);
  *prepared = new Prepared{std::string(static_cast<const char*>(mode.data), mode.size),
                           std::vector<int64_t>(first, first + sizes.size)};
  return OPMUX_OK;
}
void free_words(void*, void* prepared) { delete static_cast<Prepared*>(prepared); }
int32_t run_words(void*, const opmux_call* call) {
  const auto& made = *static_cast<const Prepared*>(call->prepared);
  const opmux_list mode = call->args[2].value.list, sizes = call->args[3].value.list;
  const auto* first = static_cast<const int64_t*>(sizes.data);
  const bool same = made.mode == std::string_view(static_cast<const char*>(mode.data), mode.size) &&
                    made.sizes == std::vector<int64_t>(first, first + sizes.size);
  return same ? OPMUX_OK : OPMUX_FAILED;
}

// The strings of one call site have the same address, whatever their contents.
TEST(Defects, the_cache_key_omits_what_a_string_or_a_list_says) {
  Stage stage;
  const Operator op =
      stage.define("pick(out Tensor y[H], Tensor x[H], str mode = \"a\", int[] sizes = [])");
  Registration held =
      stage.runtime
          .implement({.id = "pick/words.one",
                      .kind = Kind::default_,
                      .kernel = {.run = run_words, .plan = plan_words, .plan_free = free_words}})
          .value();
  const Rows rows;
  const TensorView y(const_cast<float*>(rows.out), f32, {8}), x(rows.in, f32, {8});
  const auto call = [&](std::string_view mode, std::vector<int64_t> sizes) {
    return op(y, x, mode, sizes);
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(call("a", {1, 2}).ok());
    EXPECT_TRUE(call("b", {1, 2}).ok()) << "the state prepared for \"a\" was used";
    EXPECT_TRUE(call("b", {1, 3}).ok()) << "the state prepared for {1, 2} was used";
  }
  EXPECT_EQ(stage.stats("pick/words.one").calls, 9u);
}

TEST(Defects, a_decline_of_one_word_is_remembered_for_another) {
  Stage stage;
  const Operator op = stage.define("pick(out Tensor y[H], Tensor x[H], str mode = \"a\")");
  stage.add({.id = "pick/choosy.one", .kind = Kind::default_, .run = [](CallFrame& call) {
               const opmux_list mode = call.c().args[2].value.list;
               return *static_cast<const char*>(mode.data) == 'b' ? Outcome::declined : Outcome::ok;
             }});
  stage.add({.id = "pick/plain.one", .kind = Kind::reference});
  const Rows rows;
  const TensorView y(const_cast<float*>(rows.out), f32, {8}), x(rows.in, f32, {8});
  const auto run = [&](std::string_view mode) {
    return ran_by([&] { EXPECT_TRUE(op(y, x, mode).ok()); });
  };
  EXPECT_EQ(run("a"), "pick/choosy.one");
  EXPECT_EQ(run("b"), "pick/choosy.one pick/plain.one");
  EXPECT_EQ(run("b"), "pick/plain.one");
  EXPECT_EQ(run("a"), "pick/choosy.one");
}

}  // namespace
}  // namespace opmux::test
