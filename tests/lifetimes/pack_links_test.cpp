#include <bit>
#include <functional>

#include "dispatch/plan/packed_constant.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// An implementation that packs a constant and counts its copies.
struct CountedCopies {
  int alive = 0, runs = 0;
  std::function<void()> inside = [] {};

  static CountedCopies& of(void* self) { return *static_cast<CountedCopies*>(self); }
  static int32_t create(void* self, const opmux_arg*, uint32_t, void** instance, opmux_error*) {
    ++of(self).alive;
    *instance = new int(0);
    return OPMUX_OK;
  }
  static void destroy(void* self, void* instance) {
    --of(self).alive;
    delete static_cast<int*>(instance);
  }
  static int32_t run(void* self, const opmux_call*) {
    ++of(self).runs;
    of(self).inside();
    return OPMUX_OK;
  }
};

/// Two implementations of one operator, each with a copy of the same constant.
struct PackLinksLifetime : testing::Test {
  Registration implement(CountedCopies& packing, const std::string& id, int priority) {
    return stage.runtime
        .implement({.id = id,
                    .kind = Kind::default_,
                    .priority = priority,
                    .kernel = {.user_data = &packing,
                               .run = CountedCopies::run,
                               .create = CountedCopies::create,
                               .destroy = CountedCopies::destroy}})
        .value();
  }
  /// The links of the constant's copies, the newest first.
  std::vector<const dispatch::PackLink*> links() const {
    const auto* view = std::bit_cast<const TensorView*>(w.argument().reserved);
    std::vector<const dispatch::PackLink*> found;
    for (auto* link = dispatch::PackedConstant::of(*view).first_link(); link != nullptr;
         link = link->next())
      found.push_back(link);
    return found;
  }
  size_t waiting() { return stage.runtime.core().packs()->waiting(); }

  CountedCopies first, second;
  Stage stage;
  const Operator op =
      stage.define("scale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H])");
  Rows t;
  Constant w = stage.runtime.constant(t.w).value();
};

TEST_F(PackLinksLifetime, a_call_keeps_the_links_of_other_implementations_but_not_their_copies) {
  const Registration one = implement(first, "scale/one.x", 100);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(op(t.y, t.x, w).ok());
  const Registration two = implement(second, "scale/two.x", 200);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(op(t.y, t.x, w).ok());
  ASSERT_EQ(links().size(), 2u);

  // A call of scale/two.x that has just read the pointer to the link of scale/one.x.
  second.inside = [&] {
    const auto seen = links();
    w.changed();
    EXPECT_EQ(first.alive, 0) << "no call of scale/one.x runs";
    EXPECT_EQ(second.alive, 1) << "this call uses it";
    EXPECT_EQ(waiting(), 3u) << "the copy of scale/two.x and both links";
    // AddressSanitizer reports a link that was freed.
    EXPECT_EQ(seen[0]->next(), seen[1]);
    EXPECT_EQ(seen[1]->next(), nullptr);
    EXPECT_TRUE(links().empty());
  };
  EXPECT_TRUE(op(t.y, t.x, w).ok());
  EXPECT_EQ(second.runs, 4);
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(second.alive, 0);
}

}  // namespace
}  // namespace opmux::test
