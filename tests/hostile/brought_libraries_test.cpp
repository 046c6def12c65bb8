#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.hpp>

#include "base/crypto.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/trust/checked_file.hpp"
#include "plugin/trust/signature.hpp"
#include "private_folder.hpp"

namespace opmux {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kBrought = "libopmux_brought.so", kDeeper = "libopmux_deeper.so";

/// Replaces a file, as an installer does; processes that use the old one keep it.
void replace(const std::string& path, const std::string& with) {
  fs::copy_file(with, path + ".new", fs::copy_options::overwrite_existing);
  fs::rename(path + ".new", path);
}

/// Writes into a file, which keeps its inode.
void overwrite(const std::string& path, const std::string& with) {
  std::ifstream from(with, std::ios::binary);
  std::ofstream(path, std::ios::binary) << from.rdbuf();
}

std::string library_in(const std::string& kind, std::string_view name) {
  return std::string(OPMUX_BROUGHT_LIBRARIES) + "/" + kind + "/" + std::string(name);
}

/// A plugin with two libraries, one of which needs the other. Each runtime is in a child process,
/// because a process keeps a library that it has loaded.
class BroughtLibraries : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.at("plugins/libs"));
    fs::copy_file(std::string(OPMUX_BROUGHT_LIBRARIES) + "/brings.so", plugin());
    for (const std::string_view name : {kBrought, kDeeper}) {
      fs::copy_file(library_in("good", name), library(name));
    }
  }

  std::string plugin() const { return folder_.at("plugins/brings.so"); }
  std::string library(std::string_view name) const {
    return folder_.at("plugins/libs/" + std::string(name));
  }
  Options options() const {
    Options options;
    options.backends = false;
    options.environment = {{std::string("OPMUX_STATE_DIR"), folder_.at("state")}};
    options.plugins.folders = {folder_.at("plugins")};
    return options;
  }
  /// Options that accept only the plugin as it is now, by signature.
  Options options_signed() const {
    const plugin::SecretKeyFile key{"tester", std::string(64, '7')};
    const std::string digest = plugin::check_file(plugin(), {}).value().digest;
    const plugin::SignatureFile signature = plugin::make_signature(key, digest).value();
    folder_.write("plugins/brings.so.sig", plugin::text_of(signature));
    folder_.write("keys/tester.pub", plugin::text_of(plugin::KeyFile{"tester", signature.key, ""}));
    Options with = options();
    with.plugins.trust = Trust::signed_only;
    with.plugins.keyring = folder_.at("keys");
    return with;
  }

  static std::string call(Runtime& runtime) {
    const auto op = runtime.op("brings.number");
    float y = -1;
    const Status status = op ? (*op)(TensorView(&y, f32, {1})) : op.error();
    if (status.ok()) return std::to_string(static_cast<int>(y));
    const std::vector<PluginInfo> all = runtime.plugins().list();
    return all.back().code + ": " + all.back().reason;
  }
  /// The number that the plugin writes in a new process, or why it was refused. `before` runs
  /// between the check of the files and their opening, `after` at the end.
  std::string number(const Options& with, const std::function<void()>& before = {},
                     const std::function<std::string()>& after = {}) const {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
      Runtime runtime = Runtime::create(with).value();
      if (before) before();
      std::string text = call(runtime);
      if (after) text += after();
      (void)!write(ends[1], text.data(), text.size());
      _exit(0);
    }
    close(ends[1]);
    std::array<char, 4096> text{};
    const ssize_t size = read(ends[0], text.data(), text.size());
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "the host survives";
    return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
  }
  size_t verdicts() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.at("state/store/verdicts")), {}));
  }

  PrivateFolder folder_;
};

TEST_F(BroughtLibraries, are_found_and_used) { EXPECT_EQ(number(options()), "11"); }

TEST_F(BroughtLibraries, are_part_of_the_digest) {
  const plugin::CheckedFile before = plugin::check_file(plugin(), {}).value();
  ASSERT_EQ(before.libraries.size(), 2u);
  EXPECT_EQ(before.libraries[0].name, kDeeper) << "each after those that it needs";
  EXPECT_NE(before.digest, before.own_digest);
  replace(library(kDeeper), library_in("other", kDeeper));
  const plugin::CheckedFile after = plugin::check_file(plugin(), {}).value();
  EXPECT_EQ(after.own_digest, before.own_digest);
  EXPECT_NE(after.digest, before.digest);
  fs::rename(folder_.at("plugins"), folder_.at("moved"));
  EXPECT_EQ(plugin::check_file(folder_.at("moved/brings.so"), {}).value().digest, after.digest);
}

TEST_F(BroughtLibraries, a_plugin_without_any_keeps_the_digest_of_its_file) {
  const plugin::CheckedFile file =
      plugin::check_file(std::string(OPMUX_HARMLESS_TWINS) + "/nan.so",
                         {.paths = plugin::TrustSettings::Paths::reported})
          .value();
  EXPECT_EQ(file.digest, file.own_digest);
}

TEST_F(BroughtLibraries, one_that_others_can_write_to_refuses_the_plugin) {
  for (const std::string_view name : {kBrought, kDeeper}) {
    ASSERT_EQ(chmod(library(name).c_str(), 0666), 0);
    EXPECT_THAT(number(options()), AllOf(StartsWith("trust.mode: "), HasSubstr(std::string(name))));
    ASSERT_EQ(chmod(library(name).c_str(), 0644), 0);
  }
  EXPECT_EQ(number(options()), "11") << "the harmless twin";
}

