#include "registry/batch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drafts.hpp"

namespace opmux::registry {
namespace {

using test::batch_of;
using test::draft;
using test::ids_of;
using test::kNorm;
using test::reasons_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BatchTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(registry_.define(kNorm).ok()); }
  Status refusal(const Batch& batch) {
    const BatchResult result = registry_.add(batch, true);
    return result.refused.empty() ? Status() : result.refused[0].why;
  }
  Status refusal(const ImplementationDraft& one) { return refusal(batch_of("acme", {one})); }
  const std::vector<ImplementationPtr>& norms() {
    snapshot_ = registry_.snapshot();
    return snapshot_->find("norm")->implementations;
  }
  Registry registry_;
  RegistrySnapshotPtr snapshot_;
};

TEST_F(BatchTest, a_duplicate_is_refused_and_stops_nothing_else) {
  registry_.add(batch_of("acme", {draft("norm", "v1")}), false);
  const auto result = registry_.add(
      batch_of("acme", {draft("norm", "v0"), draft("norm", "v1"), draft("norm", "v2")}), false);
  EXPECT_THAT(ids_of(result.added), ElementsAre("norm/acme.v0", "norm/acme.v2"));
  ASSERT_EQ(result.refused.size(), 1u);
  EXPECT_EQ(result.refused[0].what, "norm/acme.v1");
  EXPECT_EQ(result.refused[0].why.code(), Code::already_exists);
  EXPECT_EQ(result.refused[0].why.message(), "norm/acme.v1 is already registered");
}

TEST_F(BatchTest, a_duplicate_within_one_batch_is_refused_too) {
  const auto result =
      registry_.add(batch_of("acme", {draft("norm", "v1"), draft("norm", "v1")}), false);
  EXPECT_THAT(reasons_of(result), ElementsAre("registry.duplicate"));
  EXPECT_EQ(norms().size(), 1u);
}

TEST_F(BatchTest, all_or_nothing_refuses_the_whole_backend_and_lists_every_refusal) {
  ImplementationDraft empty = draft("norm", "v3");
  empty.kernel.run = nullptr;
  const auto result =
      registry_.add(batch_of("acme", {draft("norm", "v1"), draft("nrom", "v2"), empty}), true);
  EXPECT_THAT(result.added, IsEmpty());
  EXPECT_EQ(result.backend, nullptr);
  EXPECT_THAT(reasons_of(result), ElementsAre("registry.unknown_operator", "registry.no_run"));
  EXPECT_THAT(norms(), IsEmpty());
  EXPECT_FALSE(registry_.snapshot()->backends.contains("acme"));
}

TEST_F(BatchTest, an_unknown_operator_is_refused_with_the_nearest) {
  EXPECT_EQ(refusal(draft("nrom", "v1")).message(),
            "there is no operator 'nrom'; did you mean 'norm'?");
}

TEST_F(BatchTest, a_backend_without_accepted_implementations_is_not_registered) {
  const auto result = registry_.add(batch_of("acme", {draft("nrom", "v1")}), false);
  EXPECT_EQ(result.backend, nullptr);
  EXPECT_FALSE(registry_.snapshot()->backends.contains("acme"));
}

TEST_F(BatchTest, reserved_and_malformed_names_are_refused) {
  for (const char* bad :
       {"default", "vendor", "flaggems", "flagos", "reference", "own", "Acme", "a.b", ""}) {
    Batch batch = batch_of("acme", {draft("norm", "v1")});
    batch.backend.name = bad;
    EXPECT_EQ(refusal(batch).reason(), "registry.name") << bad;
  }
  EXPECT_EQ(refusal(draft("norm", "V1")).reason(), "registry.name");
  EXPECT_EQ(refusal(draft("norm", std::string(65, 'v'))).reason(), "registry.name");
}

TEST_F(BatchTest, the_reference_may_be_called_reference_and_a_functions_own_body_own) {
  for (const char* name : {"reference", "own"}) {
    Batch batch = batch_of(name, {draft("norm", "v1")});
    batch.backend.kind = Kind::reference;
    batch.backend.vendor = "";
    EXPECT_TRUE(refusal(batch).ok()) << name;
  }
  EXPECT_EQ(norms()[0]->priority, 50);
}

