#include <array>
#include <string>

#include <gtest/gtest.h>

#include "schema/schema.hpp"

namespace opmux::schema {
namespace {

Schema parsed(std::string_view text) {
  Result<Schema> result = parse_schema(text);
  EXPECT_TRUE(result.has_value()) << text << "\n" << result.error().to_string();
  return result ? *result : Schema{};
}

/// Expects a failure whose message starts with `place` and contains `part`.
void expect_error(std::string_view text, std::string_view place, std::string_view reason,
                  std::string_view part) {
  const Result<Schema> result = parse_schema(text);
  ASSERT_FALSE(result.has_value()) << text;
  const Status error = result.error();
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.reason(), reason) << text << "\n" << error.to_string();
  const std::string start = std::string(place) + ": ";
  EXPECT_TRUE(error.message().starts_with(start)) << place << "\n" << error.to_string();
  EXPECT_NE(error.message().find(part), std::string_view::npos) << error.to_string();
}

TEST(SchemaParser, reads_arguments_dimensions_and_defaults) {
  const Schema schema = parsed(
      "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6)");
  EXPECT_EQ(schema.name, "rms_norm");
  ASSERT_EQ(schema.args.size(), 4u);
  EXPECT_EQ(schema.args[0].access, Access::out);
  EXPECT_TRUE(schema.args[0].leading);
  EXPECT_EQ(schema.args[1].access, Access::in);
  EXPECT_TRUE(schema.args[2].optional);
  EXPECT_FALSE(schema.args[2].leading);
  EXPECT_EQ(schema.args[2].dims[0].name, 0);
  EXPECT_EQ(schema.args[3].default_value->f64, 1e-6);
  EXPECT_EQ(schema.dims, std::vector<std::string>{"H"});
  EXPECT_TRUE(schema.has_leading());
  EXPECT_EQ(schema.arg_index("weight"), 2);
  EXPECT_EQ(schema.arg_index("wait"), -1);
  EXPECT_EQ(schema.dim_index("H"), 0);
  EXPECT_EQ(schema.dim_index("N"), -1);
}

TEST(SchemaParser, tells_any_shape_from_rank_zero) {
  const Schema schema = parsed("f(Tensor a, Tensor b[*], Tensor c[], Tensor d[...])");
  EXPECT_TRUE(schema.args[0].any_shape);
  EXPECT_TRUE(schema.args[1].any_shape);
  EXPECT_FALSE(schema.args[2].any_shape);
  EXPECT_TRUE(schema.args[2].dims.empty());
  EXPECT_FALSE(schema.args[2].leading);
  EXPECT_TRUE(schema.args[3].leading);
}

TEST(SchemaParser, reads_every_type) {
  const Schema schema = parsed(
      "f(Tensor a, Tensor[] b, int c, float d, bool e, enum{p, q} g, str h, int[] i, int[]? j)");
  const ArgType types[] = {ArgType::tensor,   ArgType::tensor_list, ArgType::integer,
                           ArgType::floating, ArgType::boolean,     ArgType::enumeration,
                           ArgType::string,   ArgType::int_list,    ArgType::int_list};
  ASSERT_EQ(schema.args.size(), std::size(types));
  for (size_t i = 0; i < std::size(types); ++i) EXPECT_EQ(schema.args[i].type, types[i]) << i;
  EXPECT_EQ(schema.args[5].words, (std::vector<std::string>{"p", "q"}));
  EXPECT_TRUE(schema.args[8].optional);
}

TEST(SchemaParser, reads_a_default_of_every_type) {
  const Schema schema = parsed(
      R"(f(int a = -1, float b = 2, bool c = true, enum{none, tanh} d = tanh, str e = "x\"y\n",)"
      R"( int[] g = [1, -2], int[] h = [], float? i = none))");
  EXPECT_EQ(schema.args[0].default_value->i64, -1);
  EXPECT_EQ(schema.args[1].default_value->f64, 2.0);
  EXPECT_EQ(schema.args[2].default_value->i64, 1);
  EXPECT_EQ(schema.args[3].default_value->i64, 1);
  EXPECT_EQ(schema.args[4].default_value->text, "x\"y\n");
  EXPECT_EQ(schema.args[5].default_value->list, (std::vector<int64_t>{1, -2}));
  EXPECT_TRUE(schema.args[6].default_value->list.empty());
  EXPECT_FALSE(schema.args[7].default_value.has_value());
}

