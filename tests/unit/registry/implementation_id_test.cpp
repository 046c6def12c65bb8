#include "registry/implementation/implementation_id.hpp"
#include "schema/schema.hpp"

#include <gtest/gtest.h>

namespace opmux::registry {
namespace {

TEST(Names, are_lower_case_words_of_at_most_64_bytes) {
  EXPECT_TRUE(schema::valid_name("rms_norm2"));
  EXPECT_TRUE(schema::valid_name(std::string(64, 'a')));
  for (const std::string& bad :
       {std::string(), std::string("Rms"), std::string("2d"), std::string("_x"), std::string("a-b"),
        std::string("a b"), std::string("a\n"), std::string(65, 'a')}) {
    EXPECT_FALSE(schema::valid_name(bad)) << bad;
  }
}

TEST(Names, of_providers_are_no_policy_tokens) {
  for (const Kind kind : {Kind::default_, Kind::vendor, Kind::reference}) {
    EXPECT_TRUE(valid_provider("acme", kind));
    for (const char* token : {"default", "vendor", "flaggems", "flagos"}) {
      EXPECT_FALSE(valid_provider(token, kind)) << token;
    }
  }
}

TEST(Names, reference_and_own_are_for_providers_of_kind_reference) {
  for (const char* name : {"reference", "own"}) {
    EXPECT_TRUE(valid_provider(name, Kind::reference));
    EXPECT_FALSE(valid_provider(name, Kind::vendor));
    EXPECT_FALSE(valid_provider(name, Kind::default_));
  }
}

TEST(Names, of_points_hold_any_number_of_dots) {
  EXPECT_TRUE(schema::valid_dotted_name("warm"));
  EXPECT_TRUE(schema::valid_dotted_name("a.b.c"));
  EXPECT_FALSE(schema::valid_dotted_name(".b"));
  EXPECT_FALSE(schema::valid_dotted_name("a."));
  EXPECT_FALSE(schema::valid_dotted_name("a..b"));
}

TEST(Names, an_implementation_id_has_three_parts) {
  const auto id = parse_implementation_id("acme.swish/acme.v1");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->op, "acme.swish");
  EXPECT_EQ(id->provider, "acme");
  EXPECT_EQ(id->variant, "v1");
}

TEST(Names, a_malformed_implementation_id_is_refused_with_the_form_it_should_have) {
  for (const char* bad : {"", "rms_norm", "rms_norm/acme", "rms_norm/acme.", "/acme.v1",
                          "rms_norm/acme.v1.x", "rms_norm/Acme.v1", "a.b.c/acme.v1"}) {
    const auto id = parse_implementation_id(bad);
    ASSERT_FALSE(id) << bad;
    EXPECT_EQ(id.error().reason(), "registry.name");
  }
  EXPECT_EQ(parse_implementation_id("x").error().message(),
            "'x' is not an implementation id: the form is operator/provider.variant, each part "
            "[a-z][a-z0-9_]* of at most 64 bytes");
}

TEST(Names, of_kinds_are_the_words_of_policies) {
  EXPECT_EQ(name_of(Kind::default_), "default");
  EXPECT_EQ(name_of(Kind::vendor), "vendor");
  EXPECT_EQ(name_of(Kind::reference), "reference");
}

}  // namespace
}  // namespace opmux::registry
