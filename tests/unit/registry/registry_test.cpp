#include "registry/registry.hpp"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drafts.hpp"
#include "forked.hpp"

namespace opmux::registry {
namespace {

using test::batch_of;
using test::draft;
using test::ids_of;
using test::kNorm;
using test::reasons_of;
using test::true_in_forked_child;
using testing::ElementsAre;

class RegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.define(kNorm).ok());
    ASSERT_TRUE(registry_.define("swish(out Tensor y[N], Tensor x[N])").ok());
  }
  std::vector<std::string> norms() const {
    return ids_of(registry_.snapshot()->find("norm")->implementations);
  }
  Registry registry_;
};

TEST_F(RegistryTest, the_same_text_again_is_the_same_operator) {
  const uint64_t revision = registry_.snapshot()->find("norm")->revision;
  EXPECT_TRUE(registry_
                  .define("norm( out Tensor y[..., H], Tensor x[..., H],Tensor? weight[H], "
                          "float eps=1e-6 )")
                  .ok());
  EXPECT_EQ(registry_.snapshot()->find("norm")->revision, revision);
}

TEST_F(RegistryTest, another_text_under_the_same_name_is_refused_with_both) {
  const Status other = registry_.define("swish(out Tensor y[M], Tensor x[M])");
  EXPECT_EQ(other.code(), Code::already_exists);
  EXPECT_EQ(other.reason(), "registry.schema_differs");
  EXPECT_EQ(
      other.message(),
      "operator swish is defined as swish(out Tensor y[N], Tensor x[N]) and cannot be redefined as "
      "swish(out Tensor y[M], Tensor x[M])");
}

TEST_F(RegistryTest, a_schema_that_does_not_parse_is_refused_and_changes_nothing) {
  EXPECT_FALSE(registry_.define("broken(").ok());
  EXPECT_EQ(registry_.snapshot()->operators.size(), 2u);
}

TEST_F(RegistryTest, a_snapshot_does_not_change_under_its_reader) {
  const RegistrySnapshotPtr before = registry_.snapshot();
  registry_.add(batch_of("acme", {draft("norm", "v1")}), false);
  EXPECT_TRUE(before->find("norm")->implementations.empty());
  EXPECT_THAT(norms(), ElementsAre("norm/acme.v1"));
  EXPECT_EQ(before->find_implementation("norm/acme.v1"), nullptr);
  EXPECT_NE(registry_.snapshot()->find_implementation("norm/acme.v1"), nullptr);
}

TEST_F(RegistryTest, enumeration_does_not_depend_on_the_order_of_registration) {
  Registry other;
  ASSERT_TRUE(other.define("swish(out Tensor y[N], Tensor x[N])").ok());
  ASSERT_TRUE(other.define(kNorm).ok());
  registry_.add(batch_of("b", {draft("norm", "v2"), draft("norm", "v1")}), false);
  registry_.add(batch_of("a", {draft("norm", "v10")}), false);
  other.add(batch_of("a", {draft("norm", "v10")}), false);
  other.add(batch_of("b", {draft("norm", "v1"), draft("norm", "v2")}), false);
  EXPECT_THAT(norms(), ElementsAre("norm/a.v10", "norm/b.v1", "norm/b.v2"));
  EXPECT_EQ(ids_of(other.snapshot()->find("norm")->implementations), norms());
  EXPECT_EQ(other.snapshot()->operators.begin()->first, "norm");
}

TEST_F(RegistryTest, a_record_carries_what_the_draft_and_its_backend_say) {
  ImplementationDraft mine = draft("norm", "v1");
  mine.flags = OPMUX_IMPL_DETERMINISTIC;
  mine.build_id = "b7";
  const BatchResult result = registry_.add(batch_of("acme", {mine}), false);
  ASSERT_EQ(result.added.size(), 1u);
  const ImplementationRecord& record = *result.added[0];
  EXPECT_EQ(record.id, "norm/acme.v1");
  EXPECT_EQ(record.vendor, "acme");
  EXPECT_EQ(record.kind, Kind::vendor);
  EXPECT_EQ(record.priority, 100);
  EXPECT_EQ(record.build_id, "b7");
  EXPECT_TRUE(record.has(OPMUX_IMPL_DETERMINISTIC));
  EXPECT_EQ(record.arg_count, 4u);
  EXPECT_EQ(record.backend, registry_.snapshot()->backends.at("acme"));
  EXPECT_EQ(result.backend, record.backend);
}

