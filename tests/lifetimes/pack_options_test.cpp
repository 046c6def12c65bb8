#include <optional>
#include <vector>

#include "dispatch/plan/packed_constant.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// An implementation that packs a constant for the value of `group` that create() was shown.
struct Grouped {
  struct Copy {
    int64_t group;
    uint32_t mode_tag;
    float first;
  };
  int creates = 0, destroys = 0, runs = 0, asked = 0;
  Copy seen{};

  static Grouped& of(void* self) { return *static_cast<Grouped*>(self); }
  static int32_t create(void* self, const opmux_arg* options, uint32_t, void** instance,
                        opmux_error*) {
    ++of(self).creates;
    *instance = new Copy{options[3].value.i64, options[4].tag, 0};
    return OPMUX_OK;
  }
  static int32_t load(void*, void* instance, const opmux_arg* params, uint32_t, opmux_error*) {
    static_cast<Copy*>(instance)->first = *static_cast<float*>(params[2].value.tensor->data);
    return OPMUX_OK;
  }
  static void destroy(void* self, void* instance) {
    ++of(self).destroys;
    delete static_cast<Copy*>(instance);
  }
  static uint64_t workspace(void* self, const opmux_call* call) {
    ++of(self).asked;
    return static_cast<uint64_t>(static_cast<Copy*>(call->instance)->first);
  }
  static int32_t run(void* self, const opmux_call* call) {
    ++of(self).runs;
    of(self).seen = *static_cast<Copy*>(call->instance);
    if (call->workspace_size != 0) {
      EXPECT_EQ(call->workspace_size, static_cast<uint64_t>(of(self).seen.first));
    }
    return OPMUX_OK;
  }
};

struct PackOptionsLifetime : testing::Test {
  void implement(std::optional<std::vector<FactRef>> reads = {}, bool with_workspace = false) {
    held = stage.runtime
               .implement({.id = "scale/packing.one",
                           .kind = Kind::default_,
                           .kernel = {.user_data = &grouped,
                                      .run = Grouped::run,
                                      .workspace = with_workspace ? Grouped::workspace : nullptr,
                                      .create = Grouped::create,
                                      .load = Grouped::load,
                                      .destroy = Grouped::destroy},
                           .create_reads = std::move(reads)})
               .value();
  }
  int64_t group_of_call(const Constant& w, int group, int mode = 0) {
    grouped.seen = {};
    EXPECT_TRUE(op(t.y, t.x, w, group, mode).ok());
    return grouped.seen.group;
  }

  Grouped grouped;
  Stage stage;
  Operator op = stage.define(
      "scale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H], int group = 32, int mode = "
      "0)");
  Registration held;
  Rows t, other;
};

TEST_F(PackOptionsLifetime, a_copy_is_used_for_the_options_that_it_was_made_for) {
  implement();
  const Constant w = stage.runtime.constant(t.w).value();
  for (int i = 0; i < 3; ++i) {
    for (const int group : {32, 64, 64, 128}) EXPECT_EQ(group_of_call(w, group), group);
  }
  EXPECT_EQ(grouped.creates, 3);
  EXPECT_EQ(w.packs(), 3u);
  EXPECT_EQ(stage.stats("scale/packing.one").calls, 12u);
}

TEST_F(PackOptionsLifetime, a_bound_plan_takes_the_copy_for_its_options) {
  implement();
  const Constant w = stage.runtime.constant(t.w).value();
  Plan plan = op.bind(t.y, t.x, w, 32, 0).value();
  for (const int group : {32, 128, 32, 64}) {
    ASSERT_TRUE(plan(t.y, t.x, w, group, 0).ok());
    EXPECT_EQ(grouped.seen.group, group);
  }
  EXPECT_EQ(grouped.creates, 3);
}

TEST_F(PackOptionsLifetime, scalars_that_create_does_not_read_share_a_copy_and_are_hidden_from_it) {
  implement({{{OPMUX_FACT_SCALAR, "group"}}});
  const Constant w = stage.runtime.constant(t.w).value();
  for (int mode = 0; mode < 40; ++mode)
    EXPECT_EQ(group_of_call(w, 32 + mode % 2, mode), 32 + mode % 2);
  EXPECT_EQ(grouped.creates, 2);
  EXPECT_EQ(grouped.seen.mode_tag, uint32_t{OPMUX_ARG_NONE});
}

TEST_F(PackOptionsLifetime, an_empty_list_of_reads_gives_one_copy) {
  implement({std::vector<FactRef>()});
  const Constant w = stage.runtime.constant(t.w).value();
  for (const int group : {32, 64, 128}) EXPECT_EQ(group_of_call(w, group), 0);
  EXPECT_EQ(grouped.creates, 1);
}

TEST_F(PackOptionsLifetime, reads_of_create_are_scalars) {
  for (const FactRef& fact :
       {FactRef{OPMUX_FACT_DIM, "H"}, FactRef{OPMUX_FACT_SCALAR, "no_such"}}) {
    const auto refused = stage.runtime.implement({.id = "scale/packing.two",
                                                  .kind = Kind::default_,
                                                  .run = [](CallFrame&) { return Outcome::ok; },
                                                  .create_reads = {{fact}}});
    EXPECT_EQ(refused.error().reason(), "registry.reads");
  }
}

TEST_F(PackOptionsLifetime, the_oldest_copy_goes_when_there_are_too_many_options) {
  implement();
  const Constant w = stage.runtime.constant(t.w).value();
  constexpr int kMost = dispatch::PackedConstant::kMostOptions;
  for (int group = 1; group <= 3 * kMost; ++group) EXPECT_EQ(group_of_call(w, group), group);
  EXPECT_EQ(w.packs(), static_cast<size_t>(kMost));
  EXPECT_EQ(grouped.creates, 3 * kMost);
  EXPECT_EQ(group_of_call(w, 3 * kMost - 1), 3 * kMost - 1);
  EXPECT_EQ(grouped.creates, 3 * kMost) << "a recent one is kept";
  (void)stage.runtime.packed_bytes();  // Frees retired copies.
  EXPECT_EQ(grouped.destroys, 2 * kMost);
}

TEST_F(PackOptionsLifetime, the_workspace_is_asked_for_again_with_another_copy) {
  implement({}, true);
  t.weight[0] = 64, other.weight[0] = 4096;
  const Constant a = stage.runtime.constant(t.w).value(),
                 b = stage.runtime.constant(other.w).value();
  for (int i = 0; i < 3; ++i) {
    group_of_call(a, 32);
    EXPECT_EQ(grouped.seen.first, 64);
    group_of_call(b, 32);
    EXPECT_EQ(grouped.seen.first, 4096);
  }
}

}  // namespace
}  // namespace opmux::test
