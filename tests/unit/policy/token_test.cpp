#include "policy/rules/token.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace opmux::policy {
namespace {

const Subject kSimd{"norm/simd.avx2", Kind::default_, ""};
const Subject kAcme{"norm/acme.v1", Kind::vendor, "acme"};
const Subject kReference{"norm/reference.scalar", Kind::reference, ""};

bool matches(std::string_view token, const Subject& subject) {
  return Token::parse(token).value().matches(subject);
}

std::string message(std::string_view token) {
  return std::string(Token::parse(token).error().message());
}

TEST(Token, kind_words_match_their_kind_only) {
  EXPECT_TRUE(matches("default", kSimd));
  EXPECT_TRUE(matches("vendor", kAcme));
  EXPECT_TRUE(matches("reference", kReference));
  EXPECT_FALSE(matches("default", kAcme));
  EXPECT_FALSE(matches("vendor", kReference));
  EXPECT_FALSE(matches("reference", kSimd));
}

TEST(Token, flaggems_and_flagos_mean_default) {
  for (const char* alias : {"flaggems", "flagos"}) {
    EXPECT_TRUE(matches(alias, kSimd)) << alias;
    EXPECT_FALSE(matches(alias, kAcme)) << alias;
  }
}

TEST(Token, vendor_with_a_name_matches_that_vendor_only) {
  EXPECT_TRUE(matches("vendor:acme", kAcme));
  EXPECT_FALSE(matches("vendor:acme2", kAcme));
  EXPECT_FALSE(matches("vendor:acme", Subject{"norm/acme.v1", Kind::default_, "acme"}));
}

TEST(Token, impl_with_an_id_matches_exactly_that_one) {
  EXPECT_TRUE(matches("impl:norm/acme.v1", kAcme));
  EXPECT_FALSE(matches("impl:norm/acme.v2", kAcme));
  EXPECT_FALSE(matches("impl:norm/acme.v1", Subject{"norm/acme.v12", Kind::vendor, "acme"}));
}

TEST(Token, an_id_without_a_prefix_matches_too) { EXPECT_TRUE(matches("norm/acme.v1", kAcme)); }

TEST(Token, globs_match_by_id) {
  EXPECT_TRUE(matches("*/acme.*", kAcme));
  EXPECT_TRUE(matches("norm/*", kAcme));
  EXPECT_TRUE(matches("*/*", kSimd));
  EXPECT_FALSE(matches("softmax/*", kAcme));
}

TEST(Token, an_unknown_word_fails_and_names_the_nearest) {
  const Status status = Token::parse("vendr").error();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), "policy.token");
  EXPECT_NE(message("vendr").find("did you mean 'vendor'"), std::string::npos) << message("vendr");
  EXPECT_NE(message("flagoss").find("did you mean 'flagos'"), std::string::npos);
}

TEST(Token, an_unknown_prefix_keeps_what_follows_in_its_suggestion) {
  EXPECT_NE(message("vendors:acme").find("'vendor:acme'"), std::string::npos);
  EXPECT_NE(message("imp:norm/acme.v1").find("'impl:norm/acme.v1'"), std::string::npos);
}

TEST(Token, malformed_ids_and_names_fail) {
  for (const char* text : {"", "vendor:", "vendor:Acme", "vendor:a b", "impl:", "impl:norm",
                           "impl:norm/acme", "impl:Norm/acme.v1", "impl:norm/acme.*", "/", "norm/",
                           "/acme.v1", "a/b/c", "norm/acme v1", "*", "Default", " default"}) {
    EXPECT_FALSE(Token::parse(text).has_value()) << text;
  }
}

TEST(Token, a_provider_without_a_variant_suggests_all_its_variants) {
  EXPECT_NE(message("norm/acme").find("'norm/acme.*'"), std::string::npos) << message("norm/acme");
}

TEST(Token, an_operator_of_a_plugin_has_one_dot) {
  EXPECT_TRUE(matches("impl:acme.fold/acme.v1", {"acme.fold/acme.v1", Kind::vendor, "acme"}));
  EXPECT_FALSE(Token::parse("impl:a.b.c/acme.v1").has_value());
}

TEST(Glob, a_star_matches_any_run_without_a_slash) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*", "norm"));
  EXPECT_TRUE(glob_match("n*m", "norm"));
  EXPECT_TRUE(glob_match("n*m", "nm"));
  EXPECT_TRUE(glob_match("*o*r*", "norm"));
  EXPECT_FALSE(glob_match("*", "norm/acme"));
  EXPECT_FALSE(glob_match("n*1", "norm/acme.v1"));
}

TEST(Glob, prefix_and_suffix_do_not_overlap) {
  EXPECT_FALSE(glob_match("ab*ba", "aba"));
  EXPECT_TRUE(glob_match("ab*ba", "abba"));
}

TEST(Glob, without_a_star_means_equal) {
  EXPECT_TRUE(glob_match("norm", "norm"));
  EXPECT_FALSE(glob_match("norm", "norms"));
}

TEST(Glob, agrees_with_a_simple_matcher_on_all_short_texts) {
  struct Simple {
    static bool match(std::string_view p, std::string_view t) {
      if (p.empty()) return t.empty();
      if (p[0] == '*') {
        return match(p.substr(1), t) || (!t.empty() && t[0] != '/' && match(p, t.substr(1)));
      }
      return !t.empty() && p[0] == t[0] && match(p.substr(1), t.substr(1));
    }
  };
  const auto words = [](std::string_view letters) {
    std::vector<std::string> all{""};
    for (size_t begin = 0, length = 0; length < 4; ++length) {
      const size_t end = all.size();
      for (; begin < end; ++begin) {
        for (const char c : letters) all.push_back(all[begin] + c);
      }
    }
    return all;
  };
  for (const std::string& pattern : words("ab/*")) {
    for (const std::string& text : words("ab/")) {
      ASSERT_EQ(glob_match(pattern, text), Simple::match(pattern, text)) << pattern << " " << text;
    }
  }
}

TEST(Glob, does_not_slow_down_on_many_stars) {
  std::string pattern;
  for (int i = 0; i < 2000; ++i) pattern += "*a";
  // A backtracking matcher would not terminate in time.
  EXPECT_FALSE(glob_match(pattern + "*b", std::string(20000, 'a')));
}

TEST(Prefer, a_single_kind_means_that_kind_and_then_the_others) {
  using List = std::vector<std::string>;
  EXPECT_EQ(expand_prefer({"vendor"}), (List{"vendor", "default", "reference"}));
  EXPECT_EQ(expand_prefer({"default"}), (List{"default", "vendor", "reference"}));
  EXPECT_EQ(expand_prefer({"reference"}), (List{"reference", "default", "vendor"}));
  EXPECT_EQ(expand_prefer({"flagos"}), (List{"flagos", "vendor", "reference"}));
}

TEST(Prefer, longer_lists_and_other_tokens_stay_as_they_are) {
  using List = std::vector<std::string>;
  EXPECT_EQ(expand_prefer({"vendor:acme"}), (List{"vendor:acme"}));
  EXPECT_EQ(expand_prefer({"reference", "vendor"}), (List{"reference", "vendor"}));
}

}  // namespace
}  // namespace opmux::policy
