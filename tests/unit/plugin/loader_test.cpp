#include "plugin/open/loader.hpp"

#include <pthread.h>

#include <cfenv>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/host.hpp"
#include "plugin/open/library.hpp"

namespace opmux::plugin {
namespace {

using State = PluginReport::State;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

std::string path_of(const std::string& name) {
  return std::string(OPMUX_TEST_PLUGINS) + "/" + name + ".so";
}

class LoaderTest : public testing::Test {
 protected:
  registry::Registry registry_;
  Loader loader_{registry_};
};

TEST_F(LoaderTest, loads_a_plugin_and_registers_what_it_brings) {
  const PluginReport report = loader_.load(path_of("good"));
  EXPECT_EQ(report.state, State::loaded) << report.text;
  EXPECT_EQ(report.name, "good");
  EXPECT_EQ(report.version, "1.2");
  EXPECT_EQ(report.reason, "");
  EXPECT_THAT(report.backends, ElementsAre("good"));
  EXPECT_THAT(report.implementations, ElementsAre("good.swish/good.v1"));
  EXPECT_THAT(report.path, EndsWith("/good.so"));
  const auto snapshot = registry_.snapshot();
  const auto record = snapshot->find_implementation("good.swish/good.v1");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->kernel.run(record->kernel.user_data, nullptr), OPMUX_OK);
  EXPECT_EQ(record->build_id, report.build_id);
  EXPECT_NE(report.build_id, "");
  ASSERT_EQ(snapshot->unclaimed.size(), 1u);
  opmux_arg answer{};
  EXPECT_TRUE((*snapshot->unclaimed[0].answer.function)(nullptr, 0, answer));
  EXPECT_EQ(answer.value.i64, 64);
}

TEST_F(LoaderTest, does_not_load_the_same_file_twice) {
  loader_.load(path_of("good"));
  const PluginReport again =
      loader_.load(std::string(OPMUX_TEST_PLUGINS) + "/../plugins/./good.so");
  EXPECT_EQ(again.state, State::loaded);
  EXPECT_THAT(again.refused, IsEmpty());
  EXPECT_EQ(loader_.reports().size(), 1u);
}

TEST_F(LoaderTest, two_registries_share_one_plugin_that_was_initialised_once) {
  registry::Registry other_registry;
  Loader other(other_registry);
  std::vector<std::string> heard;
  const HostListener listener(
      {[&](int, std::string_view text) { heard.emplace_back(text); }, nullptr});
  loader_.load(path_of("good"));
  EXPECT_EQ(other.load(path_of("good")).state, State::loaded);
  EXPECT_THAT(heard, ElementsAre("good plugin starts"));
  const auto backend = other_registry.snapshot()->backends.at("good");
  EXPECT_FALSE(backend->available());
  EXPECT_EQ(backend->unavailable_reason(), "1") << "number of init calls without a shutdown";
}

TEST_F(LoaderTest, the_last_reference_to_a_plugin_shuts_it_down) {
  loader_.load(path_of("good"));
  auto record = registry_.snapshot()->find_implementation("good.swish/good.v1");
  EXPECT_TRUE(loader_.unload("good"));
  EXPECT_TRUE(record->withdrawn);
  std::vector<std::string> heard;
  const HostListener listener(
      {[&](int, std::string_view text) { heard.emplace_back(text); }, nullptr});
  loader_.load(path_of("good"));
  EXPECT_THAT(heard, IsEmpty()) << "the record kept it alive";
  EXPECT_TRUE(loader_.unload("good"));
  record = nullptr;
  loader_.load(path_of("good"));
  EXPECT_THAT(heard, ElementsAre("good plugin starts"));
  const auto backend = registry_.snapshot()->backends.at("good");
  EXPECT_FALSE(backend->available());
  EXPECT_EQ(backend->unavailable_reason(), "1");
}

TEST_F(LoaderTest, unloading_takes_everything_out_and_knows_what_is_loaded) {
  loader_.load(path_of("good"));
  EXPECT_TRUE(loader_.unload("good"));
  EXPECT_THAT(registry_.snapshot()->backends, IsEmpty());
  EXPECT_THAT(registry_.snapshot()->unclaimed, IsEmpty());
  EXPECT_FALSE(loader_.unload("good"));
}

bool mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  return text.find("/" + name + ".so") != std::string::npos;
}

