// Parts of opmux that read tensors with the CPU: none of them may touch memory of a device.
#include "protected_stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct WithFolder {
  TemporaryFolder folder;
};

/// A runtime that writes every call, and calls that fail, to files.
class DeviceReaders : protected WithFolder, public ProtectedDevices {
 public:
  DeviceReaders()
      : ProtectedDevices([this] {
          Options options = bare({{"OPMUX_DUMP", "*"}});
          options.record.folder = folder.at("calls");
          options.record.inputs = true;
          return options;
        }()) {}

  Operator scale = op("protected.scale");
  OnDevice x = numbers(), y = zeros();
};

TEST_F(DeviceReaders, the_shadow_check_skips_calls_on_a_stream) {
  Policy policy;
  policy.shadow = {.every = 1};
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  const Operator silu = op("silu_and_mul");
  const OnDevice half = put(std::vector<float>(4));
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(runs(silu, half.view, x.view), "silu_and_mul/protected.kernel");
  const ShadowReport report = stage.runtime.health().report().shadow;
  ASSERT_EQ(report.implementations.size(), 1u);
  EXPECT_EQ(report.implementations[0].compared, 0u);
  ASSERT_EQ(report.implementations[0].skipped.size(), 1u);
  EXPECT_EQ(report.implementations[0].skipped[0].reason, "stream");
  EXPECT_GT(report.implementations[0].skipped[0].calls, 0u);
}

TEST_F(DeviceReaders, a_dump_counts_calls_of_a_device_and_writes_none) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(runs(scale, y.view, x.view), kOld);
  const RecordState state = stage.runtime.replay().recordings();
  EXPECT_EQ(state.written, 0u);
  EXPECT_GE(state.left_out, 3u);
}

TEST_F(DeviceReaders, a_failed_call_is_recorded_without_its_elements) {
  driver(0).refuse("old");
  ASSERT_EQ(runs(scale, y.view, x.view), kAny);
  const RecordState state = stage.runtime.replay().recordings();
  EXPECT_EQ(state.written, 1u);
  EXPECT_EQ(state.failed, 0u);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.at("calls"))) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(text, HasSubstr("elsewhere"));
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(DeviceReaders, transforms_copy_no_tensor_of_a_device) {
  Policy policy;
  policy.transforms = {"contiguous", "widen"};
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  const int64_t shape[] = {2, 2}, strides[] = {4, 2};
  const TensorView gaps(x.memory.handle(), f32, shape, strides, x.memory.device());
  const OnDevice small = put(std::vector<float>(4));
  EXPECT_EQ(runs(scale, small.view, gaps), "dispatch.no_candidate");
  const Candidate refused = candidate(scale.explain(small.view, gaps), kAny);
  EXPECT_EQ(refused.code, "caps.contiguous");
  EXPECT_THAT(refused.reason, HasSubstr("x"));
  const TensorView halves(x.memory.handle(), f16, {2, 4}, x.memory.device());
  const TensorView out(y.memory.handle(), f16, {2, 4}, y.memory.device());
  EXPECT_EQ(candidate(scale.explain(out, halves), kAny).code, "caps.dtype");
}

TEST_F(DeviceReaders, the_reference_does_not_run_for_tensors_of_a_device) {
  const Operator silu = op("silu_and_mul");
  const OnDevice half = put(std::vector<float>(4));
  Policy policy;
  policy.prefer = {"reference"};
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  EXPECT_EQ(runs(silu, half.view, x.view), "silu_and_mul/protected.kernel");
}

}  // namespace
}  // namespace opmux::test
