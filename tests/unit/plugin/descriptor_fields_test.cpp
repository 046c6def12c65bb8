#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/read/descriptor_reader.hpp"

/// Each field of a descriptor reaches what the host keeps of it; see tools/surface.
namespace opmux::plugin {
namespace {

/// In a namespace because other tests of this folder have functions of the same names.
namespace fields {

int32_t verify(void*, const opmux_facts*, opmux_error*) { return OPMUX_OK; }
int32_t plan(void*, const opmux_call*, void**) { return OPMUX_OK; }
void plan_free(void*, void*) {}
uint64_t workspace(void*, const opmux_call*) { return 64; }
int32_t run(void*, const opmux_call*) { return OPMUX_OK; }
int32_t create(void*, const opmux_arg*, uint32_t, void**, opmux_error*) { return OPMUX_OK; }
int32_t load(void*, void*, const opmux_arg*, uint32_t, opmux_error*) { return OPMUX_OK; }
void destroy(void*, void*) {}
int32_t describe(void*, void*, const opmux_node_sink*) { return OPMUX_OK; }
/// Answers with the number that `user_data` points to.
int32_t answer(void* user_data, const opmux_arg*, uint32_t, opmux_arg* answer) {
  answer->tag = OPMUX_ARG_I64;
  answer->value.i64 = *static_cast<int*>(user_data);
  return OPMUX_OK;
}

}  // namespace fields

opmux_device_table whole_table() {
  opmux_device_table table{};
  table.struct_size = sizeof table;
  table.count = [](void*) -> int32_t { return 1; };
  table.alloc = [](void*, opmux_device, uint64_t, uint64_t, void**) -> int32_t { return OPMUX_OK; };
  table.free = [](void*, opmux_device, void*) {};
  table.copy = [](void*, void*, opmux_device, const void*, opmux_device, uint64_t,
                  void*) -> int32_t { return OPMUX_OK; };
  table.synchronize = [](void*, opmux_device, void*) -> int32_t { return OPMUX_OK; };
  table.stream_create = [](void*, opmux_device, void**) -> int32_t { return OPMUX_OK; };
  table.stream_destroy = [](void*, opmux_device, void*) {};
  table.event_record = [](void*, opmux_device, void*, void**) -> int32_t { return OPMUX_OK; };
  table.event_elapsed_ns = [](void*, void*, void*, uint64_t*) -> int32_t { return OPMUX_OK; };
  table.event_destroy = [](void*, void*) {};
  return table;
}

/// A plugin that sets every field.
struct Full {
  int number = 7;
  opmux_dim_rule dim{sizeof(dim), OPMUX_STR("H"), OPMUX_AT_MOST, 16};
  opmux_tensor_rule tensor{sizeof(tensor), OPMUX_TENSOR_CONTIGUOUS, OPMUX_STR("x"), 1, 4, 16, 0,
                           OPMUX_STR("01")};
  int64_t values[1] = {5};
  opmux_scalar_rule scalar{sizeof(scalar), 1, OPMUX_STR("mode"), values};
  opmux_caps caps{};
  opmux_impl impl{};
  opmux_device_table device = whole_table();
  opmux_backend backend{};
  opmux_schema_text schema{sizeof(schema), 0, OPMUX_STR("acme.norm(out Tensor y[H], Tensor x[H])")};
  opmux_point point{sizeof(point),     0,       OPMUX_STR("tile() -> int"),
                    OPMUX_STR("acme"), &number, fields::answer};
  opmux_plugin plugin{};