TEST_F(LoaderTest, unloadable_code_is_unloaded_when_it_is_no_longer_referenced) {
  loader_.load(path_of("goes"));
  auto record = registry_.snapshot()->find_implementation("goes.away/goes.v1");
  ASSERT_NE(record, nullptr);
  EXPECT_TRUE(loader_.unload("goes"));
  EXPECT_TRUE(mapped("goes")) << "the record may still be called";
  EXPECT_EQ(record->kernel.run(record->kernel.user_data, nullptr), OPMUX_OK);
  record = nullptr;
  EXPECT_FALSE(mapped("goes"));
  EXPECT_EQ(loader_.load(path_of("goes")).state, State::loaded) << "it can be loaded again";
  loader_.load(path_of("good"));
  EXPECT_TRUE(loader_.unload("good"));
  EXPECT_TRUE(mapped("good")) << "it does not allow unloading";
}

TEST_F(LoaderTest, a_plugin_is_published_once) {
  struct Counter final : registry::Publisher {
    struct Counted final : registry::Publication {
      explicit Counted(uint64_t& of) : count(of) {}
      void publish(registry::Change& change) override { change.exchange(); }
      uint64_t finish() noexcept override { return ++count; }
      uint64_t& count;
    };
    std::unique_ptr<registry::Publication> begin() override {
      return std::make_unique<Counted>(published);
    }
    void stop_withdrawn() noexcept override {}
    uint64_t published = 0;
  };
  Counter counter;
  registry_.set_publisher(&counter);
  loader_.load(path_of("good"));
  EXPECT_EQ(counter.published, 1u);
  loader_.unload("good");
  EXPECT_EQ(counter.published, 2u);
  registry_.set_publisher(nullptr);
}

TEST_F(LoaderTest, refuses_a_file_that_does_not_exist) {
  const PluginReport report = loader_.load(path_of("nothing"));
  EXPECT_EQ(report.state, State::refused);
  EXPECT_EQ(report.reason, "plugin.path");
  EXPECT_THAT(report.text, HasSubstr("nothing.so: No such file or directory"));
}

TEST_F(LoaderTest, refuses_a_file_that_is_not_a_library) {
  const PluginReport report =
      loader_.load(std::string(OPMUX_TEST_PLUGINS) + "/../CTestTestfile.cmake");
  EXPECT_EQ(report.reason, "elf.magic");
}

// A missing symbol does not crash; it is detected when the file is opened.
TEST_F(LoaderTest, refuses_a_library_that_needs_an_undefined_symbol) {
  const PluginReport report = loader_.load(path_of("unresolved"));
  EXPECT_EQ(report.reason, "plugin.open");
  EXPECT_THAT(report.text, HasSubstr("nobody_defines_this"));
}

TEST_F(LoaderTest, refuses_a_library_without_the_query_symbol_with_a_sentence) {
  const PluginReport report = loader_.load(path_of("no_query"));
  EXPECT_EQ(report.reason, "plugin.no_query");
  EXPECT_THAT(report.text, EndsWith("/no_query.so exports no opmux_plugin_query_v1: it is a "
                                    "library, but not an opmux plugin"));
}

TEST_F(LoaderTest, reads_the_version_a_plugin_was_built_for) {
  const PluginReport field = loader_.load(path_of("wrong_major"));
  EXPECT_EQ(field.reason, "plugin.abi_major");
  EXPECT_EQ(field.text, "it was built for plugin ABI version 2; this build supports version 1");
  const PluginReport symbol = loader_.load(path_of("next_symbol"));
  EXPECT_EQ(symbol.reason, "plugin.abi_major");
  EXPECT_THAT(symbol.text, EndsWith("was built for plugin ABI version 2; this build supports "
                                    "version 1"));
}

