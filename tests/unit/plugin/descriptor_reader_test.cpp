#include "plugin/read/descriptor_reader.hpp"

#include <functional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/host.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

using testing::IsEmpty;

int32_t run(void*, const opmux_call*) { return OPMUX_OK; }
int32_t answer_seven(void*, const opmux_arg*, uint32_t, opmux_arg* answer) {
  answer->tag = OPMUX_ARG_I64;
  answer->value.i64 = 7;
  return OPMUX_OK;
}
void destroy(void*, void*) {}
int32_t create(void*, const opmux_arg*, uint32_t, void**, opmux_error*) { return OPMUX_OK; }

/// A well-formed plugin with two backends; tests can corrupt every field.
struct Descriptor {
  opmux_dtype dtypes[2] = {{OPMUX_DTYPE_FLOAT, 32, 1}, {OPMUX_DTYPE_BFLOAT, 16, 1}};
  opmux_dtype_rule dtype_rule{sizeof(dtype_rule), 2, OPMUX_STR("x"), dtypes};
  opmux_dim_rule dim_rule{sizeof(dim_rule), OPMUX_STR("H"), OPMUX_MULTIPLE_OF, 16};
  opmux_tensor_rule tensor_rule{
      sizeof(tensor_rule), OPMUX_TENSOR_CONTIGUOUS, OPMUX_STR("x"), 1, 4, 16, 0, OPMUX_STR("01")};
  int64_t values[2] = {0, 1};
  opmux_scalar_rule scalar_rule{sizeof(scalar_rule), 2, OPMUX_STR("mode"), values};
  opmux_caps caps{};
  opmux_fact fact{sizeof(fact), OPMUX_FACT_DIM, OPMUX_STR("H")};
  opmux_hint hint{sizeof(hint), 150, OPMUX_STR("H"), 16, 64};
  opmux_impl impls[2]{};
  opmux_device_table device{};
  opmux_backend backends[2]{};
  opmux_schema_text schema{sizeof(schema), 0,
                           OPMUX_STR("acme.norm(out Tensor y[H],\n Tensor x[H])")};
  opmux_point point{sizeof(point),     0,       OPMUX_STR("tile() -> int"),
                    OPMUX_STR("acme"), nullptr, answer_seven};
  opmux_plugin plugin{};