TEST_F(BatchTest, kind_vendor_needs_a_vendor) {
  Batch batch = batch_of("acme", {draft("norm", "v1")});
  batch.backend.vendor = "";
  EXPECT_EQ(refusal(batch).reason(), "registry.vendor");
  EXPECT_EQ(refusal(batch).message(), "backend acme of kind vendor has no vendor");
  batch.backend.vendor = "Acme Inc";
  EXPECT_EQ(refusal(batch).reason(), "registry.vendor");
  batch.backend.vendor = "";
  batch.backend.kind = Kind::default_;
  EXPECT_TRUE(refusal(batch).ok());
}

TEST_F(BatchTest, a_priority_above_1000_and_undefined_flags_are_refused) {
  ImplementationDraft one = draft("norm", "v1");
  one.priority = 1001;
  EXPECT_EQ(refusal(one).reason(), "registry.priority");
  one.priority = 1000;
  one.flags = 1u << 20;
  EXPECT_EQ(refusal(one).reason(), "registry.flags");
  Batch batch = batch_of("acme", {});
  batch.backend.flags = 1u << 20;
  EXPECT_EQ(refusal(batch).reason(), "registry.flags");
  batch.backend.flags = 0;
  batch.backend.priority = 2000;
  EXPECT_EQ(refusal(batch).reason(), "registry.priority");
}

TEST_F(BatchTest, caps_that_name_unknown_things_are_refused) {
  ImplementationDraft one = draft("norm", "v1");
  one.caps.multiple_of("K", 16);
  EXPECT_EQ(refusal(one).reason(), "caps.unknown_name");
}

TEST_F(BatchTest, device_zero_means_the_backends) {
  ImplementationDraft one = draft("norm", "v1");
  one.caps.device(0);
  Batch batch = batch_of("acme", {one});
  batch.backend.device_type = OPMUX_DEVICE_OPENCL;
  ASSERT_TRUE(refusal(batch).ok());
  const auto& checks = norms()[0]->capability.checks;
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].predicate.value, OPMUX_DEVICE_OPENCL);
}

// The argument lists of two implementations of one operator must not differ.
TEST_F(BatchTest, argument_lists_that_differ_between_implementations_of_one_operator_are_refused) {
  ImplementationDraft swapped = draft("norm", "v1");
  swapped.signature =
      "norm(out Tensor y[..., H], Tensor x[..., H], float eps = 1e-6, Tensor? weight[H])";
  const Status why = refusal(swapped);
  EXPECT_EQ(why.reason(), "schema.signature");
  EXPECT_THAT(std::string(why.message()), HasSubstr("'float eps = 1e-06'"));
  EXPECT_THAT(std::string(why.message()), HasSubstr("'Tensor? weight[H]'"));
}

TEST_F(BatchTest, an_implementation_built_for_a_shorter_list_knows_how_long_it_was) {
  ImplementationDraft older = draft("norm", "v1");
  older.signature = "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H])";
  ASSERT_TRUE(refusal(older).ok());
  EXPECT_EQ(norms()[0]->arg_count, 3u);
}

TEST_F(BatchTest, a_signature_that_does_not_parse_is_refused) {
  ImplementationDraft broken = draft("norm", "v1");
  broken.signature = "norm(";
  EXPECT_EQ(refusal(broken).reason(), "schema.signature");
}

TEST_F(BatchTest, a_hash_matches_the_whole_list_or_a_legal_shorter_one) {
  const schema::Schema schema = schema::parse_schema(kNorm).value();
  for (const size_t count : {4u, 3u, 2u}) {
    ImplementationDraft one = draft("norm", "v" + std::to_string(count));
    one.prefix_hash = schema.prefix_hash(count);
    ASSERT_TRUE(refusal(one).ok()) << count;
    EXPECT_EQ(norms().front()->arg_count, count);
  }
  ImplementationDraft shorter = draft("norm", "v1");
  shorter.prefix_hash = schema.prefix_hash(1);  // x has no default.
  EXPECT_EQ(refusal(shorter).reason(), "schema.signature");
  shorter.prefix_hash = 12345;
  EXPECT_EQ(refusal(shorter).reason(), "schema.signature");
}