TEST(SchemaParser, keeps_list_defaults_reachable_after_copies_and_moves) {
  Schema moved;
  {
    Schema original = parsed(R"(f(str a = "word", int[] b = [7, 8]))");
    const Schema copy = original;
    moved = std::move(original);
    EXPECT_NE(copy.args[0].default_value->span.data, moved.args[0].default_value->span.data);
  }
  const opmux_list text = moved.args[0].default_value->span;
  EXPECT_EQ(std::string_view(static_cast<const char*>(text.data), text.size), "word");
  const opmux_list list = moved.args[1].default_value->span;
  ASSERT_EQ(list.size, 2u);
  EXPECT_EQ(static_cast<const int64_t*>(list.data)[1], 8);
}

TEST(SchemaParser, ties_dtypes_by_variable) {
  const Schema schema = parsed("f(out Tensor(E) y, Tensor(E) x, Tensor(I)? i, Tensor(E)[] more)");
  EXPECT_EQ(schema.dtype_variables, (std::vector<std::string>{"E", "I"}));
  EXPECT_EQ(schema.args[0].dtype_variable, 0);
  EXPECT_EQ(schema.args[2].dtype_variable, 1);
  EXPECT_EQ(schema.args[3].dtype_variable, 0);
  EXPECT_EQ(schema.args[3].type, ArgType::tensor_list);
}

TEST(SchemaParser, resolves_an_alias_that_stands_later) {
  const Schema schema = parsed("f(out(x) Tensor y[N], Tensor w[N], Tensor x[N])");
  EXPECT_EQ(schema.args[0].alias_of, 2);
  EXPECT_EQ(schema.args[0].access, Access::out);
}

TEST(SchemaParser, lets_an_optional_tensor_stand_before_a_required_one) {
  const Schema schema = parsed("f(inout Tensor q[D], inout Tensor? k[D], const Tensor p)");
  EXPECT_TRUE(schema.args[1].optional);
  EXPECT_TRUE(schema.args[2].constant);
}

TEST(SchemaParser, accepts_a_vendors_name_comments_and_no_arguments) {
  EXPECT_EQ(parsed("# about\nacme.swish # more\n(\n)\n").name, "acme.swish");
}

TEST(SchemaParser, carries_twenty_four_arguments_of_eight_dimensions) {
  std::string text = "f(";
  for (int arg = 0; arg < 24; ++arg) {
    text += (arg ? ", Tensor a" : "Tensor a") + std::to_string(arg) + "[";
    for (int dim = 0; dim < 8; ++dim) {
      text += (dim ? ", D" : "D") + std::to_string((arg + dim) % 32);
    }
    text += "]";
  }
  EXPECT_EQ(parsed(text + ")").dims.size(), 31u);
  expect_error(text + ", Tensor b)", "1:" + std::to_string(text.size() + 3), "schema.limit",
               "at most 24 arguments");
}

TEST(SchemaParser, splits_where_at_its_outer_ands) {
  const Schema schema = parsed("f(Tensor x[A, B]) where A == 1 && (B > 2 && A < B || B == 7)");
  ASSERT_EQ(schema.where.size(), 2u);
  EXPECT_EQ(schema.where[0].text, "A == 1");
  EXPECT_EQ(schema.where[1].text, "B > 2 && A < B || B == 7");
}

TEST(SchemaParser, names_the_column_of_an_unknown_type) {
  expect_error("f(Tensr x)", "1:3", "schema.unknown_type", "'Tensr'; did you mean 'Tensor'?");
  expect_error("f(\n  Tensor x,\n  flaot e)", "3:3", "schema.unknown_type", "'float'");
  expect_error("f(ouy Tensor x)", "1:3", "schema.unknown_type", "'out'");
}