  Descriptor() {
    caps.struct_size = sizeof(caps);
    caps.flags = OPMUX_CAPS_INFERENCE_ONLY;
    caps.cpu_features = opmux_str_of("avx2");
    caps.dtypes = &dtype_rule, caps.dtype_count = 1, caps.dtype_stride = sizeof(dtype_rule);
    caps.dims = &dim_rule, caps.dim_count = 1, caps.dim_stride = sizeof(dim_rule);
    caps.tensors = &tensor_rule, caps.tensor_count = 1, caps.tensor_stride = sizeof(tensor_rule);
    caps.scalars = &scalar_rule, caps.scalar_count = 1, caps.scalar_stride = sizeof(scalar_rule);
    for (opmux_impl& impl : impls) {
      impl.struct_size = sizeof(impl);
      impl.op = opmux_str_of("acme.norm");
      impl.variant = opmux_str_of("v1");
      impl.flags = OPMUX_IMPL_SERIAL;
      impl.prefix_hash = 11;
      impl.priority = 120;
      impl.run = run;
    }
    impls[0].caps = &caps;
    impls[0].verify_reads = &fact;
    impls[0].verify_reads_count = 1;
    impls[0].verify_reads_stride = sizeof(fact);
    impls[0].hints = &hint, impls[0].hint_count = 1, impls[0].hint_stride = sizeof(hint);
    impls[1].variant = opmux_str_of("v2");
    for (opmux_backend& backend : backends) {
      backend.struct_size = sizeof(backend);
      backend.name = opmux_str_of("acme");
      backend.kind = OPMUX_KIND_VENDOR;
      backend.vendor = opmux_str_of("acme");
      backend.device_type = OPMUX_DEVICE_CPU;
      backend.priority = -1;
      backend.impls = impls, backend.impl_count = 2, backend.impl_stride = sizeof(opmux_impl);
    }
    backends[1].name = opmux_str_of("other");
    backends[1].impl_count = 0;
    device.struct_size = sizeof(device);
    plugin.struct_size = sizeof(plugin);
    plugin.abi_major = OPMUX_ABI_MAJOR;
    plugin.name = opmux_str_of("acme_plugin");
    plugin.version = opmux_str_of("1.0");
    plugin.build_id = opmux_str_of("b1");
    plugin.backends = backends, plugin.backend_count = 2;
    plugin.backend_stride = sizeof(opmux_backend);
    plugin.operators = &schema, plugin.operator_count = 1, plugin.operator_stride = sizeof(schema);
    plugin.points = &point, plugin.point_count = 1, plugin.point_stride = sizeof(point);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Result<PluginContents> read() const { return read_plugin(plugin, nullptr, "file-id"); }
};

TEST(DescriptorReader, reads_everything_of_a_well_formed_plugin) {
  const Descriptor descriptor;
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_THAT(contents->refused, IsEmpty());
  EXPECT_EQ(contents->name, "acme_plugin");
  EXPECT_EQ(contents->build_id, "b1");
  ASSERT_EQ(contents->batches.size(), 2u);
  const registry::Batch& batch = contents->batches[0];
  EXPECT_EQ(batch.backend.name, "acme");
  EXPECT_EQ(batch.backend.plugin, "acme_plugin");
  EXPECT_EQ(batch.operators.size(), 1u);
  EXPECT_EQ(batch.points.size(), 1u);
  EXPECT_THAT(contents->operators, IsEmpty());
  ASSERT_EQ(batch.implementations.size(), 2u);
  const registry::ImplementationDraft& draft = batch.implementations[0];
  EXPECT_EQ(draft.op, "acme.norm");
  EXPECT_EQ(draft.variant, "v1");
  EXPECT_EQ(draft.flags, OPMUX_IMPL_SERIAL);
  EXPECT_EQ(draft.prefix_hash, 11u);
  EXPECT_EQ(draft.priority, 120);
  EXPECT_EQ(draft.build_id, "b1");
  EXPECT_EQ(draft.kernel.run, &run);
  ASSERT_TRUE(draft.verify_reads);
  EXPECT_EQ(draft.verify_reads->at(0).name, "H");
  EXPECT_FALSE(draft.plan_reads);
}

TEST(DescriptorReader, reads_hints) {
  const Descriptor descriptor;
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents);
  const std::vector<Hint>& hints = contents->batches[0].implementations[0].hints;
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0].range(), "16 <= H <= 64");
  EXPECT_EQ(hints[0].priority, 150);
  EXPECT_THAT(contents->batches[0].implementations[1].hints, IsEmpty());
}

TEST(DescriptorReader, a_plugin_of_an_older_header_has_no_hints) {
  Descriptor descriptor;
  // The size that an implementation had when it ended with create_reads.
  for (opmux_impl& impl : descriptor.impls) impl.struct_size = offsetof(opmux_impl, hints);
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents);
  EXPECT_THAT(contents->batches[0].implementations[0].hints, IsEmpty());
}

