#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "stage.hpp"

/// Defects of plugin loaders. Each plugin is valid except for the property that its test names.
namespace opmux::test {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& name) { return OPMUX_DEFECT_PLUGINS "/" + name; }

/// A runtime with the plugins of one or two folders.
Runtime runtime_with(const std::string& first, const std::string& second = "") {
  const std::string path = folder_of(first) + (second.empty() ? "" : ":" + folder_of(second));
  return Runtime::create(bare({{"OPMUX_PLUGIN_PATH", path}})).value();
}

PluginInfo info_of(const Runtime& runtime, const std::string& file) {
  for (const PluginInfo& plugin : runtime.plugins().list()) {
    if (fs::path(plugin.path).filename() == file + ".so") return plugin;
  }
  return {};
}

/// The implementation that copied, or the error.
std::string copied_by(const Runtime& runtime) {
  const float x[2] = {5, 7};
  float y[2] = {};
  CallReport report;
  const auto op = runtime.op("defect.copy");
  if (!op) return op.error().to_string();
  const Status status = op->with(report)(TensorView(y, f32, {2}), TensorView(x, f32, {2}));
  if (!status.ok()) return status.to_string();
  return y[0] == 5 && y[1] == 7 ? report.implementation : "wrong numbers";
}

template <class Function>
Function* symbol_of(const Runtime& runtime, const std::string& file, const char* name) {
  void* library = dlopen(info_of(runtime, file).path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(library, nullptr) << "the library is not loaded from this path";
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

TEST(Defects, the_version_field_of_a_plugin_is_never_read) {
  const Runtime runtime = runtime_with("other_version", "plain");
  const PluginInfo other = info_of(runtime, "other_version");
  EXPECT_FALSE(other.loaded);
  EXPECT_EQ(other.code, "plugin.abi_major");
  EXPECT_THAT(other.reason, testing::HasSubstr("plugin ABI version 2"));
  EXPECT_EQ(copied_by(runtime), "defect.copy/plain.v1");
}

TEST(Defects, packed_structs_are_read_through_misaligned_pointers) {
  const Runtime at_odd_addresses = runtime_with("misaligned");
  EXPECT_EQ(copied_by(at_odd_addresses), "defect.copy/misaligned.v1");
  const Runtime odd_stride = runtime_with("odd_stride", "plain");
  EXPECT_EQ(info_of(odd_stride, "odd_stride").code, "plugin.stride");
  EXPECT_EQ(copied_by(odd_stride), "defect.copy/plain.v1");
}

TEST(Defects, memory_of_a_plugin_is_freed_by_the_host) {
  std::atomic<int (*)()> handed_out{}, given_back{};
  {
    const Runtime runtime = runtime_with("owning");
    handed_out = symbol_of<int()>(runtime, "owning", "handed_out");
    given_back = symbol_of<int()>(runtime, "owning", "given_back");
    ASSERT_NE(handed_out.load(), nullptr);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(copied_by(runtime), "defect.copy/owning.v1");
    EXPECT_GT(handed_out.load()(), 0);
    EXPECT_LE(given_back.load()(), handed_out.load()());
  }
  EXPECT_EQ(given_back.load()(), handed_out.load()()) << "every allocation was freed exactly once";
}

TEST(Defects, code_of_a_plugin_is_unmapped_while_it_is_in_use) {
  long (*rounds)() = nullptr;
  {
    const Runtime runtime = runtime_with("threaded");
    EXPECT_EQ(copied_by(runtime), "defect.copy/threaded.v1");
    rounds = symbol_of<long()>(runtime, "threaded", "rounds_of_its_thread");
  }
  // The runtime is destroyed; the plugin's thread continues in code that must still be mapped.
  const long before = rounds();
  while (rounds() < before + 100) std::this_thread::yield();
  const Runtime again = runtime_with("threaded");
  EXPECT_EQ(copied_by(again), "defect.copy/threaded.v1");
}

TEST(Defects, a_missing_symbol_crashes_the_host) {
  const Runtime no_query = runtime_with("no_query", "plain");
  EXPECT_FALSE(info_of(no_query, "no_query").loaded);
  EXPECT_THAT(info_of(no_query, "no_query").reason, testing::HasSubstr("opmux_plugin_query_v1"));
  EXPECT_EQ(copied_by(no_query), "defect.copy/plain.v1");
  const Runtime unresolved = runtime_with("unresolved", "plain");
  EXPECT_FALSE(info_of(unresolved, "unresolved").loaded) << "the symbol was resolved lazily";
  EXPECT_THAT(info_of(unresolved, "unresolved").reason,
              testing::HasSubstr("no_library_defines_this"));
  EXPECT_EQ(copied_by(unresolved), "defect.copy/plain.v1");
}

TEST(Defects, a_duplicate_exits_the_process) {
  const Runtime runtime = runtime_with("plain", "twins");
  const PluginInfo backend = info_of(runtime, "same_backend");
  EXPECT_FALSE(backend.loaded);
  EXPECT_THAT(backend.reason, testing::HasSubstr("plain"));
  const PluginInfo schema = info_of(runtime, "same_operator");
  EXPECT_FALSE(schema.loaded);
  EXPECT_THAT(schema.reason, testing::HasSubstr("defect.copy"));
  EXPECT_TRUE(info_of(runtime, "third").loaded) << "other plugins are not affected";
  EXPECT_EQ(copied_by(runtime), "defect.copy/plain.v1");
}

}  // namespace
}  // namespace opmux::test