TEST_F(RegistryTest, numbers_are_unique_in_the_process) {
  Registry other;
  ASSERT_TRUE(other.define(kNorm).ok());
  const auto a = registry_.add(batch_of("a", {draft("norm", "v1"), draft("norm", "v2")}), false);
  const auto b = other.add(batch_of("a", {draft("norm", "v1")}), false);
  EXPECT_NE(a.added[0]->number, a.added[1]->number);
  EXPECT_NE(a.added[0]->number, b.added[0]->number);
  EXPECT_NE(a.added[1]->number, b.added[0]->number);
}

TEST_F(RegistryTest, a_revision_moves_only_for_the_operator_that_changed) {
  const RegistrySnapshotPtr before = registry_.snapshot();
  registry_.add(batch_of("acme", {draft("norm", "v1")}), false);
  const RegistrySnapshotPtr after = registry_.snapshot();
  EXPECT_NE(after->find("norm")->revision, before->find("norm")->revision);
  EXPECT_EQ(after->find("swish"), before->find("swish"));
}

TEST_F(RegistryTest, withdrawing_takes_out_exactly_what_was_asked_and_marks_it) {
  const auto added =
      registry_.add(batch_of("acme", {draft("norm", "v1"), draft("norm", "v2")}), false).added;
  registry_.withdraw({added[0]});
  EXPECT_THAT(norms(), ElementsAre("norm/acme.v2"));
  EXPECT_TRUE(added[0]->withdrawn);
  EXPECT_FALSE(added[1]->withdrawn);
  registry_.withdraw({added[0]});
  EXPECT_THAT(norms(), ElementsAre("norm/acme.v2"));
}

TEST_F(RegistryTest, withdrawing_an_old_record_leaves_its_successor_of_the_same_id) {
  const auto old = registry_.add(batch_of("acme", {draft("norm", "v1")}), false).added;
  registry_.withdraw(old);
  registry_.add(batch_of("acme", {draft("norm", "v1")}), false);
  registry_.withdraw(old);
  EXPECT_THAT(norms(), ElementsAre("norm/acme.v1"));
}

TEST_F(RegistryTest, a_programs_backend_goes_with_its_last_implementation) {
  const auto added = registry_.add(batch_of("acme", {draft("norm", "v1")}), false).added;
  EXPECT_TRUE(registry_.snapshot()->backends.contains("acme"));
  registry_.withdraw(added);
  EXPECT_FALSE(registry_.snapshot()->backends.contains("acme"));
}

TEST_F(RegistryTest, withdrawing_a_backend_takes_all_it_brought) {
  ASSERT_TRUE(registry_.declare_point("tile(Device) -> int").ok());
  Batch acme = batch_of("acme", {draft("norm", "v1"), draft("swish", "v1")});
  acme.points.push_back(
      {"tile(Device) -> int", [](const opmux_arg*, uint32_t, opmux_arg&) { return true; }});
  const auto added = registry_.add(acme, true).added;
  registry_.add(batch_of("other", {draft("norm", "v1")}), true);
  registry_.withdraw_backend("acme");
  const RegistrySnapshotPtr after = registry_.snapshot();
  EXPECT_THAT(norms(), ElementsAre("norm/other.v1"));
  EXPECT_TRUE(after->find("swish")->implementations.empty());
  EXPECT_FALSE(after->backends.contains("acme"));
  EXPECT_TRUE(after->points.at("tile")->answers.empty());
  EXPECT_TRUE(added[0]->withdrawn);
  registry_.withdraw_backend("nobody");
}