TEST(DescriptorReader, reads_capabilities_of_every_kind) {
  const Descriptor descriptor;
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents);
  const Caps& caps = contents->batches[0].implementations[0].caps;
  ASSERT_EQ(caps.dtype_rules.size(), 1u);
  EXPECT_EQ(caps.dtype_rules[0].arg, "x");
  EXPECT_EQ(caps.dtype_rules[0].allowed, (std::vector{f32, bf16}));
  EXPECT_EQ(caps.dim_rules.at(0).dim, "H");
  EXPECT_EQ(caps.dim_rules.at(0).value, 16);
  EXPECT_EQ(caps.tensor_rules.at(0).alignment, 16u);
  EXPECT_EQ(caps.tensor_rules.at(0).layout, "01");
  EXPECT_EQ(caps.tensor_rules.at(0).min_rank, 1);
  EXPECT_EQ(caps.tensor_rules.at(0).max_rank, 4);
  EXPECT_EQ(caps.scalar_rules.at(0).allowed, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(caps.features, "avx2");
  EXPECT_TRUE(caps.no_grad);
  EXPECT_EQ(caps.device_type, 0) << "0 means the backend's device type";
  EXPECT_EQ(contents->batches[0].implementations[1].caps.device_type, 0);
}

TEST(DescriptorReader, takes_the_files_build_id_if_the_plugin_names_none) {
  Descriptor descriptor;
  descriptor.plugin.build_id = {};
  EXPECT_EQ(descriptor.read()->build_id, "file-id");
}

TEST(DescriptorReader, keeps_operators_that_no_backend_implements) {
  Descriptor descriptor;
  descriptor.backends[0].impl_count = 0;
  const auto contents = descriptor.read();
  EXPECT_EQ(contents->operators.size(), 1u);
  EXPECT_THAT(contents->batches[0].operators, IsEmpty());
}

TEST(DescriptorReader, tells_an_empty_list_of_reads_from_no_list) {
  Descriptor descriptor;
  descriptor.impls[0].verify_reads_count = 0;
  const auto contents = descriptor.read();
  const auto& draft = contents->batches[0].implementations[0];
  ASSERT_TRUE(draft.verify_reads);
  EXPECT_THAT(*draft.verify_reads, IsEmpty());
}

TEST(DescriptorReader, reads_the_facts_that_a_prepared_state_depends_on) {
  Descriptor descriptor;
  const opmux_fact facts[2] = {{sizeof(opmux_fact), OPMUX_FACT_DIM, OPMUX_STR("H")},
                               {sizeof(opmux_fact), OPMUX_FACT_DTYPE, OPMUX_STR("x")}};
  opmux_impl& first = descriptor.impls[0];
  first.plan = [](void*, const opmux_call*, void**) -> int32_t { return OPMUX_OK; };
  first.plan_free = [](void*, void*) {};
  first.plan_reads = facts;
  first.plan_reads_count = 2;
  first.plan_reads_stride = sizeof(opmux_fact);
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents) << contents.error().to_string();
  const registry::ImplementationDraft& draft = contents->batches[0].implementations.at(0);
  EXPECT_EQ(draft.kernel.plan, first.plan);
  EXPECT_EQ(draft.kernel.plan_free, first.plan_free);
  ASSERT_TRUE(draft.plan_reads);
  ASSERT_EQ(draft.plan_reads->size(), 2u);
  EXPECT_EQ(draft.plan_reads->at(1).name, "x");
  EXPECT_EQ(draft.plan_reads->at(1).kind, schema::FactKind::dtype);
}

TEST(DescriptorReader, reads_the_range_of_architectures) {
  Descriptor descriptor;
  descriptor.caps.min_arch = opmux_str_of("8.0");
  descriptor.caps.max_arch = opmux_str_of("9.1");
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents) << contents.error().to_string();
  EXPECT_EQ(contents->batches[0].implementations.at(0).caps.min_arch, "8.0");
  EXPECT_EQ(contents->batches[0].implementations.at(0).caps.max_arch, "9.1");
}

