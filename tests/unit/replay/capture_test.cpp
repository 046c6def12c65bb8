#include "replay/capture.hpp"

#include <array>

#include "../schema/argument_list.hpp"

namespace opmux::replay {
namespace {

using schema::ArgumentList;
using schema::schema_of;

struct Captured {
  std::optional<std::vector<RecordedArgument>> arguments;

  Captured(std::string_view schema_text, const ArgumentList& list, const CaptureRules& rules) {
    const schema::Schema schema = schema_of(schema_text);
    schema::Arguments normal;
    const Status status = list.normalise(schema, normal);
    EXPECT_TRUE(status.ok()) << status.to_string();
    arguments = capture(schema, normal, rules);
  }
  const RecordedTensor& tensor(size_t i) const { return arguments->at(i).tensor; }
};

constexpr std::string_view kCopy = "copy(out(x) Tensor y[N], Tensor x[N], Tensor? w[N], int n = 3)";

struct TwoTensors {
  std::array<float, 8> y{}, x{1, 2, 3, 4, 5, 6, 7, 8};
  ArgumentList apart() {
    return std::move(ArgumentList().tensor({y.data(), f32, {8}}).tensor({x.data(), f32, {8}}));
  }
  ArgumentList together() {
    return std::move(ArgumentList().tensor({x.data(), f32, {8}}).tensor({x.data(), f32, {8}}));
  }
};

TEST(Capture, keeps_digests_and_only_if_asked_elements) {
  TwoTensors tensors;
  const ArgumentList list = tensors.apart();
  const Captured redacted(kCopy, list, {});
  EXPECT_EQ(redacted.tensor(0).contents, Contents::written);
  EXPECT_EQ(redacted.tensor(1).contents, Contents::known);
  EXPECT_EQ(redacted.tensor(1).sha256.size(), 64u);
  EXPECT_TRUE(redacted.tensor(1).bytes.empty());
  EXPECT_EQ(redacted.arguments->at(2).tag, ArgTag::none);
  EXPECT_EQ(redacted.arguments->at(3).i64, 3);
  const Captured whole(kCopy, list, {.inputs = true});
  EXPECT_EQ(whole.tensor(1).bytes.size(), 32u);
  EXPECT_EQ(whole.tensor(1).sha256, redacted.tensor(1).sha256);
}

TEST(Capture, does_not_trust_what_may_have_been_written) {
  TwoTensors tensors;
  const ArgumentList list = tensors.together();
  const Captured spoilt(kCopy, list, {.inputs = true});
  EXPECT_EQ(spoilt.tensor(1).contents, Contents::unknown);
  EXPECT_EQ(spoilt.tensor(0).same_as, "x");
  const Captured kept(kCopy, list, {.inputs = true, .spoilt = false});
  EXPECT_EQ(kept.tensor(1).contents, Contents::known);
  const ArgumentList updated = std::move(ArgumentList().tensor({tensors.x.data(), f32, {8}}));
  const Captured inout("add_one(inout Tensor x[N])", updated, {.inputs = true});
  EXPECT_EQ(inout.tensor(0).contents, Contents::unknown);
  EXPECT_TRUE(inout.tensor(0).bytes.empty());
}

TEST(Capture, skips_large_tensors_and_device_memory) {
  TwoTensors tensors;
  const ArgumentList list = tensors.apart();
  const Captured small(kCopy, list, {.inputs = true, .most = 31});
  EXPECT_EQ(small.tensor(1).contents, Contents::large);
  EXPECT_TRUE(small.tensor(1).sha256.empty());
  const Device there{OPMUX_DEVICE_CUDA, 0};
  const ArgumentList far = std::move(ArgumentList()
                                         .tensor({tensors.y.data(), f32, {8}, there})
                                         .tensor({tensors.x.data(), f32, {8}, there}));
  const Captured device(kCopy, far, {.inputs = true});
  EXPECT_EQ(device.tensor(1).contents, Contents::elsewhere);
}

TEST(Capture, does_not_record_lists_of_tensors) {
  TwoTensors tensors;
  const TensorView x{tensors.x.data(), f32, {8}};
  const ArgumentList list =
      std::move(ArgumentList().tensor({tensors.y.data(), f32, {8}}).tensors({x}));
  EXPECT_FALSE(Captured("cat(out Tensor y[N], Tensor[] parts)", list, {}).arguments);
}

}  // namespace
}  // namespace opmux::replay