TEST_F(BroughtLibraries, one_that_was_replaced_after_the_trial_is_tried_again) {
  EXPECT_EQ(number(options()), "11");
  EXPECT_EQ(verdicts(), 1u);
  replace(library(kBrought), library_in("other", kBrought));
  EXPECT_EQ(number(options()), "12");
  EXPECT_EQ(verdicts(), 2u) << "the library that was not tried did not run unprobed";
  replace(library(kDeeper), library_in("crashing", kDeeper));
  EXPECT_THAT(number(options()), StartsWith("probe.crash: "));
}

TEST_F(BroughtLibraries, one_that_is_replaced_between_check_and_use_does_not_run) {
  EXPECT_EQ(number(options(), [&] { replace(library(kDeeper), library_in("other", kDeeper)); }),
            "11");
}

TEST_F(BroughtLibraries, one_that_is_written_to_between_check_and_use_refuses_the_plugin) {
  EXPECT_THAT(number(options(), [&] { overwrite(library(kDeeper), library_in("other", kDeeper)); }),
              AllOf(StartsWith("trust.changed: "), HasSubstr(std::string(kDeeper))));
}

TEST_F(BroughtLibraries, are_sealed_with_the_plugin) {
  Options with = options();
  with.plugins.sealed = true;
  const auto change = [&] { overwrite(library(kDeeper), library_in("other", kDeeper)); };
  const auto maps = [] {
    std::ifstream file("/proc/self/maps");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return std::string(text.find("/memfd:opmux:libopmux_deeper.so") != text.npos ? " sealed" : "") +
           (text.find("plugins/libs/") != text.npos ? " file" : "");
  };
  EXPECT_EQ(number(with, {}, maps), "11 sealed");
  EXPECT_THAT(number(with, change), StartsWith("trust.changed: "));
}

TEST_F(BroughtLibraries, are_part_of_the_signature) {
  if (!base::has_signatures()) GTEST_SKIP() << "built without signatures";
  const Options with = options_signed();
  EXPECT_EQ(number(with), "11");
  replace(library(kDeeper), library_in("other", kDeeper));
  EXPECT_THAT(number(with), StartsWith("trust.tampered: "));
  replace(library(kDeeper), library_in("good", kDeeper));
  EXPECT_EQ(number(with), "11") << "the harmless twin";
}

TEST_F(BroughtLibraries, are_part_of_an_allowed_digest) {
  Options with = options();
  with.plugins.trust = Trust::digest;
  with.plugins.digests = {plugin::check_file(plugin(), {}).value().digest};
  EXPECT_EQ(number(with), "11");
  replace(library(kBrought), library_in("other", kBrought));
  EXPECT_THAT(number(with), StartsWith("trust.digest: "));
}

TEST_F(BroughtLibraries, one_without_the_needed_soname_refuses_the_plugin) {
  replace(library(kBrought), library_in("nameless", kBrought));
  EXPECT_THAT(number(options()), StartsWith("elf.soname: "));
}

TEST_F(BroughtLibraries, that_need_each_other_refuse_the_plugin) {
  for (const std::string_view name : {kBrought, kDeeper}) {
    replace(library(name), library_in("circular", name));
  }
  EXPECT_THAT(number(options()), AllOf(StartsWith("elf.needed: "), HasSubstr("in turn")));
}

TEST_F(BroughtLibraries, one_for_a_kind_of_processor_refuses_the_plugin) {
  const std::string folder = folder_.at("plugins/libs/glibc-hwcaps/x86-64-v2");
  fs::create_directories(folder);
  fs::rename(library(kBrought), folder + "/" + std::string(kBrought));
  EXPECT_THAT(number(options()), StartsWith("elf.needed: "));
}

/// The run path of this plugin is an absolute folder, which the dynamic loader would search itself.
TEST_F(BroughtLibraries, in_an_absolute_run_path_are_checked_too) {
  if (!base::has_signatures()) GTEST_SKIP() << "built without signatures";
  const fs::path libraries(OPMUX_ABSOLUTE_LIBRARIES);
  fs::remove_all(libraries);
  fs::create_directories(libraries);
  for (const std::string_view name : {kBrought, kDeeper}) {
    fs::copy_file(library_in("good", name), libraries / name);
  }
  fs::remove_all(folder_.at("plugins/libs"));
  replace(plugin(), std::string(OPMUX_BROUGHT_LIBRARIES) + "/brings_absolute.so");
  const Options with = options_signed();
  EXPECT_EQ(number(with), "11");
  replace(libraries / kBrought, library_in("other", kBrought));
  EXPECT_THAT(number(with), StartsWith("trust.tampered: "));
  fs::remove_all(libraries);
}

TEST_F(BroughtLibraries, backends_of_the_installation_need_no_signature) {
  if (!base::has_signatures()) GTEST_SKIP() << "built without signatures";
  Options with = options_signed();
  with.backends = true;
  const auto backends = [&] {
    Runtime runtime = Runtime::create(with).value();
    std::string refused;
    size_t installed = 0;
    for (const PluginInfo& info : runtime.plugins().list()) {
      if (info.found_in != "installation") continue;
      ++installed;
      if (!info.loaded) refused += " " + info.path + " " + info.code;
    }
    return (installed > 0 ? " installed" : " none") + refused;
  };
  EXPECT_EQ(number(with, {}, backends), "11 installed");
}

}  // namespace
}  // namespace opmux