  Full() {
    caps.struct_size = sizeof(caps);
    caps.device_type = OPMUX_DEVICE_CUDA;
    caps.dims = &dim, caps.dim_count = 1, caps.dim_stride = sizeof(dim);
    caps.tensors = &tensor, caps.tensor_count = 1, caps.tensor_stride = sizeof(tensor);
    caps.scalars = &scalar, caps.scalar_count = 1, caps.scalar_stride = sizeof(scalar);
    impl.struct_size = sizeof(impl);
    impl.op = opmux_str_of("acme.norm"), impl.variant = opmux_str_of("v1");
    impl.caps = &caps, impl.user_data = &number, impl.verify = fields::verify;
    impl.plan = fields::plan, impl.plan_free = fields::plan_free,
    impl.workspace = fields::workspace, impl.run = fields::run;
    impl.create = fields::create, impl.load = fields::load, impl.destroy = fields::destroy,
    impl.describe = fields::describe;
    backend.struct_size = sizeof(backend);
    backend.flags = OPMUX_BACKEND_DEFAULT_OFF;
    backend.name = backend.vendor = opmux_str_of("acme");
    backend.kind = OPMUX_KIND_VENDOR;
    backend.device_type = 300, backend.device_name = opmux_str_of("abacus");
    backend.priority = 120, backend.user_data = &number, backend.device = &device;
    backend.impls = &impl, backend.impl_count = 1, backend.impl_stride = sizeof(impl);
    plugin.struct_size = sizeof(plugin);
    plugin.abi_major = OPMUX_ABI_MAJOR;
    plugin.name = opmux_str_of("full"), plugin.vendor = opmux_str_of("acme inc");
    plugin.backends = &backend, plugin.backend_count = 1, plugin.backend_stride = sizeof(backend);
    plugin.operators = &schema, plugin.operator_count = 1, plugin.operator_stride = sizeof(schema);
    plugin.points = &point, plugin.point_count = 1, plugin.point_stride = sizeof(point);
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

  PluginContents read() const { return read_plugin(plugin, nullptr).value(); }
};

TEST(DescriptorFields, of_a_backend_and_its_device) {
  Full full;
  const PluginContents contents = full.read();
  EXPECT_THAT(contents.refused, testing::IsEmpty());
  EXPECT_EQ(contents.vendor, "acme inc");
  ASSERT_EQ(contents.batches.size(), 1u);
  const registry::BackendDraft& backend = contents.batches[0].backend;
  EXPECT_EQ(backend.flags, OPMUX_BACKEND_DEFAULT_OFF);
  EXPECT_EQ(backend.kind, Kind::vendor);
  EXPECT_EQ(backend.device_type, 300);
  EXPECT_EQ(backend.device_name, "abacus");
  EXPECT_EQ(backend.priority, 120);
  ASSERT_TRUE(backend.device);
  EXPECT_EQ(backend.device->user_data, &full.number);
  EXPECT_THAT(contents.batches[0].operators,
              testing::ElementsAre("acme.norm(out Tensor y[H], Tensor x[H])"));
}

TEST(DescriptorFields, of_an_implementation) {
  Full full;
  const PluginContents contents = full.read();
  ASSERT_THAT(contents.batches.at(0).implementations, testing::SizeIs(1));
  const registry::Kernel& kernel = contents.batches[0].implementations[0].kernel;
  EXPECT_EQ(kernel.user_data, &full.number);
  EXPECT_EQ(kernel.verify, &fields::verify);
  EXPECT_EQ(kernel.plan, &fields::plan);
  EXPECT_EQ(kernel.plan_free, &fields::plan_free);
  EXPECT_EQ(kernel.workspace, &fields::workspace);
  EXPECT_EQ(kernel.run, &fields::run);
  EXPECT_EQ(kernel.create, &fields::create);
  EXPECT_EQ(kernel.load, &fields::load);
  EXPECT_EQ(kernel.destroy, &fields::destroy);
  EXPECT_EQ(kernel.describe, &fields::describe);
  const Caps& caps = contents.batches[0].implementations[0].caps;
  EXPECT_EQ(caps.device_type, OPMUX_DEVICE_CUDA);
  EXPECT_EQ(caps.dim_rules.at(0).relation, OPMUX_AT_MOST);
  EXPECT_EQ(caps.tensor_rules.at(0).arg, "x");
  EXPECT_EQ(caps.scalar_rules.at(0).arg, "mode");
  EXPECT_THAT(caps.scalar_rules.at(0).allowed, testing::ElementsAre(5));
}

TEST(DescriptorFields, of_an_answer_to_a_point) {
  Full full;
  opmux_arg found{};
  EXPECT_TRUE(full.read().batches.at(0).points.at(0).answer(nullptr, 0, found));
  EXPECT_EQ(found.value.i64, 7);
}

}  // namespace
}  // namespace opmux::plugin
