#include "stage.hpp"

#include <opmux/typed.hpp>

#include <filesystem>
#include <fstream>

namespace opmux::test {
namespace {

struct Copy : Stage {
  explicit Copy(Variables variables = {}) : Stage(bare(std::move(variables))), op(define(kCopy)) {
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/acme.one", .kind = Kind::vendor, .vendor = "acme"});
    add({.id = "copy/zeta.one", .kind = Kind::vendor, .vendor = "zeta", .priority = 90});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  std::string run() {
    const Rows rows;
    const std::string cold = ran_by([&] { (void)op(rows.y, rows.x); });
    EXPECT_EQ(ran_by([&] { (void)op(rows.y, rows.x); }), cold);
    return cold;
  }
  Operator op;
};

TEST(Defects, the_word_false_enables) {
  for (const char* no : {"0", "false", "off", ""}) {
    EXPECT_EQ(Copy(Variables{{"OPMUX_DISABLE", no}}).run(), "copy/fast.one") << no;
    Copy strict(Variables{{"OPMUX_STRICT", no}});
    strict.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
    EXPECT_EQ(strict.run(), "copy/fast.one copy/acme.one") << no;
  }
  for (const char* yes : {"1", "true", "on"}) {
    EXPECT_EQ(Copy(Variables{{"OPMUX_DISABLE", yes}}).run(), "copy/plain.one") << yes;
    Copy strict(Variables{{"OPMUX_STRICT", yes}});
    strict.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
    EXPECT_EQ(strict.run(), "copy/fast.one") << yes;
  }
  for (const char* neither : {"False", "no", "2", " 0", "disabled"}) {
    const auto made = Runtime::create(bare({{"OPMUX_DISABLE", neither}}));
    ASSERT_FALSE(made) << neither;
    EXPECT_EQ(made.error().reason(), "environment.value");
  }
}

TEST(Defects, a_backend_switched_off_by_the_word_false_runs) {
  const auto who = [](const char* value) {
    const Runtime runtime = Runtime::create(bare({{"OPMUX_BACKEND_REFERENCE", value}})).value();
    const Rows rows;
    CallReport report;
    (void)runtime.op("rms_norm")->with(report)(rows.y, rows.x, rows.w);
    return report.implementation;
  };
  EXPECT_EQ(who("true"), "rms_norm/reference.scalar");
  EXPECT_EQ(who("false"), "");
  EXPECT_EQ(who("off"), "");
}

TEST(Defects, a_switch_exists_that_nothing_reads) {
  EXPECT_EQ(Copy().run(), "copy/fast.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_PREFER", "vendor"}}).run(), "copy/acme.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_PREFER", "vendor:zeta,vendor"}}).run(), "copy/zeta.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_PER_OP", "copy=reference|default"}}).run(), "copy/plain.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_PREFER", "vendor"}, {"OPMUX_DENY_VENDORS", "acme"}}).run(),
            "copy/zeta.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_PREFER", "vendor"}, {"OPMUX_ALLOW_VENDORS", "zeta"}}).run(),
            "copy/zeta.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_DISABLE", "1"}}).run(), "copy/plain.one");
  const auto recording = Runtime::create(bare({{"OPMUX_RECORD", "/records"}}));
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->replay().recordings().folder, "/records");
  // A variable that names a missing file prevents the start.
  for (const auto& [name, value] : Variables{{"OPMUX_CONFIG", "/nowhere/opmux.yaml"},
                                             {"OPMUX_LOCKFILE", "/nowhere/opmux.lock"},
                                             {"OPMUX_MODE", "static"},
                                             {"OPMUX_MODE", "hot_reload"},
                                             {"OPMUX_PLATFORM", "desktop"}}) {
    EXPECT_FALSE(Runtime::create(bare({{name, value}}))) << name;
  }
  EXPECT_EQ(Copy(Variables{{"OPMUX_MODE", "dynamic"}}).run(), "copy/fast.one");
  EXPECT_EQ(Copy(Variables{{"OPMUX_MODE", "auto"}}).run(), "copy/fast.one");
}

Status own_body(Out y, In) {
  *static_cast<float*>(y->data()) = 7;
  return {};
}

TEST(Defects, dispatch_is_silently_dead_while_tests_pass) {
  const Rows rows;
  const auto run = [&](Variables variables, bool expect_disabled) {
    Stage stage(bare(std::move(variables)));
    EXPECT_EQ(stage.runtime.disabled(), expect_disabled);
    const Dispatchable<Status(Out, In)> scan(stage.runtime, "scan(out Tensor y[*], Tensor x[*])",
                                             own_body);
    EXPECT_TRUE(scan.status().ok()) << scan.status().to_string();
    stage.add({.id = "scan/fast.one", .kind = Kind::default_});
    const Operator op = stage.runtime.op("scan").value();
    EXPECT_EQ(op.explain(rows.y, rows.x).note.empty(), !expect_disabled);
    const_cast<float&>(rows.out[0]) = 0;
    const std::string ran = ran_by([&] { EXPECT_TRUE(scan(rows.y, rows.x).ok()); });
    CallReport report;
    EXPECT_TRUE(op.with(report)(rows.y, rows.x).ok());
    EXPECT_EQ(report.implementation, ran.empty() ? "scan/own.body" : ran);
    EXPECT_EQ(rows.out[0], ran.empty() ? 7 : 0);
    return report.implementation;
  };
  EXPECT_EQ(run({}, false), "scan/fast.one");
  EXPECT_EQ(run({{"OPMUX_DISABLE", "1"}}, true), "scan/own.body");
}

#ifdef OPMUX_TEST_SIMD_LIBRARY
TEST(Defects, an_import_error_of_one_backend_removes_all) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("opmux_defects_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "aaa_broken.so") << "not a library";
  fs::create_symlink(OPMUX_TEST_SIMD_LIBRARY, folder / "simd.so");
  Options options = bare();
  options.plugins.folders = {folder.string()};
  Runtime runtime = Runtime::create(std::move(options)).value();
  fs::remove_all(folder);
  size_t loaded = 0, refused = 0;
  for (const PluginInfo& plugin : runtime.plugins().list()) ++(plugin.loaded ? loaded : refused);
  EXPECT_EQ(loaded, 2u) << "the reference and the valid plugin";
  EXPECT_EQ(refused, 1u);
  const Rows rows;
  CallReport report;
  EXPECT_TRUE(runtime.op("rms_norm")->with(report)(rows.y, rows.x, rows.w).ok());
  EXPECT_EQ(report.implementation.substr(0, 14), "rms_norm/simd.");
  CallReport other;
  const PolicyScope scope{runtime, {.require = {"reference"}}};
  EXPECT_TRUE(runtime.op("softmax")->with(other)(rows.y, rows.x).ok());
  EXPECT_EQ(other.implementation, "softmax/reference.scalar");
}
#endif

}  // namespace
}  // namespace opmux::test
