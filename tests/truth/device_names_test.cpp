#include "drafts.hpp"
#include "plugin/probe/verdict.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

TEST(Truth, every_device_type_of_dlpack_has_a_name) {
  const std::vector<std::pair<int32_t, std::string>> all{
      {1, "cpu"},      {2, "cuda"},       {3, "cuda_host"}, {4, "opencl"},
      {7, "vulkan"},   {8, "metal"},      {9, "vpi"},       {10, "rocm"},
      {12, "ext_dev"}, {11, "rocm_host"}, {14, "oneapi"},   {13, "cuda_managed"},
      {15, "webgpu"},  {16, "hexagon"},   {17, "maia"},     {18, "trn"}};
  for (const auto& [type, name] : all) {
    EXPECT_EQ(name_of(Device{type, 1}), name + ":1");
    EXPECT_EQ(parse_device(name + ":1"), (Device{type, 1}));
  }
}

TEST(Truth, aliases_of_device_types_are_read) {
  EXPECT_EQ(parse_device("npu:2"), (Device{OPMUX_DEVICE_EXT_DEV, 2}));
  EXPECT_EQ(parse_device("privateuseone"), (Device{OPMUX_DEVICE_EXT_DEV, 0}));
  EXPECT_EQ(parse_device("xpu"), (Device{OPMUX_DEVICE_ONEAPI, 0}));
  EXPECT_EQ(parse_device("mps"), (Device{OPMUX_DEVICE_METAL, 0}));
  EXPECT_EQ(parse_device("hip:1"), (Device{OPMUX_DEVICE_ROCM, 1}));
}

TEST(Truth, a_vendor_names_its_device_type_once) {
  EXPECT_EQ(name_of(Device{401, 0}), "device401:0");
  ASSERT_TRUE(name_device_type(401, "harp").ok());
  EXPECT_TRUE(name_device_type(401, "harp").ok());
  EXPECT_EQ(name_of(Device{401, 3}), "harp:3");
  EXPECT_EQ(parse_device("harp:3"), (Device{401, 3}));
  EXPECT_EQ(parse_device("device401:3"), (Device{401, 3}));
  EXPECT_TRUE(name_device_type(OPMUX_DEVICE_EXT_DEV, "npu").ok()) << "it is its name already";
  for (const auto& [type, name] :
       std::vector<std::pair<int32_t, std::string>>{{402, "harp"},
                                                    {401, "lute"},
                                                    {402, "cuda"},
                                                    {402, "xpu"},
                                                    {20, "lute"},
                                                    {70000, "lute"},
                                                    {402, "Lute"},
                                                    {402, ""},
                                                    {402, "device402"}}) {
    EXPECT_EQ(name_device_type(type, name).reason(), "device.name") << type << name;
  }
}

TEST(Truth, rules_know_the_device_types_of_vendors_and_aliases) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  const auto add = [&](const std::string& backend, int32_t type, const std::string& name) {
    registry::Batch batch = batch_of(backend, {draft("copy", "v1"), draft("copy", "v2")});
    batch.backend.device_type = type;
    batch.backend.device_name = name;
    for (auto& one : batch.implementations) one.caps.device_type = 0;
    return stage.runtime.core().registry().add(batch, true);
  };
  ASSERT_TRUE(add("flute", 410, "flute").refused.empty());
  ASSERT_TRUE(add("ascend", OPMUX_DEVICE_EXT_DEV, "").refused.empty());
  EXPECT_EQ(reasons_of(add("liar", 411, "flute")), std::vector<std::string>{"device.name"});
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules:\n"
                        "  - {op: copy, when: 'device(x) == \"flute\"', prefer: [copy/flute.v2]}\n"
                        "  - {op: copy, when: 'device(x) == \"npu\"', prefer: [copy/ascend.v2]}\n",
                        "test")
                  .ok());
  Rows rows;
  const auto runs_on = [&](Device device) {
    CallReport report;
    EXPECT_TRUE(op.with(report)(TensorView(rows.out, f32, {2, 8}, device),
                                TensorView(rows.in, f32, {2, 8}, device))
                    .ok());
    return report.implementation;
  };
  EXPECT_EQ(runs_on({410, 0}), "copy/flute.v2");
  EXPECT_EQ(runs_on({OPMUX_DEVICE_EXT_DEV, 1}), "copy/ascend.v2");
  const Explanation why = op.explain(TensorView(rows.out, f32, {2, 8}, {410, 1}),
                                     TensorView(rows.in, f32, {2, 8}, {410, 1}));
  EXPECT_EQ(why.device, "flute:1");
  EXPECT_EQ(candidate(why, "copy/ascend.v1").reason, "device(y) must be ext_dev, is flute");
}

TEST(Truth, a_verdict_keeps_the_device_name_of_a_backend) {
  plugin::ProbeResult verdict;
  verdict.manifest.name = "p";
  verdict.manifest.backends.push_back({"acme", "acme", 2, 300, 0, {{"copy", "v1"}}, "anvil"});
  const auto read = plugin::parse_verdict(plugin::to_text(verdict));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->manifest.backends.at(0).device_name, "anvil");
  EXPECT_EQ(*read, verdict);
}

}  // namespace
}  // namespace opmux::test
