#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.hpp>

#include "crash/journal_file.hpp"
#include "crash/quarantine_file.hpp"
#include "plugin/discover/discovery.hpp"
#include "private_folder.hpp"
#include "probe/process_state.hpp"
#include "runtime/core.hpp"

namespace opmux {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A plugin folder and a state folder that live as long as the test.
class LoadingTest : public testing::Test {
 protected:
  void put(const std::string& from, const std::string& name) {
    fs::create_directories(folder_.at("plugins"));
    fs::copy_file(from + "/" + name + ".so", folder_.at("plugins/" + name + ".so"));
  }
  void put_hostile(const std::string& name) { put(OPMUX_HOSTILE_PLUGINS, name); }
  void put_twin(const std::string& name) { put(OPMUX_HARMLESS_TWINS, name); }

  Options options() const {
    Options options;
    options.backends = false;
    options.environment = {{std::string("OPMUX_STATE_DIR"), folder_.at("state")}};
    options.plugins.folders = {folder_.at("plugins")};
    options.sink = [this](const Event& event) { heard_.push_back(std::string(event.code)); };
    return options;
  }

  static bool has_backend(Runtime& runtime, const std::string& name) {
    return runtime.core().registry().snapshot()->backends.contains(name);
  }
  /// The only plugin found in the folder.
  static PluginInfo found(Runtime& runtime) {
    const std::vector<PluginInfo> all = runtime.plugins().list();
    return all.size() == 2 ? all.back() : PluginInfo{};
  }

  PrivateFolder folder_;
  mutable std::vector<std::string> heard_;
};

std::string call_silu(Runtime& runtime) {
  std::array<float, 8> x{1, 2, 3, 4, 1, 1, 1, 1};
  std::array<float, 4> y{};
  CallReport report;
  const Status status =
      runtime.op("silu_and_mul")
          ->with(report)(TensorView(y.data(), f32, {1, 4}), TensorView(x.data(), f32, {1, 8}));
  return status.ok() ? report.implementation : std::string(status.message());
}

TEST_F(LoadingTest, a_plugin_is_loaded_when_a_decision_could_use_it) {
  put_twin("nan");
  put_twin("hang_at_query");
  Runtime runtime = Runtime::create(options()).value();
  EXPECT_FALSE(has_backend(runtime, "twin_nan"));
  EXPECT_TRUE(runtime.op("twin_hang_at_query.swish"))
      << "its operators are known from the probe result";
  const uint64_t before = runtime.generation();
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32");
  EXPECT_EQ(runtime.generation(), before + 1) << "one plugin, one generation";
  EXPECT_FALSE(has_backend(runtime, "twin_hang_at_query")) << "no decision needed it";
  runtime.plugins().warm_up();
  EXPECT_TRUE(has_backend(runtime, "twin_hang_at_query"));
}

TEST_F(LoadingTest, a_denied_plugin_is_not_loaded_until_it_is_allowed) {
  put_twin("nan");
  Options with = options();
  with.policy.deny = {"vendor:stranger"};
  Runtime runtime = Runtime::create(with).value();
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/reference.scalar");
  EXPECT_FALSE(has_backend(runtime, "twin_nan"));
  ASSERT_TRUE(runtime.policy().reset().ok());
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32");
}

TEST_F(LoadingTest, a_plugin_that_is_switched_off_is_opened_when_it_is_switched_on) {
  put_twin("nan");
  Options with = options();
  with.environment->emplace_back("OPMUX_BACKEND_TWIN_NAN", "0");
  Runtime runtime = Runtime::create(with).value();
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/reference.scalar");
  EXPECT_EQ(found(runtime).code, "backend.disabled");
  EXPECT_TRUE(runtime.plugins().enable_backend("twin_nan", false).ok());
  EXPECT_EQ(runtime.plugins().device_access("twin_nan").error().reason(), "backend.disabled");
  EXPECT_FALSE(has_backend(runtime, "twin_nan")) << "also not by a list";
  EXPECT_TRUE(runtime.plugins().enable_backend("twin_nan", true).ok());
  EXPECT_TRUE(has_backend(runtime, "twin_nan"));
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32");
}

/// Whether a library whose name contains `name` is loaded.
bool is_mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  return text.find(name) != std::string::npos;
}

TEST_F(LoadingTest, a_backend_of_the_installation_that_is_switched_off_is_not_opened) {
  if (!fs::exists(plugin::default_folder() + "/libopmux_simd.so")) GTEST_SKIP() << "not built";
  Options with;
  with.environment = {{"OPMUX_STATE_DIR", folder_.at("state")}, {"OPMUX_BACKEND_SIMD", "0"}};
  Runtime runtime = Runtime::create(with).value();
  EXPECT_EQ(call_silu(runtime).find("silu_and_mul/simd."), std::string::npos);
  std::vector<std::string> codes;
  for (const PluginInfo& info : runtime.plugins().list()) {
    if (info.path.ends_with("libopmux_simd.so")) codes.push_back(info.code);
  }
  EXPECT_THAT(codes, ElementsAre("backend.disabled"));
  EXPECT_FALSE(is_mapped("libopmux_simd.so"));
  EXPECT_TRUE(runtime.plugins().enable_backend("simd", true).ok());
  EXPECT_TRUE(is_mapped("libopmux_simd.so"));
  EXPECT_TRUE(has_backend(runtime, "simd"));
}

