#include "policy/files/platform.hpp"

#include <filesystem>
#include <fstream>

#include "drafts.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A folder in the place of /dev.
struct DeviceFolder : TemporaryFolder {
  void add(const std::string& name) const { write_file(at(name), ""); }
};

TEST(Truth, a_platform_is_chosen_by_the_devices_that_are_present) {
  const DeviceFolder devices;
  EXPECT_THAT(policy::present_platforms(devices.path()).names, ElementsAre("cpu"));
  devices.add("nvidiactl");
  EXPECT_THAT(policy::present_platforms(devices.path()).names, ElementsAre("cuda"));
  EXPECT_EQ(policy::present_platforms(devices.path()).sign, devices.path() + "/nvidiactl");
  devices.add("kfd");
  devices.add("davinci_manager");
  EXPECT_THAT(policy::present_platforms(devices.path()).names,
              ElementsAre("ascend", "rocm", "cuda"));
}

TEST(Truth, every_platform_of_a_device_has_a_file_that_applies) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OPMUX_TEST_PLATFORMS)) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    Stage stage;
    const Status status = stage.runtime.policy().load(text, entry.path().filename().string());
    EXPECT_TRUE(status.ok()) << entry.path() << ": " << status.message();
  }
  EXPECT_EQ(files, 11u);
  const DeviceFolder devices;
  for (const char* const name : {"davinci_manager", "mxcd", "mtgpu.0", "gcuctl", "iluvatar0",
                                 "xpuctrl", "mkfd", "kfd", "nvidiactl"}) {
    devices.add(name);
  }
  const auto present = policy::present_platforms(devices.path()).names;
  EXPECT_EQ(present.size(), 9u);
  for (const std::string& name : present) {
    EXPECT_TRUE(std::filesystem::exists(std::string(OPMUX_TEST_PLATFORMS) + "/" + name + ".yaml"));
  }
}

TEST(Truth, the_chosen_platform_says_why_and_a_named_one_wins) {
  const DeviceFolder devices;
  policy::Mode mode = policy::mode_of({.device_folder = devices.path()}, {}).value();
  const auto cpu = policy::choose_platform(mode, OPMUX_TEST_PLATFORMS);
  EXPECT_EQ(cpu->shown.value, "cpu");
  EXPECT_EQ(cpu->shown.origin, "built-in, auto: no accelerator in " + devices.path());
  devices.add("davinci_manager");
  devices.add("nvidiactl");
  const auto ascend = policy::choose_platform(mode, OPMUX_TEST_PLATFORMS);
  EXPECT_EQ(ascend->path, std::string(OPMUX_TEST_PLATFORMS) + "/ascend.yaml");
  EXPECT_THAT(ascend->shown.origin, HasSubstr("/davinci_manager; also present: cuda"));
  EXPECT_THAT(ascend->warning, HasSubstr("ascend is used"));
  EXPECT_EQ(policy::choose_platform(mode, devices.path() + "/none")->shown.key, "")
      << "nothing is said where no platforms are installed";
  const auto nothing = policy::choose_platform(mode, devices.path());
  EXPECT_EQ(nothing->shown.value, "none");
  EXPECT_THAT(nothing->shown.origin, HasSubstr("no platform file ascend.yaml is installed"));
  EXPECT_EQ(nothing->path, "");

  mode.platform = "maca";
  mode.platform_origin = "OPMUX_PLATFORM (environment)";
  EXPECT_EQ(policy::choose_platform(mode, OPMUX_TEST_PLATFORMS)->path,
            std::string(OPMUX_TEST_PLATFORMS) + "/maca.yaml");
  mode.platform = "none";
  EXPECT_EQ(policy::choose_platform(mode, OPMUX_TEST_PLATFORMS)->path, "");
  mode.platform = "ascent";
  EXPECT_THAT(std::string(policy::choose_platform(mode, OPMUX_TEST_PLATFORMS).error().message()),
              HasSubstr("did you mean 'ascend'"));
}

/// On an Ascend machine, vendors' kernels run first for its tensors and not for those of the CPU.
TEST(Truth, a_platform_file_prefers_on_its_devices_only) {
  const auto chosen = [](const std::string& platform, Device device) {
    Options options = bare();
    options.sources.platform = std::string(OPMUX_TEST_PLATFORMS) + "/" + platform + ".yaml";
    Stage stage(std::move(options));
    for (const auto& [name, kind] :
         {std::pair{"common", Kind::default_}, {"maker", Kind::vendor}}) {
      for (const int32_t type : {device.type}) {
        registry::Batch batch = batch_of(name, {draft("rms_norm", "v1")});
        batch.backend.kind = kind;
        batch.backend.device_type = type;
        batch.implementations[0].caps.device_type = 0;
        EXPECT_TRUE(stage.runtime.core().registry().add(batch, true).refused.empty());
      }
    }
    const Rows t;
    CallReport report;
    EXPECT_TRUE(stage.runtime.op("rms_norm")
                    ->with(report)(TensorView(const_cast<float*>(t.out), f32, {2, 8}, device),
                                   TensorView(t.in, f32, {2, 8}, device))
                    .ok());
    return report.implementation;
  };
  const Device npu{OPMUX_DEVICE_EXT_DEV, 0}, cuda{OPMUX_DEVICE_CUDA, 0};
  EXPECT_EQ(chosen("cpu", npu), "rms_norm/common.v1");
  EXPECT_EQ(chosen("ascend", npu), "rms_norm/maker.v1");
  EXPECT_EQ(chosen("ascend", Device{}), "rms_norm/common.v1");
  EXPECT_EQ(chosen("maca", cuda), "rms_norm/common.v1");
}

TEST(Truth, settings_show_the_platform) {
  Options options = bare();
  options.sources.platform = std::string(OPMUX_TEST_PLATFORMS) + "/rocm.yaml";
  const std::string path = options.sources.platform;
  EXPECT_EQ(setting(Stage(std::move(options)).runtime, "platform"), path + " <- Options (code)");
  EXPECT_EQ(setting(Stage(bare({{"OPMUX_PLATFORM", "none"}})).runtime, "platform"),
            "none <- OPMUX_PLATFORM (environment)");
}

}  // namespace
}  // namespace opmux::test
