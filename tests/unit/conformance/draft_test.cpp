#include "conformance/draft.hpp"

#include <cmath>
#include <set>

#include <opmux/opmux.hpp>

#include "conformance/shaper.hpp"

namespace opmux::conformance {
namespace {

Runtime make_runtime() { return Runtime::create({.backends = false}).value(); }

class ConformanceDraft : public testing::Test {
 protected:
  Case draw(const std::string& op, uint64_t number) {
    infos_ = runtime_.op(op)->arguments();
    const Shaper& shaper = find_shaper(op);
    Draft draft(op, infos_, 1, number);
    if (shaper.shape != nullptr) shaper.shape(draft);
    draft.make_tensors();
    if (shaper.fill != nullptr) shaper.fill(draft);
    return draft.finish();
  }
  Runtime runtime_ = make_runtime();
  std::vector<ArgumentInfo> infos_;
};

TEST_F(ConformanceDraft, draws_the_same_case_for_the_same_numbers) {
  EXPECT_EQ(draw("rms_norm", 7).text(), draw("rms_norm", 7).text());
  EXPECT_EQ(draw("rms_norm", 7).tensor("x").packed, draw("rms_norm", 7).tensor("x").packed);
  EXPECT_NE(draw("rms_norm", 7).tensor("x").packed, draw("rms_norm", 8).tensor("x").packed);
}

TEST_F(ConformanceDraft, generates_cases_that_are_difficult_for_kernels) {
  std::set<std::string> seen;
  for (uint64_t number = 0; number < 1000; ++number) {
    const Case c = draw("rms_norm", number);
    const CaseTensor& x = c.tensor("x");
    const int64_t width = x.shape.back();
    seen.insert(name_of(x.dtype));
    seen.insert("rank " + std::to_string(x.shape.size()));
    seen.insert("tail " + std::to_string(width % 16));
    if (x.elements() == 0) seen.insert("empty");
    if (width == 1) seen.insert("one");
    if (width > 2048) seen.insert("wide");
    if (c.rows() > 100) seen.insert("tall");
    if (x.elements() > 16384) seen.insert("large");
    if (x.strides.back() > 1 && width > 1) seen.insert("inner stride");
    if (x.extent() > x.elements()) seen.insert("gaps");
    if (c.rows() > 1 && x.extent() < x.elements()) seen.insert("broadcast");
    if (x.shape.size() > 2 && x.strides[0] < x.strides[1]) seen.insert("permuted");
    seen.insert(x.at_end ? "at the end" : x.skip > 0 ? "unaligned" : "aligned");
    seen.insert(c.has("weight") ? "weight" : "no weight");
    if (c.has("weight") && c.tensor("weight").dtype != x.dtype) seen.insert("mixed");
    for (const double value : x.values) {
      if (std::isnan(value)) seen.insert("nan");
      if (value != 0 && std::abs(value) < 0x1p-126) seen.insert("subnormal");
    }
  }
  for (int tail = 0; tail < 16; ++tail) EXPECT_TRUE(seen.contains("tail " + std::to_string(tail)));
  for (const char* kind :
       {"f32",       "f16",       "bf16",     "rank 1",     "rank 2",    "rank 3",  "rank 4",
        "rank 5",    "empty",     "one",      "wide",       "tall",      "large",   "inner stride",
        "gaps",      "broadcast", "permuted", "at the end", "unaligned", "aligned", "weight",
        "no weight", "mixed",     "nan",      "subnormal"}) {
    EXPECT_TRUE(seen.contains(kind)) << kind;
  }
}

TEST_F(ConformanceDraft, knows_every_standard_operator) {
  for (const OperatorInfo& op : runtime_.list()) {
    EXPECT_EQ(find_shaper(op.name).op, op.name);
  }
}

TEST_F(ConformanceDraft, writes_a_case_as_explain_reads_it) {
  for (uint64_t number = 0; number < 50; ++number) {
    const std::string text = draw("rotary_embedding", number).text();
    EXPECT_THAT(text, testing::StartsWith("q="));
    EXPECT_THAT(text, testing::HasSubstr(" positions=i"));
  }
}

TEST_F(ConformanceDraft, breaks_the_rules_of_checked_data_now_and_then) {
  int invalid = 0;
  for (uint64_t number = 0; number < 500; ++number) {
    const Case c = draw("rotary_embedding", number);
    bool outside = false;
    for (const double p : c.tensor("positions").values) {
      outside |= p < 0 || p >= static_cast<double>(c.tensor("cos_sin").shape[0]);
    }
    EXPECT_EQ(outside, c.invalid) << number;
    invalid += c.invalid ? 1 : 0;
  }
  EXPECT_GT(invalid, 3);
  EXPECT_LT(invalid, 50);
}

TEST_F(ConformanceDraft, keeps_the_sizes_of_a_typical_call) {
  infos_ = runtime_.op("matmul")->arguments();
  const Shaper& shaper = find_shaper("matmul");
  Draft draft("matmul", infos_, 1, 3);
  draft.fix_dim("M", 300);
  draft.fix_dim("N", 200);
  draft.fix_dim("K", 100);
  shaper.shape(draft);
  draft.leading().clear();
  draft.make_typical();
  draft.make_tensors();
  const Case c = draft.finish();
  EXPECT_EQ(c.tensor("a").shape, (std::vector<int64_t>{300, 100}));
  EXPECT_EQ(c.tensor("y").shape, (std::vector<int64_t>{300, 200}));
  EXPECT_EQ(c.tensor("b").strides, (std::vector<int64_t>{200, 1}));
  double sum = 0;
  for (const double value : c.tensor("b").values) sum += value * value;
  EXPECT_NEAR(sum / 20'000, 1, 0.1) << "a normal distribution";
}

}  // namespace
}  // namespace opmux::conformance