TEST(SchemaParser, says_what_it_expected_where) {
  expect_error("", "1:1", "schema.syntax", "expected an operator's name, found the end");
  expect_error("f", "1:2", "schema.syntax", "expected '(' after the operator's name");
  expect_error("f(", "1:3", "schema.syntax", "expected a type, found the end");
  expect_error("f(Tensor)", "1:9", "schema.syntax", "expected a name for the argument, found ')'");
  expect_error("f(Tensor x", "1:11", "schema.syntax", "expected ',' or ')'");
  expect_error("f(Tensor x,)", "1:12", "schema.syntax", "expected a type, found ')'");
  expect_error("f(Tensor x[H)", "1:13", "schema.syntax", "expected ',' or ']'");
  expect_error("f(Tensor x[H,])", "1:14", "schema.syntax", "expected a dimension");
  expect_error("f(Tensor x[*, H])", "1:13", "schema.syntax", "expected ']' after '*'");
  expect_error("f(Tensor( x)", "1:11", "schema.name", "expected a dtype variable");
  expect_error("f(Tensor(E x)", "1:12", "schema.syntax", "expected ')' after a dtype variable");
  expect_error("f(int[ x)", "1:8", "schema.syntax", "expected ']'");
  expect_error("f(enum a)", "1:8", "schema.syntax", "expected '{' after 'enum'");
  expect_error("f(enum{} a)", "1:8", "schema.syntax", "expected a word of the enum");
  expect_error("f(enum{a b} c)", "1:10", "schema.syntax", "expected '}'");
  expect_error("f(out() Tensor y)", "1:7", "schema.syntax", "same memory");
  expect_error("acme.(Tensor x)", "1:6", "schema.syntax", "expected a name after '.'");
  expect_error("f(Tensor x) when H", "1:13", "schema.syntax", "expected 'where' or the end");
  expect_error("f(Tensor x[H]) where H > 1 H", "1:28", "schema.syntax",
               "expected an operator or the end, found 'H'");
}

TEST(SchemaParser, refuses_characters_that_mean_nothing) {
  expect_error("f(Tensor x) $", "1:13", "schema.syntax", "unexpected '$'");
  expect_error("f(Tensor \xc3\xa9)", "1:10", "schema.syntax", "unexpected byte 0xc3");
  expect_error(std::string_view("f\0(", 3), "1:2", "schema.syntax", "unexpected byte 0x00");
  expect_error("f(int a = 4x)", "1:12", "schema.syntax", "expected the end of a number");
  expect_error("f(str a = \"open)", "1:11", "schema.syntax", "expected a closing");
  expect_error("f(str a = \"a\\q\")", "1:11", "schema.syntax", "backslash");
}

TEST(SchemaParser, refuses_malformed_names) {
  expect_error("Rms(Tensor x)", "1:1", "schema.name", "lower-case");
  expect_error("_f(Tensor x)", "1:1", "schema.name", "lower-case");
  expect_error("acme.Swish(Tensor x)", "1:6", "schema.name", "lower-case");
  expect_error("f(Tensor X)", "1:10", "schema.name", "lower-case");
  expect_error("f(Tensor x[h])", "1:12", "schema.name", "capital letters");
  expect_error("f(Tensor x[H_2])", "1:12", "schema.name", "capital letters");
  expect_error("f(enum{A} x)", "1:8", "schema.name", "lower-case");
  expect_error("f(Tensor where)", "1:10", "schema.name", "keyword");
  expect_error(std::string(65, 'f') + "(Tensor x)", "1:1", "schema.name", "at most 64");
  EXPECT_EQ(parsed(std::string(64, 'f') + "(Tensor x)").name.size(), 64u);
}

TEST(SchemaParser, refuses_duplicate_names) {
  expect_error("f(Tensor x, int x)", "1:17", "schema.duplicate_name", "called 'x'");
  expect_error("f(enum{a, b, a} x)", "1:14", "schema.duplicate_name", "'a' twice");
}

TEST(SchemaParser, refuses_an_output_after_an_input) {
  expect_error("f(Tensor x, out Tensor y)", "1:13", "schema.argument_order",
               "'y' follows the input 'x'");
  expect_error("f(Tensor x, inout Tensor y)", "1:13", "schema.argument_order",
               "outputs must come first");
}

TEST(SchemaParser, refuses_a_required_argument_after_a_default) {
  expect_error("f(int a = 1, int b)", "1:18", "schema.argument_order",
               "'b' needs a default because 'a'");
  EXPECT_EQ(parsed("f(int a = 1, Tensor? b, float? c)").args.size(), 3u);
}