TEST(DescriptorReader, an_implementation_that_ends_before_create_reads_declares_none) {
  Descriptor descriptor;
  opmux_impl& first = descriptor.impls[0];
  first.create_reads = &descriptor.fact;
  first.create_reads_count = 1;
  first.create_reads_stride = sizeof(opmux_fact);
  {
    const auto contents = descriptor.read();
    const auto& draft = contents->batches[0].implementations[0];
    ASSERT_TRUE(draft.create_reads);
    EXPECT_EQ(draft.create_reads->at(0).name, "H");
  }
  first.struct_size = offsetof(opmux_impl, create_reads);
  const auto contents = descriptor.read();
  EXPECT_FALSE(contents->batches[0].implementations[0].create_reads);
}

struct Spoilt {
  const char* name;
  const char* reason;
  std::function<void(Descriptor&)> spoil;
};

const opmux_str kControl{"a\nb", 3};
const opmux_str kNowhere{nullptr, 3};

/// Corruptions that make the whole plugin unreadable.
const Spoilt kPlugins[] = {
    {"major_above", "plugin.abi_major", [](Descriptor& d) { ++d.plugin.abi_major; }},
    {"major_below", "plugin.abi_major", [](Descriptor& d) { --d.plugin.abi_major; }},
    {"size_zero", "plugin.struct_size", [](Descriptor& d) { d.plugin.struct_size = 0; }},
    {"size_short", "plugin.struct_size", [](Descriptor& d) { d.plugin.struct_size -= 8; }},
    {"size_long", "plugin.struct_size", [](Descriptor& d) { d.plugin.struct_size += 8; }},
    {"name_empty", "plugin.name", [](Descriptor& d) { d.plugin.name = {}; }},
    {"name_control", "plugin.string", [](Descriptor& d) { d.plugin.name = kControl; }},
    {"version_null", "plugin.string", [](Descriptor& d) { d.plugin.version = kNowhere; }},
    {"vendor_huge", "plugin.string", [](Descriptor& d) { d.plugin.vendor = {"x", SIZE_MAX}; }},
    {"build_id_null", "plugin.string", [](Descriptor& d) { d.plugin.build_id = kNowhere; }},
    {"flags", "plugin.flags", [](Descriptor& d) { d.plugin.flags = 1u << 31; }},
    {"reserved", "plugin.reserved", [](Descriptor& d) { d.plugin.reserved = 1; }},
    {"backends_many", "plugin.count", [](Descriptor& d) { d.plugin.backend_count = 4097; }},
    {"backends_null", "plugin.null", [](Descriptor& d) { d.plugin.backends = nullptr; }},
    {"backends_stride", "plugin.stride", [](Descriptor& d) { d.plugin.backend_stride = 8; }},
    {"operators_many", "plugin.count", [](Descriptor& d) { d.plugin.operator_count = ~0u; }},
    {"operators_null", "plugin.null", [](Descriptor& d) { d.plugin.operators = nullptr; }},
    {"operators_stride", "plugin.stride", [](Descriptor& d) { d.plugin.operator_stride = 0; }},
    {"operator_size", "plugin.struct_size", [](Descriptor& d) { d.schema.struct_size = 99; }},
    {"operator_text", "plugin.string", [](Descriptor& d) { d.schema.text = kNowhere; }},
    {"operator_reserved", "plugin.reserved", [](Descriptor& d) { d.schema.reserved = 1; }},
    {"points_many", "plugin.count", [](Descriptor& d) { d.plugin.point_count = 5000; }},
    {"points_null", "plugin.null", [](Descriptor& d) { d.plugin.points = nullptr; }},
    {"points_stride", "plugin.stride", [](Descriptor& d) { d.plugin.point_stride = 7; }},
    {"point_size", "plugin.struct_size", [](Descriptor& d) { d.point.struct_size = 1; }},
};

