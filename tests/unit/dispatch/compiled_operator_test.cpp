#include "dispatch/compiled_operator.hpp"

#include <atomic>
#include <barrier>
#include <deque>
#include <thread>
#include <vector>

#include "dispatch/call/thread_block.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr int kCompilers = 8;

/// Counts the compilations of an operator with one implementation. The first one waits a while for
/// a second one to begin.
class CountedCompilations final : public dispatch::TapView {
 public:
  std::shared_ptr<dispatch::CallTap> tap_of(const registry::OperatorRecord&,
                                            const registry::ImplementationPtr&) const override {
    ++count;
    for (int i = 0; i < 10'000 && count == 1; ++i) std::this_thread::yield();
    return nullptr;
  }
  uint64_t version() const override { return 0; }
  mutable std::atomic<int> count{0};
};

TEST(CompiledOperator, one_thread_compiles_and_the_others_wait_for_it) {
  Stage stage;
  stage.define(kCopy);
  stage.add({.id = "copy/a.x", .kind = Kind::default_});
  const auto snapshot = stage.runtime.core().registry().snapshot();
  const CountedCompilations taps;
  dispatch::CompiledOperator compiled(
      {.op = snapshot->operators.at("copy"),
       .policies = std::make_shared<policy::PolicySet>(),
       .states = {std::make_shared<dispatch::ImplementationState>()},
       .taps = &taps});
  policy::ScopeTable scopes;
  std::barrier start(kCompilers);
  std::vector<dispatch::DecisionCache*> found(kCompilers);
  std::vector<std::thread> threads;
  for (dispatch::DecisionCache*& own : found) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      own = &compiled.space(0, scopes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taps.count, 1);
  for (const dispatch::DecisionCache* own : found) EXPECT_EQ(own, compiled.unscoped());
}

TEST(Declines, are_found_exactly_and_by_shape) {
  dispatch::Declines declines;
  EXPECT_LT(sizeof(dispatch::CompiledOperator), 1024u) << "operators without declines are small";
  EXPECT_FALSE(declines.any());
  EXPECT_FALSE(declines.has(5, 1));
  EXPECT_FALSE(declines.may_have(7));
  const Rows small(2, 8), large(2, 16);
  const auto shape = [](const Rows& rows) {
    dispatch::Declines::ShapeHash hash;
    hash.add(0, rows.y);
    hash.add(1, rows.x);
    return hash.value();
  };
  EXPECT_TRUE(declines.remember(5, shape(small), 1));
  EXPECT_TRUE(declines.remember(5, shape(small), 1)) << "a second time";
  EXPECT_TRUE(declines.any());
  EXPECT_TRUE(declines.has(5, 1));
  EXPECT_FALSE(declines.has(5, 2));
  EXPECT_FALSE(declines.has(6, 1));
  EXPECT_TRUE(declines.may_have(shape(small)));
  EXPECT_FALSE(declines.may_have(shape(large)));
  for (uint64_t i = 6; i < 5 + dispatch::Declines::kMost; ++i)
    EXPECT_TRUE(declines.remember(i, shape(large), 1));
  EXPECT_FALSE(declines.remember(3, shape(large), 1)) << "it is full";
}

/// One declined shape sends calls with this shape to the next implementation; calls with other
/// shapes stay on the fast path.
TEST(Declines, of_one_shape_leave_the_others_on_the_fast_path) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/first.one", .kind = Kind::default_});
  stage.add({.id = "copy/other.one", .kind = Kind::reference});
  stage.kernel("copy/first.one").body = [](CallFrame& call) {
    return call.tensor(0).shape()[1] == 8 ? Outcome::declined : Outcome::ok;
  };
  std::deque<Rows> rows;
  for (int64_t h = 1; h <= 16; ++h) rows.emplace_back(2, h);
  for (int round = 0; round < 3; ++round) {
    for (const Rows& t : rows) ASSERT_TRUE(op(t.y, t.x).ok());
  }
  EXPECT_EQ(stage.stats("copy/first.one").declined, 1u);
  EXPECT_EQ(stage.stats("copy/other.one").calls, 3u);
  const uint64_t before = dispatch::own_thread_block().cold_sequence;
  for (int round = 0; round < 10; ++round) {
    for (const Rows& t : rows) {
      if (t.x.shape()[1] == 8) continue;
      ASSERT_TRUE(op(t.y, t.x).ok());
    }
  }
  EXPECT_EQ(dispatch::own_thread_block().cold_sequence, before);
  EXPECT_EQ(stage.stats("copy/first.one").calls, 13u * 15);
}

}  // namespace
}  // namespace opmux::test
