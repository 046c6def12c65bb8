#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drafts.hpp"

namespace opmux::registry {
namespace {

using test::batch_of;
using test::reasons_of;
using testing::ElementsAre;
using testing::IsEmpty;

PointFunction answers(int64_t value) {
  return [value](const opmux_arg*, uint32_t, opmux_arg& answer) {
    answer.tag = OPMUX_ARG_I64;
    answer.value.i64 = value;
    return true;
  };
}

Batch plugin_batch(const std::string& name, const std::string& signature) {
  Batch batch = batch_of(name, {});
  batch.backend.plugin = name;
  batch.points.push_back({signature, answers(1)});
  return batch;
}

class PointRegistration : public testing::Test {
 protected:
  std::vector<std::string> who_answers(const std::string& point) {
    std::vector<std::string> names;
    for (const auto& answer : registry_.snapshot()->points.at(point)->answers) {
      names.push_back(answer.backend->name());
    }
    return names;
  }
  Registry registry_;
};

TEST_F(PointRegistration, usable_before_any_backend_is_there) {
  ASSERT_TRUE(registry_.declare_point("gemm.tile_n(Device) -> int").ok());
  EXPECT_THAT(who_answers("gemm.tile_n"), IsEmpty());
}

TEST_F(PointRegistration, the_same_declaration_again_is_fine_and_another_is_refused_with_both) {
  ASSERT_TRUE(registry_.declare_point("tile(Device) -> int").ok());
  EXPECT_TRUE(registry_.declare_point("tile( Device )->int").ok());
  const Status other = registry_.declare_point("tile(int) -> int");
  EXPECT_EQ(other.reason(), "point.signature");
  EXPECT_EQ(other.message(),
            "specialization point tile(Device) -> int cannot be redeclared as tile(int) -> int");
  EXPECT_EQ(registry_.declare_point("tile").reason(), "point.syntax");
}

TEST_F(PointRegistration, answers_are_ordered_by_priority_and_then_by_name) {
  ASSERT_TRUE(registry_.declare_point("tile() -> int").ok());
  for (const char* name : {"b", "a", "high"}) {
    Batch batch = plugin_batch(name, "tile() -> int");
    batch.backend.priority = std::string(name) == "high" ? 500 : 100;
    EXPECT_THAT(registry_.add(batch, true).refused, IsEmpty());
  }
  EXPECT_THAT(who_answers("tile"), ElementsAre("high", "a", "b"));
}

TEST_F(PointRegistration, an_answer_with_another_signature_is_refused_with_both) {
  ASSERT_TRUE(registry_.declare_point("tile(Device) -> int").ok());
  const auto result = registry_.add(plugin_batch("acme", "tile(Device) -> float"), true);
  ASSERT_THAT(reasons_of(result), ElementsAre("point.signature"));
  EXPECT_EQ(
      result.refused[0].why.message(),
      "the answer has the signature tile(Device) -> float, the point has tile(Device) -> int");
}

TEST_F(PointRegistration, a_plugins_answer_waits_for_the_declaration) {
  EXPECT_THAT(registry_.add(plugin_batch("acme", "tile() -> int"), true).refused, IsEmpty());
  EXPECT_EQ(registry_.snapshot()->unclaimed.size(), 1u);
  ASSERT_TRUE(registry_.declare_point("tile() -> int").ok());
  EXPECT_THAT(who_answers("tile"), ElementsAre("acme"));
  EXPECT_THAT(registry_.snapshot()->unclaimed, IsEmpty());
}

TEST_F(PointRegistration, waiting_answers_with_another_signature_are_dropped_and_listed) {
  registry_.add(plugin_batch("acme", "tile() -> float"), true);
  registry_.add(plugin_batch("ajax", "tile() -> int"), true);
  std::vector<Refusal> dropped;
  ASSERT_TRUE(registry_.declare_point("tile() -> int", &dropped).ok());
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].what, "tile of acme");
  EXPECT_EQ(dropped[0].why.reason(), "point.signature");
  EXPECT_THAT(who_answers("tile"), ElementsAre("ajax"));
}

TEST_F(PointRegistration, withdrawing_a_backend_takes_its_waiting_answers) {
  registry_.add(plugin_batch("acme", "tile() -> int"), true);
  registry_.withdraw_backend("acme");
  ASSERT_TRUE(registry_.declare_point("tile() -> int").ok());
  EXPECT_THAT(who_answers("tile"), IsEmpty());
}

TEST_F(PointRegistration, a_programs_answer_to_an_unknown_point_is_refused_with_the_nearest) {
  ASSERT_TRUE(registry_.declare_point("gemm.tile_n() -> int").ok());
  registry_.add(batch_of("acme", {}), true);
  const Status unknown = registry_.answer_point("gemm.tile_m() -> int", "acme", answers(1));
  EXPECT_EQ(unknown.reason(), "point.unknown");
  EXPECT_EQ(unknown.message(),
            "no specialization point is declared as 'gemm.tile_m'; did you mean 'gemm.tile_n'?");
  Batch batch = batch_of("ajax", {});
  batch.points.push_back({"gemm.tile_m() -> int", answers(1)});
  EXPECT_THAT(reasons_of(registry_.add(batch, true)), ElementsAre("point.unknown"));
}

TEST_F(PointRegistration, a_program_answers_for_a_backend_that_exists) {
  ASSERT_TRUE(registry_.declare_point("tile() -> int").ok());
  registry_.add(batch_of("acme", {}), true);
  EXPECT_EQ(registry_.answer_point("tile() -> int", "acne", answers(1)).message(),
            "there is no backend 'acne' to answer tile; did you mean 'acme'?");
  ASSERT_TRUE(registry_.answer_point("tile() -> int", "acme", answers(64)).ok());
  opmux_arg answer{};
  const auto point = registry_.snapshot()->points.at("tile");
  ASSERT_TRUE((*point->answers.at(0).function)(nullptr, 0, answer));
  EXPECT_EQ(answer.value.i64, 64);
}

TEST_F(PointRegistration, one_backend_answers_a_point_once_and_with_a_function) {
  ASSERT_TRUE(registry_.declare_point("tile() -> int").ok());
  registry_.add(batch_of("acme", {}), true);
  EXPECT_EQ(registry_.answer_point("tile() -> int", "acme", {}).reason(), "point.no_function");
  ASSERT_TRUE(registry_.answer_point("tile() -> int", "acme", answers(1)).ok());
  EXPECT_EQ(registry_.answer_point("tile() -> int", "acme", answers(2)).reason(),
            "point.duplicate");
  Batch twice = plugin_batch("ajax", "other() -> int");
  twice.points.push_back(twice.points[0]);
  EXPECT_THAT(reasons_of(registry_.add(twice, true)), ElementsAre("point.duplicate"));
}

}  // namespace
}  // namespace opmux::registry