TEST_F(BatchTest, reads_are_resolved_against_the_schema) {
  ImplementationDraft one = draft("norm", "v1");
  one.kernel.verify = [](void*, const opmux_facts*, opmux_error*) -> int32_t { return OPMUX_OK; };
  one.verify_reads = {{schema::FactKind::dim, "H"}};
  one.plan_reads = {{schema::FactKind::dtype, "x"}};
  ASSERT_TRUE(refusal(one).ok());
  EXPECT_THAT(norms()[0]->verify_reads, ElementsAre(schema::Fact{schema::FactKind::dim, 0}));
  EXPECT_THAT(*norms()[0]->plan_reads, ElementsAre(schema::Fact{schema::FactKind::dtype, 1}));

  one.variant = "v2";
  one.verify_reads = {{schema::FactKind::dim, "K"}};
  EXPECT_EQ(refusal(one).reason(), "registry.reads");
  EXPECT_EQ(refusal(one).message(),
            "verify_reads lists a fact of kind 4 about 'K', which norm does not have");
  one.verify_reads = {};
  one.plan_reads = {{static_cast<schema::FactKind>(99), "x"}};
  EXPECT_EQ(refusal(one).reason(), "registry.reads");
  one.plan_reads = {};
  one.create_reads = {{schema::FactKind::dim, "H"}};
  EXPECT_EQ(refusal(one).message(), "create_reads lists H, but create() gets only scalars");
}

TEST_F(BatchTest, a_verifier_without_a_list_reads_scalars_dtypes_ranks_and_devices) {
  ImplementationDraft one = draft("norm", "v1");
  ASSERT_TRUE(refusal(one).ok());
  EXPECT_THAT(norms()[0]->verify_reads, IsEmpty()) << "without a verifier there are no reads";
  EXPECT_FALSE(norms()[0]->plan_reads);
  one.variant = "v2";
  one.kernel.verify = [](void*, const opmux_facts*, opmux_error*) -> int32_t { return OPMUX_OK; };
  ASSERT_TRUE(refusal(one).ok());
  EXPECT_EQ(norms()[1]->verify_reads.size(), 3u * 3u + 1u);
}

TEST_F(BatchTest, a_verifier_with_recorded_reads_starts_without_facts) {
  ImplementationDraft one = draft("norm", "v1");
  one.flags = OPMUX_IMPL_VERIFY_RECORDED;
  ASSERT_TRUE(refusal(one).ok());
  EXPECT_EQ(norms()[0]->recorded, nullptr) << "without a verifier nothing is recorded";
  one.variant = "v2";
  one.kernel.verify = [](void*, const opmux_facts*, opmux_error*) -> int32_t { return OPMUX_OK; };
  ASSERT_TRUE(refusal(one).ok());
  EXPECT_THAT(norms()[1]->verify_reads, IsEmpty());
  ASSERT_NE(norms()[1]->recorded, nullptr);
  RecordedReads& reads = *norms()[1]->recorded;
  EXPECT_THAT(reads.facts(), IsEmpty());
  const schema::Fact rows{schema::FactKind::dim, schema::kRowsDim};
  const schema::Fact dtype{schema::FactKind::dtype, 1};
  reads.add(rows);
  reads.add(dtype);
  reads.add(rows);
  EXPECT_THAT(reads.facts(), ElementsAre(dtype, rows));
}

TEST_F(BatchTest, recorded_reads_notice_the_ninth_size_of_a_dimension_once) {
  RecordedReads reads;
  for (int64_t size = 1; size <= 8; ++size) {
    EXPECT_FALSE(reads.note_size(0, size));
    EXPECT_FALSE(reads.note_size(0, size)) << "the same size again";
    EXPECT_FALSE(reads.note_size(1, 5)) << "another dimension";
  }
  EXPECT_TRUE(reads.note_size(0, 9));
  EXPECT_FALSE(reads.note_size(0, 9));
  EXPECT_FALSE(reads.note_size(0, 10));
}