TEST_F(LoadingTest, a_policy_may_require_a_deferred_plugin) {
  put_twin("nan");
  Runtime runtime = Runtime::create(options()).value();
  Policy policy;
  policy.rules.push_back({.op = "silu_and_mul", .require = {"impl:silu_and_mul/twin_nan.f32"}});
  EXPECT_TRUE(runtime.policy().set(policy).ok());
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32");
}

TEST_F(LoadingTest, truth_check_and_load_agree_about_deferred_plugins) {
  put_twin("nan");
  const auto text = [](const std::string& rule) {
    return "opmux: 1\nnames: strict\nrules:\n  - {op: silu_and_mul, " + rule + "}\n";
  };
  const std::string required = text("require: [silu_and_mul/twin_nan.f32]");
  const std::string absent = text("require: [silu_and_mul/twin_nan.f64]");
  EXPECT_TRUE(Runtime::create(options())->policy().check(required, "p.yaml"));
  EXPECT_EQ(
      Runtime::create(options())->policy().compare("opmux: 1\n", "a", absent, "b").error().reason(),
      "policy.unmatched");
  Runtime runtime = Runtime::create(options()).value();
  EXPECT_FALSE(has_backend(runtime, "twin_nan"));
  EXPECT_EQ(runtime.policy().load(absent, "p.yaml").reason(), "policy.unmatched");
  ASSERT_TRUE(runtime.policy().load(required, "p.yaml").ok());
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32");
}

TEST_F(LoadingTest, truth_a_policy_that_denies_a_deferred_plugin_is_judged_without_loading_it) {
  put_twin("hang_at_query");
  const std::string denies =
      "opmux: 1\nrules:\n  - {name: d, deny: [\"*/twin_hang_at_query.*\"]}\n";
  const std::string allows = denies + "defaults: {allow_none: true}\n";
  Runtime runtime = Runtime::create(options()).value();
  const Status refused = runtime.policy().load(denies, "p.yaml");
  EXPECT_EQ(refused.reason(), "policy.no_candidates");
  EXPECT_TRUE(runtime.policy().load(allows, "p.yaml").ok());
  EXPECT_FALSE(has_backend(runtime, "twin_hang_at_query"));
  EXPECT_EQ(Runtime::create(options())->policy().check(denies, "p.yaml").error().to_string(),
            refused.to_string());
}

TEST_F(LoadingTest, truth_a_quarantined_implementation_of_a_deferred_plugin_is_here) {
  put_twin("nan");
  const std::string id = "silu_and_mul/twin_nan.f32";
  {
    Runtime runtime = Runtime::create(options()).value();
    runtime.plugins().warm_up();
    const auto found = runtime.core().registry().snapshot()->find_implementation(id);
    ASSERT_NE(found, nullptr);
    crash::QuarantineStore store(folder_.at("state/store"));
    crash::QuarantineList list;
    ASSERT_TRUE(store
                    .change(list,
                            [&](crash::QuarantineList& all) {
                              all.entries.push_back({id, crash::plain_build(found->build_id),
                                                     "SIGSEGV", 1, int64_t{1} << 40});
                              return true;
                            })
                    .ok());
  }
  Runtime runtime = Runtime::create(options()).value();
  EXPECT_FALSE(has_backend(runtime, "twin_nan"));
  const auto one = [&] { return runtime.health().quarantine().entries.at(0); };
  EXPECT_TRUE(one().here && one().deferred);
  EXPECT_FALSE(has_backend(runtime, "twin_nan"));
  runtime.plugins().warm_up();
  EXPECT_TRUE(one().here && !one().deferred);
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/reference.scalar");
}

TEST_F(LoadingTest, without_a_probe_it_is_loaded_immediately) {
  put_twin("nan");
  Options with = options();
  with.plugins.probe = false;
  Runtime runtime = Runtime::create(with).value();
  EXPECT_TRUE(has_backend(runtime, "twin_nan"));
}

TEST_F(LoadingTest, a_probe_result_is_cached_for_the_next_process) {
  put_twin("out_of_bounds");
  Runtime::create(options()).value();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.at("state/store/verdicts")),
                          fs::directory_iterator()),
            1);
}

TEST_F(LoadingTest, logs_once_that_probe_results_cannot_be_cached) {
  put_twin("nan");
  Options with = options();
  with.environment = {{std::string("OPMUX_STATE_DIR"), std::string("/proc/nowhere")}};
  Runtime runtime = Runtime::create(with).value();
  EXPECT_THAT(heard_, Contains("store.folder"));
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32") << "the plugin works without a cache";
}

