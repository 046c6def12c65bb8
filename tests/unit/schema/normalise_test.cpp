#include <gtest/gtest.h>

#include "tests/unit/schema/argument_list.hpp"

namespace opmux::schema {
namespace {

void expect_normalise_refuses(std::string_view schema, const ArgumentList& list,
                              std::string_view reason, std::string_view message) {
  const Schema parsed = schema_of(schema);
  Arguments out;
  const Status status = list.normalise(parsed, out);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), reason);
  EXPECT_EQ(status.message(), message);
}

TEST(Normalise, fills_what_was_left_out) {
  const Schema schema = schema_of(kRmsNorm);
  ArgumentList list;
  list.f32({2, 4}).f32({2, 4});
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.count, 4u);
  EXPECT_EQ(out.tags[2], ArgTag::none);
  EXPECT_FALSE(out.values[2].tensor->present());
  EXPECT_EQ(out.tags[3], ArgTag::floating);
  EXPECT_EQ(out.values[3].f64, 1e-6);
}

TEST(Normalise, fills_defaults_of_every_type) {
  const Schema schema = schema_of(
      R"(f(int a = 3, bool b = true, enum{p, q} c = q, str d = "hi", int[] e = [4, 5], int? g))");
  Arguments out;
  ASSERT_TRUE(ArgumentList().normalise(schema, out).ok());
  EXPECT_EQ(out.values[0].i64, 3);
  EXPECT_EQ(out.tags[1], ArgTag::logical);
  EXPECT_EQ(out.values[1].i64, 1);
  EXPECT_EQ(out.tags[2], ArgTag::enumeration);
  EXPECT_EQ(out.values[2].i64, 1);
  EXPECT_EQ(out.values[3].list->size, 2u);
  EXPECT_EQ(static_cast<const int64_t*>(out.values[4].list->data)[1], 5);
  EXPECT_EQ(out.tags[5], ArgTag::none);
}

TEST(Normalise, takes_none_as_absent_or_as_the_default) {
  const Schema schema = schema_of("f(Tensor? w, float eps = 0.5, float? scale = 2)");
  ArgumentList list;
  list.none().none().none();
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.tags[0], ArgTag::none);
  EXPECT_EQ(out.values[1].f64, 0.5);
  EXPECT_EQ(out.tags[2], ArgTag::none);
}

TEST(Normalise, takes_a_view_that_is_not_present_as_an_absent_scalar) {
  const Schema schema = schema_of("f(float? scale, float eps = 0.5, int? n)");
  ArgumentList list;
  list.tensor(TensorView()).tensor(TensorView()).tensor(TensorView());
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.tags[0], ArgTag::none);
  EXPECT_EQ(out.tags[1], ArgTag::floating);
  EXPECT_EQ(out.values[1].f64, 0.5);
  EXPECT_EQ(out.tags[2], ArgTag::none);
}

TEST(Normalise, takes_a_view_that_is_not_present_as_absent) {
  const Schema schema = schema_of(kRmsNorm);
  ArgumentList list;
  list.tensor(TensorView()).f32({2, 4}).tensor(TensorView());
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.tags[0], ArgTag::none);
  EXPECT_EQ(out.tags[2], ArgTag::none);
}

TEST(Normalise, turns_an_int_into_a_float) {
  const Schema schema = schema_of("f(float a)");
  ArgumentList list;
  list.integer(3);
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.tags[0], ArgTag::floating);
  EXPECT_EQ(out.values[0].f64, 3.0);
}

TEST(Normalise, turns_an_enum_word_into_its_position) {
  const Schema schema = schema_of("f(enum{none, tanh} mode)");
  ArgumentList list;
  list.text("tanh");
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.tags[0], ArgTag::enumeration);
  EXPECT_EQ(out.values[0].i64, 1);
}

TEST(Normalise, makes_every_true_bool_one) {
  const Schema schema = schema_of("f(bool b)");
  ArgumentList list;
  list.integer(7, ArgTag::logical);
  Arguments out;
  ASSERT_TRUE(list.normalise(schema, out).ok());
  EXPECT_EQ(out.values[0].i64, 1);
}

TEST(Normalise, suggests_the_nearest_enum_word) {
  expect_normalise_refuses("f(enum{none, tanh} mode)", ArgumentList().text("tahn"),
                           "schema.enum_word",
                           "f: 'mode' is one of none, tanh, not 'tahn'; did you mean 'tanh'?");
  for (const int64_t position : {-1, 2}) {
    expect_normalise_refuses(
        "f(enum{none, tanh} mode)", ArgumentList().integer(position, ArgTag::enumeration),
        "schema.enum_word",
        "f: 'mode' has 2 words, position " + std::to_string(position) + " was given");
  }
}

TEST(Normalise, refuses_too_many_and_too_few) {
  expect_normalise_refuses("f(int a)", ArgumentList().integer(1).integer(2),
                           "schema.argument_count", "f: takes at most 1 arguments, 2 were given");
  expect_normalise_refuses("f(int a, float b)", ArgumentList().integer(1),
                           "schema.argument_missing", "f: argument 2 'float b' is missing");
  expect_normalise_refuses("f(int a)", ArgumentList().none(), "schema.argument_missing",
                           "f: argument 1 'int a' is missing");
}

TEST(Normalise, names_what_was_given_and_what_is_wanted) {
  expect_normalise_refuses("f(int a)", ArgumentList().floating(1.5), "schema.argument_type",
                           "f: argument 1 'int a' wants an int, a float was given");
  expect_normalise_refuses("f(Tensor x)", ArgumentList().integer(1), "schema.argument_type",
                           "f: argument 1 'Tensor x[*]' wants a tensor, an int was given");
  expect_normalise_refuses("f(bool b)", ArgumentList().integer(1), "schema.argument_type",
                           "f: argument 1 'bool b' wants a bool, an int was given");
  expect_normalise_refuses("f(str s)", ArgumentList().f32({}), "schema.argument_type",
                           "f: argument 1 'str s' wants a string, a tensor was given");
}

}  // namespace
}  // namespace opmux::schema