TEST(SchemaParser, refuses_access_that_makes_no_sense) {
  expect_error("f(out int a)", "1:3", "schema.access", "written but is not a tensor");
  expect_error("f(out const Tensor a)", "1:3", "schema.access", "const");
  expect_error("f(const int a)", "1:3", "schema.access", "const");
  expect_error("f(out(y) Tensor y)", "1:7", "schema.access", "share memory");
  expect_error("f(out(a) Tensor y, int a)", "1:7", "schema.access", "not with 'a'");
  expect_error("f(out(xx) Tensor y, Tensor x)", "1:7", "schema.unknown_name", "called 'xx'");
}

TEST(SchemaParser, refuses_misplaced_shapes) {
  expect_error("f(Tensor x[H, ...])", "1:15", "schema.shape", "at the start of a shape");
  expect_error("f(Tensor x[..., ...])", "1:17", "schema.shape", "once");
  expect_error("f(int x[H])", "1:8", "schema.shape", "not a single tensor");
  expect_error("f(Tensor[] x[H])", "1:13", "schema.shape", "not a single tensor");
}

TEST(SchemaParser, refuses_bad_defaults) {
  expect_error("f(int a = x)", "1:11", "schema.default", "expected an integer as default");
  expect_error("f(int a = 1.5)", "1:11", "schema.default", "expected an integer");
  expect_error("f(float a = true)", "1:13", "schema.default", "expected a number");
  expect_error("f(bool a = 1)", "1:12", "schema.default", "expected true or false");
  expect_error("f(str a = word)", "1:11", "schema.default", "double quotes");
  expect_error("f(int[] a = 1)", "1:13", "schema.default", "[1, 2]");
  expect_error("f(Tensor a = 1)", "1:14", "schema.default", "write 'Tensor?'");
  expect_error("f(int a = none)", "1:11", "schema.default", "expected an integer");
  expect_error("f(enum{none, tanh} a = tahn)", "1:24", "schema.enum_word", "did you mean 'tanh'?");
}

TEST(SchemaParser, refuses_what_exceeds_a_limit) {
  expect_error("f(Tensor x[A, B, C, D, E, F, G, H, I])", "1:36", "schema.limit", "8 dimensions");
  expect_error("f(int a = 9223372036854775808)", "1:11", "schema.limit", "64 bits");
  EXPECT_EQ(parsed("f(int a = -9223372036854775808)").args[0].default_value->i64, INT64_MIN);
  expect_error("f(float a = 1e999)", "1:13", "schema.limit", "does not fit in a float");
  expect_error(std::string(70000, ' '), "1:1", "schema.limit", "at most 65536 bytes");
  std::string many = "f(";
  for (int i = 0; i < 33; ++i) {
    many += (i ? ", Tensor a" : "Tensor a") + std::to_string(i) + "[D" + std::to_string(i) + "]";
  }
  many.replace(many.find("a0[D0]"), 6, "a0[D0, E1, E2, E3, E4, E5, E6, E7]");
  many.replace(many.find("a1[D1]"), 6, "a1[D1, G1, G2, G3, G4, G5, G6, G7]");
  expect_error(many, "1:" + std::to_string(many.find("[D18]") + 2), "schema.limit",
               "32 named dimensions");
}