TEST_F(LoadingTest, a_sealed_plugin_runs_from_memory_and_not_from_its_file) {
  put_twin("nondeterministic");
  Options with = options();
  with.plugins.sealed = true;
  Runtime runtime = Runtime::create(with).value();
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nondeterministic.f32");
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  EXPECT_THAT(text, AllOf(HasSubstr("/memfd:opmux:nondeterministic.so"),
                          Not(HasSubstr("plugins/nondeterministic.so"))));
  Runtime again = Runtime::create(with).value();
  EXPECT_EQ(call_silu(again), "silu_and_mul/twin_nondeterministic.f32");
  std::ifstream later("/proc/self/maps");
  const std::string after(std::istreambuf_iterator<char>(later), {});
  EXPECT_EQ(std::count(after.begin(), after.end(), '\n'),
            std::count(text.begin(), text.end(), '\n'))
      << "the same bytes are loaded once";
}

TEST_F(LoadingTest, a_hostile_plugin_does_not_affect_other_plugins_or_this_process) {
  put_twin("nan");
  put_hostile("segv_at_open");
  put_hostile("environment_at_open");
  const probe::ProcessState before = probe::look();
  Runtime runtime = Runtime::create(options()).value();
  const std::vector<PluginInfo> all = runtime.plugins().list();
  std::vector<std::string> codes;
  for (const PluginInfo& info : all) codes.push_back(info.code);
  EXPECT_THAT(codes, ElementsAre("", "probe.environment", "", "probe.crash"));
  EXPECT_THAT(probe::differences(before, probe::look()), IsEmpty());
  EXPECT_EQ(call_silu(runtime), "silu_and_mul/twin_nan.f32");
}

/// The bytes of a valid plugin, damaged in the given way.
std::string spoiled(const std::string& how) {
  std::ifstream file(std::string(OPMUX_HARMLESS_TWINS) + "/nan.so", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  constexpr size_t kClass = 4, kMachine = 18;  // Offsets in the ELF header.
  if (how == "elf.class") bytes[kClass] = 1;
  if (how == "elf.machine") bytes[kMachine] = static_cast<char>(bytes[kMachine] ^ 0x55);
  // Cut inside the loaded segments, after the program headers.
  if (how == "elf.truncated") bytes.resize(1024);
  if (how == "elf.magic") {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i * 31 + i * 7);
  }
  return bytes;
}

class SpoiledFileTest : public LoadingTest, public testing::WithParamInterface<std::string> {};

TEST_P(SpoiledFileTest, is_refused_before_any_of_it_runs) {
  folder_.write("plugins/spoiled.so", spoiled(GetParam()));
  Runtime runtime = Runtime::create(options()).value();
  const PluginInfo info = found(runtime);
  EXPECT_FALSE(info.loaded);
  EXPECT_EQ(info.code, GetParam()) << info.reason;
}

INSTANTIATE_TEST_SUITE_P(Spoiled, SpoiledFileTest,
                         testing::Values("elf.class", "elf.machine", "elf.truncated", "elf.magic"),
                         [](const auto& way) { return way.param.substr(4); });

/// Plugins that are valid alone and conflict with others.
struct Misfit {
  std::string name, code;
};
class MisfitTest : public LoadingTest, public testing::WithParamInterface<Misfit> {};

TEST_P(MisfitTest, is_refused_by_name_and_registers_nothing) {
  put_hostile(GetParam().name);
  const probe::ProcessState before = probe::look();
  Runtime runtime = Runtime::create(options()).value();
  const PluginInfo info = found(runtime);
  EXPECT_FALSE(info.loaded);
  EXPECT_EQ(info.code, GetParam().code) << info.reason;
  EXPECT_THAT(info.implementations, IsEmpty());
  EXPECT_THAT(probe::differences(before, probe::look()), IsEmpty());
}

TEST_P(MisfitTest, has_a_harmless_twin_that_is_loaded) {
  put_twin(GetParam().name);
  Runtime runtime = Runtime::create(options()).value();
  const PluginInfo info = found(runtime);
  EXPECT_TRUE(info.loaded) << info.code << ": " << info.reason;
}

INSTANTIATE_TEST_SUITE_P(Misfits, MisfitTest,
                         testing::ValuesIn(std::vector<Misfit>{
                             {"duplicate_id", "registry.duplicate"},
                             {"unknown_operator", "registry.unknown_operator"},
                             {"other_schema", "registry.schema_differs"},
                             {"other_arguments", "schema.signature"},
                             {"foreign_name", "registry.name"},
                             {"no_vendor", "registry.vendor"},
                             {"interpose", "elf.interposes"}}),
                         [](const auto& misfit) { return misfit.param.name; });

}  // namespace
}  // namespace opmux