struct PublicationCounter final : Publisher {
  struct Counted final : Publication {
    explicit Counted(PublicationCounter& by) : counter(by) {}
    void publish(Change& change) override {
      change.exchange();
      (void)counter.registry.snapshot();  // The lock of readers is free.
      if (counter.memory) return;
      change.exchange();
      throw std::bad_alloc();
    }
    uint64_t finish() noexcept override { return ++counter.changes; }
    PublicationCounter& counter;
  };
  explicit PublicationCounter(const Registry& of) : registry(of) {}
  std::unique_ptr<Publication> begin() override { return std::make_unique<Counted>(*this); }
  void stop_withdrawn() noexcept override { ++stopped; }

  const Registry& registry;
  uint64_t changes = 0, stopped = 0;
  bool memory = true;  ///< false: publications throw std::bad_alloc
};

TEST_F(RegistryTest, notifies_about_each_publication_only) {
  PublicationCounter counter(registry_);
  registry_.set_publisher(&counter);
  const auto added = registry_.add(batch_of("acme", {draft("norm", "v1")}), false).added;
  EXPECT_EQ(counter.changes, 1u);
  registry_.add(batch_of("acme", {draft("norm", "v1")}), false);
  ASSERT_TRUE(registry_.define(kNorm).ok());
  EXPECT_EQ(counter.changes, 1u);
  registry_.withdraw(added);
  EXPECT_EQ(counter.changes, 2u);
  registry_.set_publisher(nullptr);
}

TEST_F(RegistryTest, a_publication_without_memory_changes_nothing) {
  PublicationCounter counter(registry_);
  registry_.set_publisher(&counter);
  counter.memory = false;
  const RegistrySnapshotPtr before = registry_.snapshot();
  EXPECT_THROW((void)registry_.add(batch_of("acme", {draft("norm", "v1")}), false), std::bad_alloc);
  EXPECT_EQ(registry_.snapshot(), before);
  counter.memory = true;
  EXPECT_EQ(registry_.add(batch_of("acme", {draft("norm", "v1")}), false).added.size(), 1u);
  registry_.set_publisher(nullptr);
}

TEST_F(RegistryTest, withdraws_without_memory_and_removes_with_the_next_change) {
  PublicationCounter counter(registry_);
  registry_.set_publisher(&counter);
  const auto added = registry_.add(batch_of("acme", {draft("norm", "v1")}), false).added;
  counter.memory = false;
  registry_.withdraw(added);
  EXPECT_TRUE(added[0]->withdrawn);
  EXPECT_EQ(counter.stopped, 1u);
  EXPECT_NE(registry_.snapshot()->find_implementation("norm/acme.v1"), nullptr);
  counter.memory = true;
  EXPECT_EQ(registry_.add(batch_of("acme", {draft("norm", "v1")}), false).added.size(), 1u)
      << "the id is free again";
  registry_.set_publisher(nullptr);
}

TEST_F(RegistryTest, adds_operators_and_batches_together_with_one_publication) {
  PublicationCounter counter(registry_);
  registry_.set_publisher(&counter);
  const std::vector<OperatorDraft> operators{{"first(Tensor x[N])"}, {"second(Tensor x[N])"}};
  const std::vector<Batch> batches{batch_of("zeta", {draft("second", "v1")}),
                                   batch_of("acme", {draft("first", "v1"), draft("norm", "v1")})};
  const auto added = registry_.add_together(operators, batches);
  ASSERT_TRUE(added.has_value());
  EXPECT_THAT(ids_of(*added), ElementsAre("second/zeta.v1", "first/acme.v1", "norm/acme.v1"));
  EXPECT_EQ(counter.changes, 1u);
  EXPECT_EQ(registry_.add_together(operators, {}).value().size(), 0u);
  EXPECT_EQ(counter.changes, 1u) << "nothing is new";
  registry_.set_publisher(nullptr);
}