/// Corruptions of the first backend or its answer; the second backend stays.
const Spoilt kBackends[] = {
    {"size", "plugin.struct_size", [](Descriptor& d) { d.backends[0].struct_size = 4; }},
    {"name", "plugin.string", [](Descriptor& d) { d.backends[0].name = kControl; }},
    {"vendor", "plugin.string", [](Descriptor& d) { d.backends[0].vendor = kNowhere; }},
    {"kind_zero", "plugin.kind", [](Descriptor& d) { d.backends[0].kind = 0; }},
    {"kind_four", "plugin.kind", [](Descriptor& d) { d.backends[0].kind = 4; }},
    {"device_negative", "plugin.device", [](Descriptor& d) { d.backends[0].device_type = -1; }},
    {"device_huge", "plugin.device", [](Descriptor& d) { d.backends[0].device_type = 70000; }},
    {"reserved", "plugin.reserved", [](Descriptor& d) { d.backends[0].reserved = 5; }},
    {"table_empty", "plugin.null_function",
     [](Descriptor& d) { d.backends[0].device = &d.device; }},
    {"table_size", "plugin.struct_size",
     [](Descriptor& d) { d.backends[0].device = &d.device, d.device.struct_size = 8; }},
    {"impls_many", "plugin.count", [](Descriptor& d) { d.backends[0].impl_count = 9999; }},
    {"impls_null", "plugin.null", [](Descriptor& d) { d.backends[0].impls = nullptr; }},
    {"impls_stride", "plugin.stride", [](Descriptor& d) { d.backends[0].impl_stride = 64; }},
    {"impl_size", "plugin.struct_size", [](Descriptor& d) { d.impls[1].struct_size = 1; }},
    {"impl_op", "plugin.string", [](Descriptor& d) { d.impls[1].op = kNowhere; }},
    {"impl_variant", "plugin.string", [](Descriptor& d) { d.impls[1].variant = kControl; }},
    {"impl_signature", "plugin.string", [](Descriptor& d) { d.impls[1].signature = kNowhere; }},
    {"impl_reserved", "plugin.reserved", [](Descriptor& d) { d.impls[1].reserved = 1; }},
    {"run_null", "plugin.null_function", [](Descriptor& d) { d.impls[1].run = nullptr; }},
    {"create_alone", "plugin.null_function", [](Descriptor& d) { d.impls[1].create = create; }},
    {"destroy_alone", "plugin.null_function", [](Descriptor& d) { d.impls[1].destroy = destroy; }},
    {"plan_free_alone", "plugin.null_function",
     [](Descriptor& d) { d.impls[1].plan_free = destroy; }},
    {"fact_kind_zero", "plugin.fact", [](Descriptor& d) { d.fact.kind = 0; }},
    {"fact_kind_99", "plugin.fact", [](Descriptor& d) { d.fact.kind = 99; }},
    {"fact_name", "plugin.string", [](Descriptor& d) { d.fact.name = kNowhere; }},
    {"facts_null", "plugin.null", [](Descriptor& d) { d.impls[1].plan_reads_count = 2; }},
    {"facts_many", "plugin.count", [](Descriptor& d) { d.impls[0].verify_reads_count = ~0u; }},
    {"caps_size", "plugin.struct_size", [](Descriptor& d) { d.caps.struct_size = 16; }},
    {"caps_flags", "plugin.flags", [](Descriptor& d) { d.caps.flags = 64; }},
    {"caps_reserved", "plugin.reserved", [](Descriptor& d) { d.caps.reserved = 64; }},
    {"caps_features", "plugin.string", [](Descriptor& d) { d.caps.cpu_features = kControl; }},
    {"caps_min_arch", "plugin.string", [](Descriptor& d) { d.caps.min_arch = kControl; }},
    {"caps_max_arch", "plugin.string", [](Descriptor& d) { d.caps.max_arch = kNowhere; }},
    {"dtype_rules_null", "plugin.null", [](Descriptor& d) { d.caps.dtypes = nullptr; }},
    {"dtype_rule_size", "plugin.struct_size", [](Descriptor& d) { d.dtype_rule.struct_size = 0; }},
    {"dtype_rule_arg", "plugin.string", [](Descriptor& d) { d.dtype_rule.arg = kNowhere; }},
    {"dtypes_null", "plugin.null", [](Descriptor& d) { d.dtype_rule.dtypes = nullptr; }},
    {"dtypes_many", "plugin.count", [](Descriptor& d) { d.dtype_rule.count = 1u << 30; }},
    {"dim_rules_stride", "plugin.stride", [](Descriptor& d) { d.caps.dim_stride = 16; }},
    {"dim_rule_name", "plugin.string", [](Descriptor& d) { d.dim_rule.dim = kNowhere; }},
    {"tensor_rules_many", "plugin.count", [](Descriptor& d) { d.caps.tensor_count = 4097; }},
    {"tensor_rule_reserved", "plugin.reserved", [](Descriptor& d) { d.tensor_rule.reserved = 1; }},
    {"tensor_rule_arg", "plugin.string", [](Descriptor& d) { d.tensor_rule.arg = kNowhere; }},
    {"tensor_rule_layout", "plugin.string", [](Descriptor& d) { d.tensor_rule.layout = kNowhere; }},
    {"scalar_rules_null", "plugin.null", [](Descriptor& d) { d.caps.scalars = nullptr; }},
    {"scalar_rule_arg", "plugin.string", [](Descriptor& d) { d.scalar_rule.arg = kNowhere; }},
    {"scalar_values_null", "plugin.null", [](Descriptor& d) { d.scalar_rule.values = nullptr; }},
};