TEST(SchemaParser, checks_names_and_types_in_where) {
  expect_error("f(Tensor x[HQ]) where HKV > 0 && HR == 1", "1:23", "schema.unknown_name", "'HKV'");
  expect_error("f(Tensor x[HQ]) where HR == 1", "1:23", "schema.unknown_name",
               "did you mean 'HQ'?");
  expect_error("f(Tensor x[H]) where H", "1:22", "schema.where_type", "expected a condition");
  expect_error("f(Tensor x[H]) where H + 1", "1:24", "schema.where_type", "expected a condition");
  expect_error("f(Tensor x[H]) where H && H > 1", "1:22", "schema.where_type", "'H' is an integer");
  expect_error("f(Tensor x[H]) where 1 < H < 3", "1:24", "schema.where_type", "an integer");
  expect_error("f(Tensor x[H]) where !H", "1:23", "schema.where_type", "a condition");
  expect_error("f(Tensor x[H]) where x == 1", "1:22", "schema.where_type",
               "cannot be used in where");
  expect_error("f(float x) where x == 1", "1:18", "schema.where_type", "cannot be used in where");
  expect_error("f(enum{a, b} m) where m == c", "1:28", "schema.enum_word", "expected one of a, b");
  expect_error("f(enum{a, b} m) where m + 1 == 2", "1:23", "schema.where_type", "is an enum");
  expect_error("f(Tensor x[H]) where", "1:21", "schema.syntax",
               "expected a value such as a name or a number, found the end");
  expect_error("f(Tensor x[H]) where (H > 1", "1:28", "schema.syntax", "expected ')'");
}

TEST(SchemaParser, limits_depth_and_size_of_where) {
  const std::string start = "f(Tensor x[H]) where ";
  expect_error(start + std::string(50000, '('), "1:55", "schema.limit", "nested more than 32 deep");
  expect_error(start + std::string(1000, '!'), "1:55", "schema.limit", "nested more than 32 deep");
  std::string chain = "H";
  for (int i = 0; i < 200; ++i) chain += " + H";
  expect_error(start + chain + " > 1", "1:276", "schema.limit", "more than 128 names");
  expect_error(start + "H < 9223372036854775808", "1:26", "schema.limit", "64 bits");
  expect_error(start + "H < 99999999999999999999", "1:26", "schema.limit", "64 bits");
  EXPECT_EQ(parsed(start + "H > -9223372036854775808").where[0].text, "H > -9223372036854775808");
  EXPECT_TRUE(parsed(start + std::string(32, '(') + "H > 1" + std::string(32, ')')).where.size());
}

TEST(SchemaParser, names_parts_of_conditions_that_where_lacks) {
  const auto refused = [](std::string_view condition, std::string_view column,
                          std::string_view message) {
    expect_error("f(Tensor x[H], enum{a, b} m, bool c) where " + std::string(condition),
                 "1:" + std::string(column), "schema.syntax", message);
  };
  refused("\"a\" == m", "44", "where has no strings");
  refused("H in [1, 2]", "46", "where has no lists");
  refused("[1] == H", "44", "where has no lists");
  refused("c && rank(x) == 2", "49", "where has no functions");
  refused("m == a(1)", "49", "where has no functions");
  refused("c ? H > 1 : H > 2", "46", "where has no '?'");
  refused("H > 1 and c", "50", "'and' is not an operator of conditions; write &&");
  refused("H = 1", "46", "'=' is not an operator of conditions; write ==");
  refused("H > 1.5", "48", "expected a value such as a name or a number, found '1.5'");
  refused("H > 8 // 2", "51", "expected a value such as a name or a number, found '/'");
}

TEST(SchemaParser, keeps_names_in_where_that_are_operators_elsewhere) {
  const Schema schema = parsed(
      "f(int is, bool not, bool null, enum{in, true, if} m) where is > 1 && !not && null == true "
      "&& "
      "(m == in || m == true || m != if)");
  ASSERT_EQ(schema.where.size(), 4u);
  EXPECT_EQ(schema.where[0].text, "is > 1");
  EXPECT_EQ(schema.where[1].text, "!not");
  EXPECT_EQ(schema.where[2].text, "null == true");
  EXPECT_EQ(schema.where[3].text, "m == in || m == true || m != if");
  const auto holds = [&](int64_t word) {
    return schema.where[3].holds({}, std::array<int64_t, 4>{0, 0, 0, word});
  };
  EXPECT_TRUE(holds(0));
  EXPECT_TRUE(holds(1));
  EXPECT_FALSE(holds(2));
}

TEST(SchemaParser, places_errors_in_where_behind_comments_and_newlines) {
  expect_error("f(Tensor x[H])  # 'H'\n  where H > 1  # && H\n    && K > 2", "3:8",
               "schema.unknown_name", "'K'");
  expect_error("f(Tensor x[H])\nwhere H > 1\n && (H", "3:7", "schema.syntax", "expected ')'");
}

}  // namespace
}  // namespace opmux::schema
