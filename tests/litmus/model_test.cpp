#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "protocol_model.hpp"

namespace litmus::model {
namespace {

/// The long form explores longer programs, which takes gigabytes of memory.
bool long_form() { return std::getenv("OPMUX_LITMUS_MODEL") != nullptr; }

std::string problem_of(const Model& model) {
  const Explored explored = explore(model);
  std::cout << explored.states << " states\n";
  EXPECT_GT(explored.states, 1000u);
  return explored.problem;
}

TEST(ProtocolModel, no_interleaving_of_three_threads_uses_a_freed_state) {
  EXPECT_EQ(problem_of({Kind::state, Mistake::none, 2, 1}), "");
  if (long_form()) {
    EXPECT_EQ(problem_of({Kind::state, Mistake::none, 3, 1}), "");
    EXPECT_EQ(problem_of({Kind::state, Mistake::none, 2, 2}), "");
  }
}

TEST(ProtocolModel, no_interleaving_of_nested_calls_uses_a_freed_state) {
  EXPECT_EQ(problem_of({Kind::state, Mistake::none, 2, 1, true}), "");
  if (long_form()) {
    EXPECT_EQ(problem_of({Kind::state, Mistake::none, 3, 1, true}), "");
  }
}

TEST(ProtocolModel, no_interleaving_of_three_threads_uses_a_freed_pack) {
  EXPECT_EQ(problem_of({Kind::pack, Mistake::none, 2, 1}), "");
  if (long_form()) {
    EXPECT_EQ(problem_of({Kind::pack, Mistake::none, 3, 1}), "");
    EXPECT_EQ(problem_of({Kind::pack, Mistake::none, 2, 2}), "");
  }
}

TEST(ProtocolModel, nested_calls_that_get_their_number_after_the_check_are_found) {
  const Explored explored = explore({Kind::state, Mistake::number_after_check, 2, 1, true});
  EXPECT_EQ(explored.problem, "a call used a freed object");
}

class ProtocolMistake : public ::testing::TestWithParam<std::tuple<Kind, Mistake>> {};

TEST_P(ProtocolMistake, is_found) {
  const auto [kind, mistake] = GetParam();
  const Explored explored = explore({kind, mistake, 2, 1});
  EXPECT_EQ(explored.problem, "a call used a freed object");
}
INSTANTIATE_TEST_SUITE_P(
    States, ProtocolMistake,
    ::testing::Combine(::testing::Values(Kind::state),
                       ::testing::Values(Mistake::no_barrier, Mistake::mark_after_check,
                                         Mistake::no_scan, Mistake::pin_ends_blocker)));
INSTANTIATE_TEST_SUITE_P(
    Packs, ProtocolMistake,
    ::testing::Combine(::testing::Values(Kind::pack),
                       ::testing::Values(Mistake::no_barrier, Mistake::mark_after_check,
                                         Mistake::no_scan, Mistake::foreign_passes)));

}  // namespace
}  // namespace litmus::model
