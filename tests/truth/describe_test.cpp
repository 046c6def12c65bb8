#include "stage.hpp"

#include <opmux/state_page.hpp>

#include "runtime/core.hpp"
#include "runtime/jobs/status_job.hpp"

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// Functions of an implementation that reports several attributes of its instances.
struct Describer {
  int instances = 0;

  static void say(const opmux_node_sink* sink, const std::string& key, const std::string& value) {
    sink->attribute(sink->context, {key.data(), key.size()}, {value.data(), value.size()});
  }
  static int32_t create(void* self, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
    ++static_cast<Describer*>(self)->instances;
    *instance = self;
    return OPMUX_OK;
  }
  static int32_t describe(void* self, void*, const opmux_node_sink* sink) {
    say(sink, "packed_bytes", "96");
    say(sink, "format", "panels of 8");
    say(sink, "tile\x1b[31m", std::string(5000, 'x'));
    say(sink, "number", "0");
    say(sink, "number", std::to_string(static_cast<Describer*>(self)->instances));
    sink->attribute(sink->context, {nullptr, 0}, {nullptr, 7});
    return OPMUX_OK;
  }
  KernelFunctions functions() {
    return {.user_data = this,
            .run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; },
            .create = create,
            .destroy = [](void*, void*) {},
            .describe = describe};
  }
};

struct TruthOfDescribe : testing::Test {
  TruthOfDescribe() {
    held = stage.runtime
               .implement({.id = "zscale/a.x", .kind = Kind::default_, .kernel = own.functions()})
               .value();
  }
  ImplementationInfo info() { return stage.runtime.list().back().implementations.at(0); }

  Describer own;
  Stage stage;
  Operator op = stage.define("zscale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H])");
  Registration held;
  Rows t;
};

TEST_F(TruthOfDescribe, every_attribute_is_listed_and_explained) {
  EXPECT_TRUE(info().instance.empty());
  const Constant w = stage.runtime.constant(t.w).value(),
                 other = stage.runtime.constant(t.w).value();
  CallReport report;
  ASSERT_TRUE(op.with(report)(t.y, t.x, w).ok());
  ASSERT_EQ(report.implementation, "zscale/a.x");
  ASSERT_TRUE(op(t.y, t.x, other).ok());
  EXPECT_THAT(info().instance,
              ElementsAre(Pair("packed_bytes", "96"), Pair("format", "panels of 8"),
                          Pair("tile\\x1b[31m", std::string(1024, 'x')), Pair("number", "2"),
                          Pair("", "")));
  EXPECT_EQ(w.packed_bytes(), 96u);
  EXPECT_THAT(to_json(stage.runtime.list()), HasSubstr("\"format\":\"panels of 8\""));
  const Explanation why = op.explain(t.y, t.x, w);
  EXPECT_THAT(candidate(why, "zscale/a.x").reason,
              HasSubstr("; packed: packed_bytes 96, format panels of 8, tile"));
}

TEST_F(TruthOfDescribe, the_status_file_has_every_attribute) {
  const Constant w = stage.runtime.constant(t.w).value();
  ASSERT_TRUE(op(t.y, t.x, w).ok());
  const RuntimeState state = runtime::state_of(stage.runtime.core());
  EXPECT_THAT(state.operators.back().implementations.at(0).instance,
              HasSubstr("packed_bytes 96, format panels of 8"));
}

TEST_F(TruthOfDescribe, an_instance_without_room_is_not_described) {
  Options options = bare();
  options.max_packed_bytes = 95;
  Stage small(std::move(options));
  const Operator scale =
      small.define("scale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H])");
  const Registration registered =
      small.runtime
          .implement({.id = "scale/a.x", .kind = Kind::default_, .kernel = own.functions()})
          .value();
  const Constant w = small.runtime.constant(t.w).value();
  ASSERT_TRUE(scale(t.y, t.x, w).ok());
  EXPECT_TRUE(candidate(scale.explain(t.y, t.x, w), "scale/a.x").reason.find("packed") ==
              std::string::npos);
}

}  // namespace
}  // namespace opmux::test
