#include "schema/standard_schemas.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schema/schema.hpp"

namespace opmux::schema {
namespace {

const StandardSchema* find(std::string_view name) {
  const auto all = standard_schemas();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StandardSchema& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

TEST(StandardSchemas, all_parse_to_the_operator_of_their_file_name) {
  for (const StandardSchema& standard : standard_schemas()) {
    const Result<Schema> schema = parse_schema(standard.text);
    ASSERT_TRUE(schema.has_value()) << standard.name << ": " << schema.error().to_string();
    EXPECT_EQ(schema->name, standard.name);
  }
}

TEST(StandardSchemas, include_the_operators_that_backends_implement) {
  for (const char* name : {"rms_norm", "fused_add_rms_norm", "layer_norm", "silu_and_mul",
                           "gelu_and_mul", "rotary_embedding", "softmax", "matmul", "linear",
                           "embedding", "reshape_and_cache", "attention", "paged_attention",
                           "topk_softmax", "fused_moe", "linear_w8a8", "linear_w4a16", "sample"}) {
    EXPECT_NE(find(name), nullptr) << name;
  }
}

TEST(StandardSchemas, have_one_sentence_of_summary_each_and_are_sorted) {
  const auto all = standard_schemas();
  for (const StandardSchema& standard : all) {
    EXPECT_TRUE(standard.summary.ends_with('.')) << standard.name;
    EXPECT_EQ(standard.summary.find_first_of("#\n"), std::string_view::npos) << standard.name;
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(StandardSchemas, mean_what_their_canonical_text_says) {
  ASSERT_NE(find("gelu_and_mul"), nullptr);
  EXPECT_EQ(parse_schema(find("gelu_and_mul")->text)->canonical(),
            "gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2], enum{none, tanh} approximate = "
            "none) where H2 == 2 * H");
  EXPECT_EQ(
      parse_schema(find("layer_norm")->text)->canonical(),
      "layer_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], Tensor? bias[H], "
      "float eps = 1e-05)");
  EXPECT_EQ(parse_schema(find("rotary_embedding")->text)->canonical(),
            "rotary_embedding(inout Tensor q[..., HQ, D], inout Tensor? k[..., HKV, D], "
            "Tensor positions[...], Tensor cos_sin[P, R], enum{neox, gptj} style = neox) "
            "where R <= D && R % 2 == 0");
}

}  // namespace
}  // namespace opmux::schema
