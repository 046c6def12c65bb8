#include "registry/implementation/architecture.hpp"

#include "drafts.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

constexpr Device kFirst{OPMUX_DEVICE_CUDA, 0}, kSecond{OPMUX_DEVICE_CUDA, 1};

TEST(Truth, architectures_are_compared_number_by_number) {
  using registry::compare_dotted;
  EXPECT_LT(compare_dotted("8.6", "8.10"), 0);
  EXPECT_GT(compare_dotted("10", "9.9.9"), 0);
  EXPECT_EQ(compare_dotted("9", "9.0.0"), 0);
  EXPECT_GT(compare_dotted("9.0.1", "9"), 0);
  EXPECT_LT(compare_dotted("1", "99999999999999999999999"), 0);
}

/// Two devices: number 0 has architecture 8.6, number 1 has 9.0. copy/old.v1 supports up to 8.9,
/// copy/new.v1 from 9.0 on, copy/any.v1 everything.
struct TruthOfArchitectures : testing::Test {
  void SetUp() override {
    add("old", 300, "", "8.9");
    add("new", 200, "9.0", "");
    add("any", 100, "", "");
  }
  void add(const std::string& backend, int priority, const std::string& lowest,
           const std::string& highest) {
    registry::Batch batch = batch_of(backend, {draft("copy", "v1")});
    batch.backend.device_type = OPMUX_DEVICE_CUDA;
    batch.backend.architecture = [this](int32_t id) -> std::string {
      ++asked;
      return id < 2 ? (id == 0 ? "8.6" : "9.0") : says;
    };
    batch.implementations[0].caps.device_type = 0;
    batch.implementations[0].caps.min_arch = lowest;
    batch.implementations[0].caps.max_arch = highest;
    batch.implementations[0].priority = priority;
    ASSERT_TRUE(stage.runtime.core().registry().add(batch, true).refused.empty());
  }
  std::string runs_on(Device device) {
    CallReport report;
    const Status status = op.with(report)(TensorView(rows.out, f32, {2, 8}, device),
                                          TensorView(rows.in, f32, {2, 8}, device));
    return status.ok() ? report.implementation : std::string(status.reason());
  }
  Candidate explained(const std::string& id, Device device) {
    return candidate(op.explain(TensorView(rows.out, f32, {2, 8}, device),
                                TensorView(rows.in, f32, {2, 8}, device)),
                     id);
  }

  int asked = 0;
  std::string says;
  Stage stage;
  Operator op = stage.define(kCopy);
  Rows rows;
};

TEST_F(TruthOfArchitectures, each_device_runs_what_supports_its_architecture) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(runs_on(kFirst), "copy/old.v1");
    EXPECT_EQ(runs_on(kSecond), "copy/new.v1");
  }
  EXPECT_LE(asked, 6) << "once per backend and device";
}

TEST_F(TruthOfArchitectures, a_refusal_is_explained) {
  const Candidate old = explained("copy/old.v1", kSecond);
  EXPECT_EQ(old.code, "caps.arch");
  EXPECT_EQ(old.reason, "the architecture of cuda:1 must be at most 8.9, is 9.0");
  EXPECT_EQ(explained("copy/new.v1", kFirst).reason,
            "the architecture of cuda:0 must be at least 9.0, is 8.6");
}

TEST_F(TruthOfArchitectures, a_device_without_an_architecture_meets_no_range) {
  EXPECT_EQ(runs_on({OPMUX_DEVICE_CUDA, 2}), "copy/any.v1");
  EXPECT_THAT(explained("copy/old.v1", {OPMUX_DEVICE_CUDA, 2}).reason,
              HasSubstr("must be at most 8.9, and neither its backend nor the program states one"));
  says = "gfx90a";
  EXPECT_THAT(explained("copy/old.v1", {OPMUX_DEVICE_CUDA, 3}).reason,
              HasSubstr("is gfx90a, which is not a number"));
}

TEST_F(TruthOfArchitectures, lists_say_that_no_device_fits) {
  add("distant", 50, "99.0", "");
  for (const OperatorInfo& info : stage.runtime.list()) {
    if (info.name != "copy") continue;
    for (const ImplementationInfo& one : info.implementations) {
      EXPECT_EQ(one.available, one.id != "copy/distant.v1") << one.id << ": " << one.reason;
    }
  }
}

TEST(Truth, arch_of_the_cpu_is_met_only_if_the_program_states_one) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/far.x", .priority = 300, .caps = Caps{}.arch("99.0", "")});
  stage.add({.id = "copy/early.x", .priority = 200, .caps = Caps{}.arch("", "0.1")});
  stage.add({.id = "copy/plain.x", .priority = 100});
  const Rows t;
  const auto call = [&] { return ran_by([&] { ASSERT_TRUE(op(t.y, t.x).ok()); }); };
  EXPECT_EQ(call(), "copy/plain.x");
  EXPECT_EQ(candidate(op.explain(t.y, t.x), "copy/far.x").code, "caps.arch");
  EXPECT_EQ(candidate(op.explain(t.y, t.x), "copy/early.x").code, "caps.arch");

  ASSERT_TRUE(stage.runtime.plugins().set_architecture({}, "0.0.9").ok());
  EXPECT_EQ(call(), "copy/early.x") << "decisions are made again";
  ASSERT_TRUE(stage.runtime.plugins().set_architecture({}, "100").ok());
  EXPECT_EQ(call(), "copy/far.x");
  EXPECT_EQ(stage.runtime.plugins().set_architecture({}, "sm_90").reason(), "device.architecture");
  EXPECT_EQ(stage.runtime.plugins().set_architecture({}, "").reason(), "device.architecture");
}

TEST(Truth, devices_are_parsed_as_they_are_named) {
  for (const Device device : {Device{}, Device{OPMUX_DEVICE_CUDA, 3}, Device{777, 1}}) {
    EXPECT_EQ(parse_device(name_of(device)), device);
  }
  EXPECT_EQ(parse_device("cuda"), (Device{OPMUX_DEVICE_CUDA, 0}));
  for (const char* const wrong : {"", ":", "cuda:", "cuda:-1", "cuda:1x", "cuda:1:2", "devicex:0",
                                  "device:0", "device0:0", "gpu:0"}) {
    EXPECT_FALSE(parse_device(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace opmux::test
