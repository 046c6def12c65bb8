#include <opmux/plugin.hpp>

#include <filesystem>

#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

std::string path_of(const char* name) { return std::string(OPMUX_TEST_PLUGINS) + "/" + name; }

Options without_probe() {
  Options options = bare();
  options.plugins.probe = false;
  return options;
}

/// "code name found_in" of the plugins that are not built in.
std::string listed(const Runtime& runtime) {
  std::string text;
  for (const PluginInfo& info : runtime.plugins().list()) {
    if (info.found_in == "built in") continue;
    text += (text.empty() ? "" : "; ") + (info.loaded ? "loaded" : info.code) + " " + info.name +
            " " + info.found_in;
  }
  return text;
}

TEST(RequestedPlugin, a_file_is_loaded_while_the_runtime_runs) {
  Stage stage(without_probe());
  EXPECT_FALSE(stage.runtime.op("good.swish"));
  const auto info = stage.runtime.plugins().load(path_of("good.so"));
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->name, "good");
  EXPECT_EQ(info->implementations, std::vector<std::string>{"good.swish/good.v1"});
  EXPECT_TRUE(stage.runtime.op("good.swish"));
  EXPECT_TRUE(stage.runtime.plugins().load(path_of("good.so"))) << "again: nothing changes";
  EXPECT_EQ(listed(stage.runtime), "loaded good program");
}

TEST(RequestedPlugin, a_file_is_probed_and_its_switch_is_applied) {
  const TemporaryFolder folder;
  Stage stage(bare({{"OPMUX_STATE_DIR", folder.at("state")}}));
  const auto info = stage.runtime.plugins().load(path_of("good.so"));
  EXPECT_TRUE(info) << info.error().to_string();
  const auto refused = stage.runtime.plugins().load(path_of("init_fails.so"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "plugin.init");
}

TEST(RequestedPlugin, a_file_whose_self_test_fails_is_refused_with_its_text) {
  const TemporaryFolder folder;
  Stage stage(bare({{"OPMUX_STATE_DIR", folder.at("state")}}));
  const auto refused = stage.runtime.plugins().load(path_of("self_test_fails.so"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "probe.self_test");
  EXPECT_THAT(std::string(refused.error().message()), HasSubstr("sums are wrong on this device"));
}

TEST(RequestedPlugin, a_refusal_says_why_and_a_file_that_was_put_right_is_tried_again) {
  const TemporaryFolder folder;
  const std::string path = folder.at("late.so");
  Stage stage(without_probe());
  EXPECT_EQ(stage.runtime.plugins().load("late.so").error().reason(), "trust.relative");
  std::filesystem::copy_file(path_of("no_query.so"), path);
  const auto refused = stage.runtime.plugins().load(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "plugin.no_query");
  EXPECT_THAT(std::string(refused.error().message()), HasSubstr("late.so"));
  std::filesystem::remove(path);
  std::filesystem::copy_file(path_of("good.so"), path);
  const auto loaded = stage.runtime.plugins().load(path);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(listed(stage.runtime), "loaded good program");
}

TEST(RequestedPlugin, a_frozen_runtime_loads_none) {
  Stage stage(without_probe());
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  EXPECT_EQ(stage.runtime.plugins().load(path_of("good.so")).error().code(), Code::frozen);
}

int32_t run_linked(void*, const opmux_call* call) {
  static_cast<float*>(call->args[0].value.tensor->data)[0] = 42;
  return OPMUX_OK;
}

/// A plugin that is linked into this program.
int32_t query_linked(const opmux_host*, opmux_plugin* out) {
  static opmux_impl impl{};
  impl.struct_size = sizeof impl;
  impl.op = opmux_str_of("linked.fill");
  impl.variant = opmux_str_of("v1");
  impl.priority = -1;
  impl.run = run_linked;
  static opmux_backend backend{};
  backend.struct_size = sizeof backend;
  backend.name = backend.vendor = opmux_str_of("linked");
  backend.kind = OPMUX_KIND_VENDOR;
  backend.device_type = OPMUX_DEVICE_CPU;
  backend.priority = -1;
  backend.impls = &impl;
  backend.impl_count = 1;
  backend.impl_stride = sizeof impl;
  static const opmux_schema_text fill = {sizeof(opmux_schema_text), 0,
                                         OPMUX_STR("linked.fill(out Tensor y[N], Tensor x[N])")};
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of("linked");
  out->version = opmux_str_of("1.0");
  out->backends = &backend;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = &fill;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
  return OPMUX_OK;
}

TEST(RequestedPlugin, a_linked_plugin_is_loaded_and_runs) {
  Stage stage;
  const auto info = stage.runtime.plugins().load(&query_linked);
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->path, "program");
  float x[2] = {}, y[2] = {};
  CallReport report;
  const Operator fill = stage.runtime.op("linked.fill").value();
  ASSERT_TRUE(fill.with(report)(TensorView(y, f32, {2}), TensorView(x, f32, {2})).ok());
  EXPECT_EQ(report.implementation, "linked.fill/linked.v1");
  EXPECT_EQ(y[0], 42);
  EXPECT_FALSE(stage.runtime.plugins().load(&query_linked)) << "its backend exists";
  EXPECT_EQ(stage.runtime.plugins().load(opmux_plugin_query_fn{nullptr}).error().reason(),
            "plugin.no_query");
  EXPECT_THAT(listed(stage.runtime), HasSubstr("loaded linked program"));
}

}  // namespace
}  // namespace opmux::test
