#include "tuner/measure/cell_spec.hpp"

#include <opmux/opmux.hpp>

#include "tuner/measure/cell_call.hpp"
#include "tuner/measure/recorded_call.hpp"

namespace opmux::tuner {
namespace {

class CellSpecTest : public testing::Test {
 protected:
  Operator op(const std::string& name) { return runtime_.op(name).value(); }
  std::string cell_of(const CellSpec& spec, uint32_t threads = 1) {
    const Result<CellPlan> plan = CellPlan::make(op(spec.op), spec, threads);
    return plan ? text_of(plan->cell()) : std::string(plan.error().message());
  }

  Runtime runtime_ = Runtime::create({.backends = false}).value();
};

TEST_F(CellSpecTest, reads_sizes_and_ranges) {
  const auto dims = read_dims("N=2048,K=16");
  ASSERT_TRUE(dims);
  EXPECT_EQ(*dims, (std::vector<std::pair<std::string, int64_t>>{{"N", 2048}, {"K", 16}}));
  for (const char* const wrong : {"N", "N=", "=3", "N=3,K", "N=0", "N=-1", "N=3x", "N=3 K=4"})
    EXPECT_FALSE(read_dims(wrong)) << wrong;
  const auto range = read_over("M=1..256");
  ASSERT_TRUE(range);
  EXPECT_EQ(*range, (tune::Range{"M", 1, 256}));
  for (const char* const wrong : {"M", "M=1", "M=1..", "M=..4", "M=8..1", "=1..2", "M=0..4"})
    EXPECT_FALSE(read_over(wrong)) << wrong;
}

TEST_F(CellSpecTest, names_the_cell) {
  EXPECT_EQ(cell_of({.op = "matmul", .dtypes = {"bf16"}, .dims = {{"N", 8}, {"K", 4}, {"M", 2}}}),
            "bf16,bf16,bf16 K=4 M=2 N=8 threads=1 eager");
  EXPECT_EQ(cell_of({.op = "matmul",
                     .dtypes = {"f32"},
                     .dims = {{"N", 8}, {"K", 4}},
                     .over = tune::Range{"M", 1, 64}},
                    2),
            "f32,f32,f32 K=4 N=8 threads=2 eager");
  EXPECT_EQ(cell_of({.op = "linear",
                     .dtypes = {"bf16", "bias=f32"},
                     .dims = {{"N", 8}, {"K", 4}, {"rows", 3}},
                     .with = {"bias"}}),
            "bf16,bf16,bf16,f32 K=4 N=8 rows=3 threads=1 eager");
  // H2 follows from H.
  EXPECT_EQ(cell_of({.op = "silu_and_mul", .dtypes = {"f32"}, .dims = {{"H", 6}, {"rows", 2}}}),
            "f32,f32 H=6 H2=12 rows=2 threads=1 eager");
}

TEST_F(CellSpecTest, says_what_is_missing_or_wrong) {
  EXPECT_EQ(cell_of({.op = "matmul", .dtypes = {"f32"}, .dims = {{"N", 8}}}),
            "matmul needs sizes of K, M; write them like --dim K=64");
  EXPECT_NE(cell_of({.op = "matmul", .dims = {{"Q", 8}}}).find("no dimension 'Q'"),
            std::string::npos);
  EXPECT_NE(cell_of({.op = "softmax", .with = {"mask"}}).find("no tensor 'mask'"),
            std::string::npos);
  EXPECT_NE(cell_of({.op = "softmax", .dtypes = {"f33"}}).find("'f33' is not a dtype"),
            std::string::npos);
  EXPECT_NE(cell_of({.op = "silu_and_mul",
                     .dtypes = {"f32"},
                     .dims = {{"rows", 2}},
                     .over = tune::Range{"H", 8, 64}})
                .find("change with H"),
            std::string::npos);
}

TEST_F(CellSpecTest, calls_have_the_sizes_and_the_types_of_the_cell) {
  const CellSpec spec{.op = "linear",
                      .dtypes = {"bf16"},
                      .dims = {{"N", 300}, {"K", 200}},
                      .over = tune::Range{"rows", 1, 128}};
  const CellPlan plan = CellPlan::make(op("linear"), spec, 1).value();
  const conformance::Case c = plan.call_at(100);
  EXPECT_EQ(c.text(), "y=bf16[100,300] x=bf16[100,200] weight=bf16[300,200] bias=none");
  EXPECT_EQ(c.tensor("weight").packed.size(), 300u * 200 * 2);
  EXPECT_FALSE(c.invalid);
  EXPECT_TRUE(plan.shapes_at(100).tensor("weight").packed.empty());
}

TEST_F(CellSpecTest, constants_are_copied_until_they_exceed_the_cache) {
  const CopyLimits limits{.cold_bytes = 64, .most_bytes = 200};
  EXPECT_EQ(copies_of(0, 10, limits), 2u) << "outputs rotate";
  EXPECT_EQ(copies_of(16, 0, limits), 4u);
  EXPECT_EQ(copies_of(15, 0, limits), 5u);
  EXPECT_EQ(copies_of(16, 50, limits), 3u) << "the limit of all copies";
  EXPECT_EQ(copies_of(1000, 0, limits), 1u);
  EXPECT_EQ(copies_of(1, 0, {.cold_bytes = 1 << 20}), 64u);
}

TEST_F(CellSpecTest, a_recorded_call_is_a_cell) {
  replay::Recording recording;
  recording.op = "softmax";
  const auto tensor = [](const char* name) {
    replay::RecordedArgument argument;
    argument.name = name;
    argument.tag = ArgTag::tensor;
    argument.tensor.dtype = f32;
    argument.tensor.shape = {2, 3, 8};
    argument.tensor.strides = {24, 8, 1};
    argument.tensor.device = {OPMUX_DEVICE_CPU, 0};
    return argument;
  };
  recording.arguments = {tensor("y"), tensor("x")};
  replay::RecordedArgument& scale = recording.arguments.emplace_back();
  scale.name = "scale";
  scale.tag = ArgTag::floating;
  scale.f64 = 0.25;
  const Result<CellSpec> spec = spec_of(recording, op("softmax"));
  ASSERT_TRUE(spec) << spec.error().message();
  const CellPlan plan = CellPlan::make(op("softmax"), *spec, 1).value();
  EXPECT_EQ(text_of(plan.cell()), "f32,f32 H=8 rows=6 threads=1 eager");
  EXPECT_EQ(plan.call_at(0).text(), "y=f32[6,8] x=f32[6,8] scale=0.25");
  EXPECT_EQ(plan.shapes_at(0).text(), "y=f32[6,8] x=f32[6,8] scale=0.25");

  recording.arguments[1].tensor.strides = {48, 16, 1};
  EXPECT_FALSE(spec_of(recording, op("softmax"))) << "gaps between rows";
}

}  // namespace
}  // namespace opmux::tuner
