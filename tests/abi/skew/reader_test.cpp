#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/host.hpp"
#include "plugin/open/loaded_plugin.hpp"
#include "registry/registry.hpp"

/// Reads plugins built against older, current and newer headers. Compiled twice: as a current host,
/// and as a host that knows fields of a later version.
namespace opmux::plugin {
namespace {

/// Whether this host was compiled against the header that append_fields.py makes.
#ifdef OPMUX_ABI_APPENDED
constexpr bool kOfNextVersion = true;
#else
constexpr bool kOfNextVersion = false;
#endif

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class AbiSkew : public testing::TestWithParam<const char*> {
 protected:
  AbiSkew() {
    const std::string path = OPMUX_SKEW_PLUGINS + ("/skew_" + name_) + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    query_ = reinterpret_cast<opmux_plugin_query_fn>(dlsym(library, OPMUX_PLUGIN_SYMBOL));
  }
  /// Registers everything that the plugin provides.
  void add_all() {
    auto ready = make_ready(query_);
    ASSERT_TRUE(ready) << ready.error().to_string();
    EXPECT_THAT(ready->contents.refused, IsEmpty());
    for (const registry::Batch& batch : ready->contents.batches) {
      const registry::BatchResult result = registry_.add(batch, true);
      EXPECT_THAT(result.refused, IsEmpty());
    }
  }
  registry::ImplementationPtr find(const std::string& rest) const {
    return registry_.snapshot()->find_implementation("skew_" + name_ + ".scale/skew_" + name_ +
                                                     rest);
  }

  const std::string name_ = GetParam();
  opmux_plugin_query_fn query_ = nullptr;
  registry::Registry registry_;
};

TEST_P(AbiSkew, array_elements_are_read_at_their_stride) {
  add_all();
  for (const char* rest : {"_one.a", "_one.b", "_two.c"}) {
    const registry::ImplementationPtr record = find(rest);
    ASSERT_NE(record, nullptr) << rest;
    EXPECT_EQ(record->flags, uint32_t{OPMUX_IMPL_DETERMINISTIC});
    EXPECT_EQ(record->verify_reads.size(), 2u);
    ASSERT_TRUE(record->plan_reads);
    EXPECT_EQ(record->plan_reads->size(), 1u);
    // Two dtypes, two bounds of N, two contiguous tensors, one list of modes, and the device.
    EXPECT_GE(record->capability.checks.size(), 7u);
  }
  ASSERT_EQ(registry_.snapshot()->unclaimed.size(), 1u);
  opmux_arg answer{};
  EXPECT_TRUE((*registry_.snapshot()->unclaimed[0].answer.function)(nullptr, 0, answer));
  EXPECT_EQ(answer.value.i64, 64);
}

TEST_P(AbiSkew, its_functions_take_the_calls_of_this_host) {
  add_all();
  const registry::Kernel& kernel = find("_two.c")->kernel;
  float x[2] = {1, 2}, y[2] = {}, scratch[2];
  int64_t shape[] = {2}, strides[] = {1};
  opmux_tensor in{x, {OPMUX_DEVICE_CPU, 0}, 1, {OPMUX_DTYPE_FLOAT, 32, 1}, shape, strides, 0};
  opmux_tensor out = in;
  out.data = y;
  opmux_arg args[4] = {};
  args[0].value.tensor = &out;
  args[1].value.tensor = &in;
  args[2].value.f64 = 3;
  opmux_call call{};
  call.struct_size = sizeof(call);
  call.arg_count = 4;
  call.arg_stride = sizeof(opmux_arg);
  call.args = args;
  call.workspace = scratch;
  call.workspace_size = kernel.workspace(kernel.user_data, &call);
  ASSERT_EQ(kernel.plan(kernel.user_data, &call, &call.prepared), OPMUX_OK);
  EXPECT_EQ(kernel.run(kernel.user_data, &call), OPMUX_OK);
  kernel.plan_free(kernel.user_data, call.prepared);
  EXPECT_THAT(y, testing::ElementsAre(3, 6));
}

TEST_P(AbiSkew, init_sees_the_size_of_the_host_struct) {
  std::vector<std::string> heard;
  const HostListener listener(
      {[&](int, std::string_view text) { heard.emplace_back(text); }, nullptr});
  add_all();
  const bool shorter = !kOfNextVersion && name_ == "next";
  EXPECT_THAT(heard,
              Contains(HasSubstr(shorter ? "a shorter host" : "a host as long as its header's")));
}

INSTANTIATE_TEST_SUITE_P(, AbiSkew, testing::Values("v1", "today", "next"),
                         [](const auto& of) { return std::string(of.param); });

/// Checks that the three headers really differ.
TEST(AbiSkewHeaders, the_plugins_differ_in_size) {
  const auto size_of = [](const std::string& name) {
    const std::string path = OPMUX_SKEW_PLUGINS + ("/skew_" + name) + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto query = reinterpret_cast<opmux_plugin_query_fn>(dlsym(library, OPMUX_PLUGIN_SYMBOL));
    char room[2 * sizeof(opmux_plugin)] = {};
    auto* plugin = reinterpret_cast<opmux_plugin*>(room);
    plugin->struct_size = sizeof(room);
    EXPECT_EQ(query(&process_host(), plugin), OPMUX_OK);
    return plugin->struct_size;
  };
  EXPECT_LE(size_of("v1"), size_of("today"));
  EXPECT_EQ(size_of("next"), size_of("today") + 2 * sizeof(uint64_t));
  EXPECT_EQ(sizeof(opmux_plugin), size_of(kOfNextVersion ? "next" : "today"));
}

}  // namespace
}  // namespace opmux::plugin