/// Corruptions of the answer only; both backends stay.
const Spoilt kPoints[] = {
    {"reserved", "plugin.reserved", [](Descriptor& d) { d.point.reserved = 1; }},
    {"signature", "point.syntax", [](Descriptor& d) { d.point.signature = opmux_str_of("tile"); }},
    {"signature_null", "plugin.string", [](Descriptor& d) { d.point.signature = kNowhere; }},
    {"backend_null", "plugin.string", [](Descriptor& d) { d.point.backend = kNowhere; }},
    {"backend", "plugin.backend", [](Descriptor& d) { d.point.backend = opmux_str_of("nobody"); }},
    {"function", "plugin.null_function", [](Descriptor& d) { d.point.answer = nullptr; }},
};

TEST(DescriptorReader, refuses_a_plugin_that_is_malformed_itself) {
  for (const Spoilt& spoilt : kPlugins) {
    Descriptor descriptor;
    spoilt.spoil(descriptor);
    const auto contents = descriptor.read();
    ASSERT_FALSE(contents) << spoilt.name;
    EXPECT_EQ(contents.error().reason(), spoilt.reason) << spoilt.name;
  }
}

TEST(DescriptorReader, one_malformed_backend_does_not_stop_the_others) {
  for (const Spoilt& spoilt : kBackends) {
    Descriptor descriptor;
    descriptor.plugin.point_count = 0;
    spoilt.spoil(descriptor);
    const auto contents = descriptor.read();
    ASSERT_TRUE(contents) << spoilt.name;
    ASSERT_EQ(contents->refused.size(), 1u) << spoilt.name;
    EXPECT_EQ(contents->refused[0].why.reason(), spoilt.reason) << spoilt.name;
    ASSERT_EQ(contents->batches.size(), 1u) << spoilt.name;
    EXPECT_EQ(contents->batches[0].backend.name, "other") << spoilt.name;
  }
}

TEST(DescriptorReader, one_malformed_answer_stops_nothing_else) {
  for (const Spoilt& spoilt : kPoints) {
    Descriptor descriptor;
    spoilt.spoil(descriptor);
    const auto contents = descriptor.read();
    ASSERT_TRUE(contents) << spoilt.name;
    ASSERT_EQ(contents->refused.size(), 1u) << spoilt.name;
    EXPECT_EQ(contents->refused[0].why.reason(), spoilt.reason) << spoilt.name;
    EXPECT_EQ(contents->batches.size(), 2u) << spoilt.name;
  }
}