TEST_F(BatchTest, one_operator_has_at_most_256_implementations) {
  std::vector<ImplementationDraft> many;
  for (int i = 0; i < 257; ++i) many.push_back(draft("norm", "v" + std::to_string(i)));
  const auto result = registry_.add(batch_of("acme", many), false);
  EXPECT_EQ(result.added.size(), 256u);
  EXPECT_THAT(reasons_of(result), ElementsAre("registry.too_many"));
}

TEST_F(BatchTest, a_programs_backend_grows_if_kind_and_vendor_stay) {
  ASSERT_TRUE(refusal(draft("norm", "v1")).ok());
  ASSERT_TRUE(refusal(draft("norm", "v2")).ok());
  EXPECT_EQ(norms()[0]->backend, norms()[1]->backend);
  Batch other = batch_of("acme", {draft("norm", "v3")});
  other.backend.kind = Kind::default_;
  EXPECT_EQ(refusal(other).message(), "backend acme already exists, with kind vendor, not default");
  other.backend.kind = Kind::vendor;
  other.backend.vendor = "ajax";
  EXPECT_EQ(refusal(other).reason(), "registry.backend");
}

TEST_F(BatchTest, a_plugins_backend_belongs_to_the_plugin) {
  Batch first = batch_of("acme", {draft("norm", "v1")});
  first.backend.plugin = "acme_plugin";
  ASSERT_TRUE(refusal(first).ok());
  EXPECT_EQ(refusal(draft("norm", "v2")).message(),
            "backend acme already exists, registered by plugin acme_plugin");
  Batch second = batch_of("acme", {draft("norm", "v3")});
  second.backend.plugin = "other";
  EXPECT_EQ(refusal(second).reason(), "registry.backend");
}

TEST_F(BatchTest, a_plugin_adds_operators) {
  Batch batch = batch_of("acme", {draft("acme.swish", "v1")});
  batch.backend.plugin = "acme";
  batch.operators = {"acme.swish(out Tensor y[N], Tensor x[N])"};
  ASSERT_TRUE(refusal(batch).ok());
  EXPECT_NE(registry_.snapshot()->find_implementation("acme.swish/acme.v1"), nullptr);
}

TEST_F(BatchTest, a_plugins_new_operator_needs_a_dot_in_its_name) {
  Batch batch = batch_of("acme", {draft("norm", "v1")});
  batch.backend.plugin = "acme";
  batch.operators = {"swish(out Tensor y[N], Tensor x[N])", kNorm};
  const auto result = registry_.add(batch, true);
  EXPECT_THAT(reasons_of(result), ElementsAre("registry.name"));
  EXPECT_EQ(registry_.snapshot()->find("swish"), nullptr);
  EXPECT_EQ(result.added.size(), 1u);
}

TEST_F(BatchTest, an_operator_that_differs_is_refused_with_its_implementations_only) {
  ASSERT_TRUE(registry_.define("acme.swish(out Tensor y[N], Tensor x[N])").ok());
  Batch batch = batch_of("acme", {draft("acme.swish", "v1"), draft("norm", "v1")});
  batch.backend.plugin = "acme";
  batch.operators = {"acme.swish(out Tensor y[M], Tensor x[M])"};
  const auto result = registry_.add(batch, true);
  EXPECT_THAT(ids_of(result.added), ElementsAre("norm/acme.v1"));
  EXPECT_THAT(reasons_of(result),
              ElementsAre("registry.schema_differs", "registry.schema_differs"));
}

TEST_F(BatchTest, may_bring_operators_alone) {
  Batch batch;
  batch.operators = {"acme.swish(out Tensor y[N], Tensor x[N])"};
  EXPECT_THAT(registry_.add(batch, true).refused, IsEmpty());
  EXPECT_NE(registry_.snapshot()->find("acme.swish"), nullptr);
}

}  // namespace
}  // namespace opmux::registry
