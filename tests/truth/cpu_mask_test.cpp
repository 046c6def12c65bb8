#include "base/system/cpu_features.hpp"

#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A feature of this processor.
const std::string& own_feature() { return *base::cpu_features().begin(); }

TEST(CpuMask, truth_a_masked_feature_is_absent_for_implementations_conditions_and_policies) {
  const std::string& feature = own_feature();
  const std::string requires_it = "opmux: 1\nrules: [{op: softmax, require: [softmax/wide.x]}]\n";
  const std::string asks_for_it = "opmux: 1\nrules:\n  - {op: softmax, when: 'cpu(\"" + feature +
                                  "\")', prefer: [reference]}\n";
  Rows t;
  for (const bool masked : {false, true}) {
    Stage stage(masked ? bare({{"OPMUX_CPU_MASK", feature}}) : bare());
    stage.add({.id = "softmax/wide.x",
               .kind = Kind::default_,
               .priority = 200,
               .caps = Caps{}.cpu_features(feature)});
    stage.add({.id = "softmax/narrow.x", .kind = Kind::default_, .priority = 150});
    const Operator softmax = stage.runtime.op("softmax").value();
    const auto runs = [&] { return ran_by([&] { EXPECT_TRUE(softmax(t.y, t.x).ok()); }); };
    EXPECT_EQ(runs(), masked ? "softmax/narrow.x" : "softmax/wide.x");
    const Candidate wide = candidate(softmax.explain(t.y, t.x), "softmax/wide.x");
    EXPECT_EQ(wide.code, masked ? "caps.cpu_features" : "");
    EXPECT_THAT(wide.reason, HasSubstr(masked ? "OPMUX_CPU_MASK hides " + feature : "priority"));
    EXPECT_EQ(stage.runtime.policy().check(requires_it, "p.yaml").has_value(), !masked);
    EXPECT_EQ(stage.runtime.policy().load(requires_it, "p.yaml").ok(), !masked);
    ASSERT_TRUE(stage.runtime.policy().load(asks_for_it, "p.yaml").ok());
    EXPECT_EQ(softmax.explain(t.y, t.x).chosen,
              masked ? "softmax/narrow.x" : "softmax/reference.scalar");
    EXPECT_EQ(setting(stage.runtime, "cpu_mask"),
              masked ? feature + " <- OPMUX_CPU_MASK (environment)" : "");
  }
}

TEST(CpuMask, truth_a_pattern_masks_all_that_it_matches) {
  Stage stage(bare({{"OPMUX_CPU_MASK", "*"}}));
  stage.add(
      {.id = "softmax/wide.x", .kind = Kind::default_, .caps = Caps{}.cpu_features(own_feature())});
  Rows t;
  const Operator softmax = stage.runtime.op("softmax").value();
  EXPECT_EQ(softmax.explain(t.y, t.x).chosen, "softmax/reference.scalar");
}

TEST(CpuMask, truth_a_misspelt_feature_is_refused) {
  const Status refused = Runtime::create(bare({{"OPMUX_CPU_MASK", "avx2,avx521f"}})).error();
  EXPECT_EQ(refused.reason(), "environment.value");
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("'avx521f' is not a feature"), HasSubstr("did you mean 'avx512f'?")));
}

}  // namespace
}  // namespace opmux::test