TEST_F(RegistryTest, a_refusal_among_additions_leaves_nothing_and_uses_up_no_numbers) {
  const std::vector<OperatorDraft> operators{{"first(Tensor x[N])"}};
  const std::vector<Batch> batches{batch_of("acme", {draft("norm", "v1")}),
                                   batch_of("zeta", {draft("nrom", "v1")})};
  const auto first = registry_.add(batch_of("early", {draft("norm", "v1")}), true);
  const auto added = registry_.add_together(operators, batches);
  EXPECT_EQ(added.error().reason(), "registry.unknown_operator");
  EXPECT_EQ(added.error().message(),
            "nrom/zeta.v1: there is no operator 'nrom'; did you mean 'norm'?");
  EXPECT_THAT(norms(), ElementsAre("norm/early.v1"));
  EXPECT_EQ(registry_.snapshot()->find("first"), nullptr);
  EXPECT_FALSE(registry_.snapshot()->backends.contains("acme"));
  const auto next = registry_.add(batch_of("late", {draft("norm", "v1")}), true);
  EXPECT_EQ(next.added[0]->number, first.added[0]->number + 1);
}

TEST_F(RegistryTest, a_frozen_registry_refuses_each_of_several_batches) {
  registry_.freeze(true);
  Batch only_operators;
  only_operators.operators = {"acme.first(Tensor x[N])"};
  only_operators.backend.plugin = "acme_plugin";
  const auto results =
      registry_.add_each({batch_of("acme", {draft("norm", "v1")}), only_operators});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(reasons_of(results[0]), ElementsAre("runtime.frozen"));
  EXPECT_EQ(results[0].refused[0].what, "acme");
  EXPECT_THAT(reasons_of(results[1]), ElementsAre("runtime.frozen"));
  EXPECT_EQ(results[1].refused[0].what, "acme_plugin");
  EXPECT_THAT(norms(), testing::IsEmpty());
  EXPECT_EQ(registry_.snapshot()->find("acme.first"), nullptr);
  registry_.freeze(false);
  EXPECT_EQ(registry_.add_each({only_operators})[0].refused.size(), 0u);
  EXPECT_NE(registry_.snapshot()->find("acme.first"), nullptr);
}

TEST_F(RegistryTest, eight_threads_register_and_withdraw_side_by_side) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const std::string name = "p" + std::to_string(t);
        for (int i = 0; i < 20; ++i) {
          const auto added = registry_.add(batch_of(name, {draft("norm", "v1")}), true).added;
          registry_.withdraw(added);
        }
        registry_.add(batch_of(name, {draft("norm", "last")}), true);
      });
    }
  }
  EXPECT_THAT(norms(), ElementsAre("norm/p0.last", "norm/p1.last", "norm/p2.last", "norm/p3.last",
                                   "norm/p4.last", "norm/p5.last", "norm/p6.last", "norm/p7.last"));
}

TEST_F(RegistryTest, a_child_forked_while_others_register_sees_a_whole_snapshot_and_can_register) {
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    while (!stop) {
      registry_.withdraw(registry_.add(batch_of("busy", {draft("norm", "v1")}), true).added);
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(true_in_forked_child([&] {
      const auto result = registry_.add(batch_of("child", {draft("norm", "v1")}), true);
      return result.refused.empty() && registry_.snapshot()->find_implementation("norm/child.v1");
    }));
  }
  stop = true;
}

TEST_F(RegistryTest, re_registration_after_fork_is_refused_as_duplicate_only_if_it_is_one) {
  registry_.add(batch_of("acme", {draft("norm", "v1")}), true);
  EXPECT_TRUE(true_in_forked_child([&] {
    const auto again = registry_.add(batch_of("acme", {draft("norm", "v1")}), true);
    const auto fresh = registry_.add(batch_of("acme", {draft("norm", "v2")}), true);
    return reasons_of(again) == std::vector<std::string>{"registry.duplicate"} &&
           fresh.refused.empty();
  }));
}

}  // namespace
}  // namespace opmux::registry
