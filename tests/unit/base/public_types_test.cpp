// The types of include/opmux/detail that stand for std::unique_ptr, std::shared_ptr, std::function
// and std::chrono in public headers, and Result, which holds its value in a union.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <opmux/detail/function.hpp>
#include <opmux/detail/pointer.hpp>
#include <opmux/detail/time.hpp>
#include <opmux/status.hpp>

namespace opmux {
namespace {

/// Counts the living objects in `alive`.
struct Counted {
  explicit Counted(int& counter) : alive(&counter) { ++counter; }
  Counted(const Counted& other) noexcept : alive(other.alive) { ++*alive; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive; }
  int* alive;
};

TEST(Owned, DeletesItsObjectOnce) {
  int alive = 0;
  {
    detail::Owned<Counted> first = std::make_unique<Counted>(alive);
    detail::Owned<Counted> second = std::move(first);
    EXPECT_TRUE(first == nullptr);  // NOLINT(bugprone-use-after-move): it is empty
    EXPECT_TRUE(static_cast<bool>(second));
    second = std::make_unique<Counted>(alive);
    EXPECT_EQ(alive, 1);
    delete second.release();
    EXPECT_TRUE(second == nullptr);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Shared, KeepsTheSharedPointerUntilTheLastCopyEnds) {
  int alive = 0;
  const auto object = std::make_shared<Counted>(alive);
  {
    detail::Shared<const Counted> first = object;
    EXPECT_EQ(object.use_count(), 2);
    detail::Shared<const Counted> second = first;
    detail::Shared<const Counted> third = std::move(first);
    EXPECT_EQ(object.use_count(), 2);
    EXPECT_TRUE(first == nullptr);  // NOLINT(bugprone-use-after-move): it is empty
    EXPECT_EQ(second.get(), object.get());
    second = nullptr;
    EXPECT_EQ(object.use_count(), 2);
    EXPECT_EQ(third->alive, &alive);
  }
  EXPECT_EQ(object.use_count(), 1);
  EXPECT_TRUE(detail::Shared<const Counted>(std::shared_ptr<Counted>()) == nullptr);
}

TEST(Function, IsEmptyWithoutAFunction) {
  using Add = detail::Function<int(int)>;
  EXPECT_FALSE(Add());
  EXPECT_FALSE(Add(nullptr));
  EXPECT_FALSE(Add(std::function<int(int)>()));
  EXPECT_FALSE(Add(static_cast<int (*)(int)>(nullptr)));
  EXPECT_FALSE((detail::Function<long(int)>(Add())));
  EXPECT_THROW(Add()(1), std::bad_function_call);
}

TEST(Function, CopiesDeeply) {
  detail::Function<int()> count = [n = 0]() mutable { return ++n; };
  EXPECT_EQ(count(), 1);
  detail::Function<int()> copy = count;
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(copy(), 2);
  const detail::Function<int()> moved = std::move(copy);
  EXPECT_FALSE(copy);  // NOLINT(bugprone-use-after-move): it is empty
  EXPECT_EQ(moved(), 3);
  const std::function<int()> other = moved;
  EXPECT_EQ(other(), 4);
  EXPECT_EQ(moved(), 4);
}

TEST(Function, ForwardsReferencesAndDropsUnusedResults) {
  std::string seen;
  const detail::Function<void(std::string&, const int&)> append = [&](std::string& text, int n) {
    text += std::to_string(n);
    return &seen;
  };
  append(seen, 42);
  EXPECT_EQ(seen, "42");
}

TEST(Time, ConvertsDurationsExactly) {
  using namespace std::chrono_literals;
  EXPECT_EQ(detail::nanoseconds_of(3ns), 3);
  EXPECT_EQ(detail::nanoseconds_of(-2ms), -2'000'000);
  EXPECT_EQ(detail::nanoseconds_of(1h), 3'600'000'000'000);
  static_assert(!detail::ExactDuration<std::chrono::duration<double>>);
}

TEST(Time, ClockReturnsSeconds) {
  EXPECT_FALSE(detail::UtcClock());
  const detail::UtcClock clock = [] {
    return std::chrono::sys_days(std::chrono::days(2)) + std::chrono::seconds(5);
  };
  EXPECT_EQ(clock(), 2 * 86400 + 5);
  const detail::UtcClock days = [] { return std::chrono::sys_days(std::chrono::days(2)); };
  EXPECT_EQ(days(), 2 * 86400);
}

TEST(Result, CopiesAndAssignsBetweenValueAndStatus) {
  int alive = 0;
  {
    Result<Counted> value = Counted(alive);
    Result<Counted> failure = Status(Code::failed, "test.reason", "text");
    Result<Counted> copy = value;
    EXPECT_EQ(alive, 2);
    copy = failure;
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(copy.error().reason(), "test.reason");
    EXPECT_THROW(*copy, Error);
    EXPECT_THROW((void)copy->alive, Error);
    copy = value;
    EXPECT_EQ(alive, 2);
    EXPECT_TRUE(copy.error().ok());
  }
  EXPECT_EQ(alive, 0);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> first = std::make_unique<int>(7);
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
  Result<std::unique_ptr<int>> second = std::move(first);
  EXPECT_EQ(**second, 7);
  second = Status(Code::failed, "", "text");
  EXPECT_FALSE(second.has_value());
  EXPECT_THROW(std::move(second).value(), Error);
  // NOLINTNEXTLINE(bugprone-use-after-move): value() threw and moved nothing
  EXPECT_EQ(std::move(second).error().message(), "text");
}

}  // namespace
}  // namespace opmux