TEST(DescriptorReader, lists_every_malformed_implementation_of_a_backend) {
  Descriptor descriptor;
  descriptor.plugin.point_count = 0;
  for (opmux_impl& impl : descriptor.impls) impl.run = nullptr;
  const auto contents = descriptor.read();
  ASSERT_EQ(contents->refused.size(), 2u);
  EXPECT_EQ(contents->refused[0].what, "implementation 1 of acme");
  EXPECT_EQ(contents->refused[1].what, "implementation 2 of acme");
}

TEST(DescriptorReader, reads_structs_of_a_newer_plugin) {
  struct NewerBackend {
    opmux_backend known;
    uint64_t added;
  };
  Descriptor descriptor;
  NewerBackend newer[2] = {{descriptor.backends[0], 1}, {descriptor.backends[1], 2}};
  for (NewerBackend& backend : newer) backend.known.struct_size = sizeof(NewerBackend);
  descriptor.plugin.backends = &newer[0].known;
  descriptor.plugin.backend_stride = sizeof(NewerBackend);
  descriptor.plugin.abi_minor = 9;
  const auto contents = descriptor.read();
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->batches.size(), 2u);
}

TEST(DescriptorReader, a_probe_gives_the_plugins_reason) {
  Descriptor descriptor;
  descriptor.backends[0].is_available = [](void*, opmux_error* why) -> int32_t {
    why->text[0] = 'x';
    why->text_size = 1;
    return OPMUX_DECLINED;
  };
  descriptor.backends[1].is_available = [](void*, opmux_error*) -> int32_t { return 77; };
  const auto contents = descriptor.read();
  EXPECT_EQ(contents->batches[0].backend.probe(), "x");
  EXPECT_EQ(contents->batches[1].backend.probe(), "its is_available function returned outcome 77");
}

TEST(DescriptorReader, an_answer_of_the_wrong_type_is_ignored) {
  Descriptor descriptor;
  opmux_arg answer{};
  EXPECT_TRUE(descriptor.read()->batches[0].points[0].answer(nullptr, 0, answer));
  EXPECT_EQ(answer.value.i64, 7);
  descriptor.point.signature = opmux_str_of("tile() -> str");
  EXPECT_FALSE(descriptor.read()->batches[0].points[0].answer(nullptr, 0, answer));
  descriptor.point.signature = opmux_str_of("tile() -> int");
  descriptor.point.answer = [](void*, const opmux_arg*, uint32_t, opmux_arg*) -> int32_t {
    return OPMUX_DECLINED;
  };
  EXPECT_FALSE(descriptor.read()->batches[0].points[0].answer(nullptr, 0, answer));
}

TEST(QueryPlugin, survives_a_query_that_fails_throws_or_writes_too_much) {
  const auto reason = [](opmux_plugin_query_fn query) {
    return std::string(query_plugin(query, process_host()).error().reason());
  };
  EXPECT_EQ(reason([](const opmux_host*, opmux_plugin*) -> int32_t { return OPMUX_FAILED; }),
            "plugin.query");
  EXPECT_EQ(reason([](const opmux_host*, opmux_plugin*) -> int32_t { throw 1; }), "plugin.threw");
  EXPECT_EQ(
      reason([](const opmux_host*, opmux_plugin*) -> int32_t { throw std::runtime_error("x"); }),
      "plugin.threw");
}

TEST(QueryPlugin, tells_the_plugin_how_much_room_there_is) {
  const auto described = query_plugin(
      [](const opmux_host* host, opmux_plugin* out) -> int32_t {
        const bool right = host->abi_major == OPMUX_ABI_MAJOR && host->struct_size != 0 &&
                           out->struct_size == sizeof(opmux_plugin) && out->name.data == nullptr;
        return right ? OPMUX_OK : OPMUX_FAILED;
      },
      process_host());
  EXPECT_TRUE(described);
}

}  // namespace
}  // namespace opmux::plugin
