#include "schema/schema.hpp"

#include <array>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace opmux::schema {
namespace {

std::string canonical(std::string_view text) {
  const Result<Schema> schema = parse_schema(text);
  return schema ? schema->canonical() : schema.error().to_string();
}

constexpr std::array<std::string_view, 10> kGolden{
    "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-06)",
    "rotary_embedding(inout Tensor q[..., HQ, D], inout Tensor? k[..., HKV, D], "
    "Tensor positions[...], Tensor cos_sin[P, R], enum{neox, gptj} style = neox) where R <= D",
    "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], Tensor? bias[N])",
    "gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2], enum{none, tanh} approximate = none) "
    "where H2 == 2 * H",
    "attention(out Tensor o[B, S, HQ, DV], Tensor q[B, S, HQ, D], Tensor? mask[*], "
    "bool causal = false, float? scale, int window = -1, Tensor? sink[HQ]) where HQ % B == 0",
    "acme.f(out(x) Tensor(E) y[], Tensor(E) x[], Tensor(E)[] more, int[]? sizes = [1, 2], "
    "str name = \"a\\\"b\\\\c\\n\")",
    "f(Tensor x[A, B, 4]) where (A == 1 || B == 2) && !(A == B) && A - (B - 1) > 0",
    "f(Tensor x[A, B]) where A == 1 || B == 2 && A < B",
    "f(Tensor x[A], enum{p, q} m = p, bool b = true) where (m != q || b) && -A < -(A + 1) * 2",
    "f()",
};

TEST(Schema, spells_canonical_text_as_it_was_written) {
  for (const std::string_view text : kGolden) EXPECT_EQ(canonical(text), text);
}

TEST(Schema, has_one_spelling_for_one_meaning) {
  EXPECT_EQ(canonical("  f( in Tensor  x , float e=0.50 )\n# done\n"),
            "f(Tensor x[*], float e = 0.5)");
  EXPECT_EQ(canonical("f(Tensor x[ ...,H ], float e = 1.0, int? n = none) where ((H)>(1))"),
            "f(Tensor x[..., H], float e = 1, int? n) where H > 1");
  EXPECT_EQ(canonical("f(Tensor x[A]) where (A > 1 && A < 9) && (A % 2 == 0)"),
            "f(Tensor x[A]) where A > 1 && A < 9 && A % 2 == 0");
}

TEST(Schema, hashes_a_prefix_without_what_follows_it) {
  const Schema shorter = *parse_schema("f(out Tensor y[H], Tensor x[H])");
  const Schema longer = *parse_schema("f(out Tensor y[H], Tensor x[H], int n = 0) where H > n");
  EXPECT_EQ(shorter.prefix_hash(2), longer.prefix_hash(2));
  EXPECT_NE(longer.prefix_hash(2), longer.prefix_hash(3));
  EXPECT_EQ(longer.prefix_hash(3), longer.prefix_hash(99));
}

TEST(Schema, hashes_names_types_dimensions_and_defaults) {
  std::set<uint64_t> hashes;
  const char* texts[] = {"f(Tensor x[H])",  "g(Tensor x[H])",  "f(Tensor y[H])",
                         "f(Tensor x[N])",  "f(Tensor? x[H])", "f(Tensor x[*])",
                         "f(int x = 1)",    "f(int x = 2)",    "f(int x)",
                         "f(enum{a, b} x)", "f(enum{b, a} x)", "f(Tensor(E) x[H])"};
  for (const char* text : texts) hashes.insert(parse_schema(text)->prefix_hash(1));
  EXPECT_EQ(hashes.size(), std::size(texts));
}

TEST(Schema, keeps_its_hash_from_release_to_release) {
  EXPECT_EQ(parse_schema("f()")->prefix_hash(0), 0x8989407b5423783u);
}

std::string evolution(std::string_view older, std::string_view current) {
  const Status status = check_evolution(*parse_schema(older), *parse_schema(current));
  EXPECT_EQ(status.reason(), status.ok() ? "" : "schema.difference");
  return std::string(status.message());
}

TEST(SchemaEvolution, allows_trailing_arguments_that_may_be_left_out) {
  EXPECT_EQ(evolution("f(Tensor x[H])", "f(Tensor x[H])"), "");
  EXPECT_EQ(evolution("f(Tensor x[H])", "f(Tensor x[H], Tensor? w[H], int n = 1)"), "");
}

TEST(SchemaEvolution, spells_out_the_first_difference) {
  EXPECT_EQ(evolution("f(Tensor x[H], int a)", "f(Tensor x[H], float a)"),
            "differs from the registered f: argument 2 is 'int a', registered as 'float a'");
  EXPECT_EQ(evolution("g(Tensor x)", "f(Tensor x)"),
            "differs from the registered f: it is called g");
  EXPECT_EQ(evolution("f(Tensor x, int a = 1)", "f(Tensor x)"),
            "differs from the registered f: argument 2 is 'int a = 1', the registered number of "
            "arguments is 1");
  EXPECT_EQ(evolution("f(Tensor x)", "f(Tensor x, int a)"),
            "differs from the registered f: argument 2 'int a' is missing and has no default");
  EXPECT_EQ(evolution("f(int a = 1)", "f(int a = 2)"),
            "differs from the registered f: argument 1 is 'int a = 1', registered as 'int a = 2'");
}

TEST(SchemaEvolution, lets_where_grow_only_about_added_arguments) {
  EXPECT_EQ(evolution("f(Tensor x[H]) where H > 1",
                      "f(Tensor x[H], int n = 0, Tensor? w[W]) where H > 1 && n >= 0 && W > H"),
            "");
  EXPECT_EQ(
      evolution("f(Tensor x[H])", "f(Tensor x[H]) where H > 1"),
      "differs from the registered f: it has no where clause, the registered one has where H > 1");
  EXPECT_EQ(
      evolution("f(Tensor x[H]) where H > 1", "f(Tensor x[H]) where H > 2"),
      "differs from the registered f: it has where H > 1, the registered one has where H > 2");
}

/// Removes, duplicates, swaps or replaces bytes.
std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](size_t limit) { return random() % std::max<size_t>(limit, 1); };
  constexpr std::string_view kBytes = "()[]{},?=*.+-/%!<>&|\"\\#\n HxeT01_9\xff";
  for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size()), length = below(std::min<size_t>(text.size() - at, 12));
    switch (below(4)) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, text.substr(below(text.size()), length)); break;
      case 2: text[at] = kBytes[below(kBytes.size())]; break;
      default: text.insert(at, 1, kBytes[below(kBytes.size())]);
    }
  }
  return text;
}

TEST(SchemaRobustness, survives_a_hundred_thousand_mutations) {
  std::mt19937 random(20240607);
  size_t accepted = 0;
  for (int round = 0; round < 100000; ++round) {
    const std::string text = mutated(std::string(kGolden[random() % kGolden.size()]), random);
    const Result<Schema> schema = parse_schema(text);
    if (!schema) {
      ASSERT_FALSE(schema.error().message().empty());
      continue;
    }
    ++accepted;
    const std::string spelt = schema->canonical();
    ASSERT_EQ(canonical(spelt), spelt) << text;
  }
  EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace opmux::schema