TEST_F(LoaderTest, refuses_a_plugin_whose_init_fails_with_its_text) {
  const PluginReport report = loader_.load(path_of("init_fails"));
  EXPECT_EQ(report.state, State::refused);
  EXPECT_EQ(report.reason, "plugin.init");
  EXPECT_EQ(report.text, "its init function returned outcome 3: driver 3.1 is too old");
}

TEST_F(LoaderTest, survives_a_plugin_that_throws) {
  const PluginReport report = loader_.load(path_of("throwing"));
  EXPECT_EQ(report.reason, "plugin.threw");
  EXPECT_EQ(report.text, "its query function threw: not in the mood");
}

TEST_F(LoaderTest, leaves_floating_point_and_signals_as_they_were) {
  EXPECT_EQ(loader_.load(path_of("disturbing")).state, State::loaded);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0);
}

TEST_F(LoaderTest, loads_a_folder_in_order_and_one_bad_file_stops_no_other) {
  ASSERT_TRUE(loader_.load_folder(OPMUX_TEST_PLUGINS).ok());
  std::vector<std::string> loaded;
  for (const PluginReport& report : loader_.reports()) {
    if (report.state == State::loaded) loaded.push_back(report.name);
  }
  EXPECT_EQ(loader_.reports().size(), 10u);
  EXPECT_THAT(loaded, ElementsAre("disturbing", "goes", "good", "self_test_fails"))
      << "only the probe runs self tests";
}

TEST_F(LoaderTest, asks_the_gates_before_any_code_of_the_file_runs) {
  std::vector<std::string> asked;
  Loader guarded(
      registry_, {},
      {[&](const CheckedFile& file) {
         asked.push_back(file.path);
         return Status();
       },
       [](const CheckedFile&) { return Status(Code::declined, "trust.owner", "not yours"); }});
  const PluginReport report = guarded.load(path_of("good"));
  EXPECT_EQ(report.state, State::refused);
  EXPECT_EQ(report.reason, "trust.owner");
  EXPECT_EQ(report.text, "not yours");
  EXPECT_EQ(report.name, "") << "its query function was not called";
  EXPECT_THAT(asked, ElementsAre(std::filesystem::canonical(path_of("good")).string()));
}

int32_t static_query(const opmux_host*, opmux_plugin* out) {
  const auto backend = [](opmux_str name, int32_t kind) {
    opmux_backend made{};
    made.struct_size = sizeof made;
    made.name = name;
    made.kind = kind;
    made.device_type = OPMUX_DEVICE_CPU;
    made.priority = -1;
    return made;
  };
  static const opmux_backend backends[] = {
      backend(opmux_str_of("default"), OPMUX_KIND_DEFAULT),
      backend(opmux_str_of("reference"), OPMUX_KIND_REFERENCE)};
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of("built_in");
  out->backends = backends;
  out->backend_count = 2;
  out->backend_stride = sizeof(opmux_backend);
  return OPMUX_OK;
}

TEST_F(LoaderTest, registers_a_plugin_linked_into_the_program_without_its_bad_backend) {
  const PluginReport report = loader_.load_static(static_query);
  EXPECT_EQ(report.state, State::loaded);
  EXPECT_EQ(report.path, "");
  EXPECT_THAT(report.backends, ElementsAre("reference"));
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].what, "default");
  EXPECT_EQ(report.reason, "registry.name");
}

TEST_F(LoaderTest, a_plugin_without_a_valid_backend_is_refused) {
  loader_.load_static(static_query);
  const PluginReport again = loader_.load_static(static_query);
  EXPECT_EQ(again.state, State::refused);
  EXPECT_EQ(again.refused.size(), 2u);
}

}  // namespace
}  // namespace opmux::plugin
