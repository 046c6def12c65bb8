#include "dispatch/call/thread_block.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// Calls an operator whose kernel keeps the scalars that it was given.
struct ConversionTest : testing::Test {
  ConversionTest() {
    stage.add({.id = "scale/one.x", .kind = Kind::default_, .run = [this](CallFrame& call) {
                 factor = call.c().args[2].value.f64;
                 factor_tag = static_cast<ArgTag>(call.c().args[2].tag);
                 bias_tag = static_cast<ArgTag>(call.c().args[3].tag);
                 bias = call.c().args[3].value.f64;
                 mode = call.i64(4);
                 return Outcome::ok;
               }});
  }
  /// Number of slow calls of this thread while `call` runs 10 times, after it ran twice.
  template <class Call>
  uint64_t slow_calls(Call&& call) {
    call();
    call();
    const uint64_t before = dispatch::own_thread_block().cold_sequence;
    for (int i = 0; i < 10; ++i) call();
    return dispatch::own_thread_block().cold_sequence - before;
  }

  Stage stage;
  const Operator op = stage.define(
      "scale(out Tensor y[..., H], Tensor x[..., H], float factor = 2, float? bias, "
      "enum{near, far} mode = near)");
  const Rows t;
  double factor = 0, bias = 0;
  int64_t mode = -1;
  ArgTag factor_tag = ArgTag::none, bias_tag = ArgTag::none;
};

TEST_F(ConversionTest, an_int_for_a_float_is_kept) {
  int64_t given = 0;
  EXPECT_EQ(slow_calls([&] {
              ASSERT_TRUE(op(t.y, t.x, ++given).ok());
              ASSERT_EQ(factor, static_cast<double>(given));
              ASSERT_EQ(factor_tag, ArgTag::floating);
            }),
            0u);
  ASSERT_TRUE(op(t.y, t.x, 0.5).ok());
  EXPECT_EQ(factor, 0.5);
  const Rows other(5, 8);
  EXPECT_EQ(slow_calls([&] {
              ASSERT_TRUE(op(other.y, other.x, 7).ok());
              ASSERT_EQ(factor, 7.0);
            }),
            0u)
      << "another shape";
}

TEST_F(ConversionTest, none_for_a_scalar_is_kept) {
  EXPECT_EQ(slow_calls([&] {
              ASSERT_TRUE(op(t.y, t.x, 3.0, none).ok());
              ASSERT_EQ(bias_tag, ArgTag::none);
            }),
            0u);
  EXPECT_EQ(slow_calls([&] {
              ASSERT_TRUE(op(t.y, t.x, none, 1.5).ok());
              ASSERT_EQ(factor, 2.0) << "the default";
              ASSERT_EQ(bias, 1.5);
            }),
            0u);
  EXPECT_EQ(op(t.y, t.x, 3.0, t.x).reason(), "schema.argument_type") << "a tensor for a scalar";
}

TEST(ConversionInRegisters, none_for_a_scalar_is_neither_a_number_nor_a_tensor) {
  Stage stage;
  const Operator op = stage.define("biased(out Tensor y[..., H], Tensor x[..., H], int? b)");
  const char* ran = "";
  ArgTag tag = ArgTag::tensor;
  for (const char* name : {"one", "two"}) {
    stage.add({.id = std::string("biased/") + name + ".x",
               .kind = Kind::default_,
               .run = [&ran, &tag, name](CallFrame& call) {
                 ran = name;
                 tag = static_cast<ArgTag>(call.c().args[2].tag);
                 return Outcome::ok;
               }});
  }
  const Status loaded = stage.runtime.policy().load(
      "opmux: 1\nrules:\n  - {op: biased, when: b > 1, prefer: [biased/two.x]}\n"
      "  - {op: biased, prefer: [biased/one.x]}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  const Rows t;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(op(t.y, t.x, none).ok());
    EXPECT_STREQ(ran, "one");
    EXPECT_EQ(tag, ArgTag::none);
    ASSERT_TRUE(op(t.y, t.x, 2).ok());
    EXPECT_STREQ(ran, "two");
    EXPECT_EQ(tag, ArgTag::integer);
    ASSERT_TRUE(op(t.y, t.x, 0).ok());
    EXPECT_STREQ(ran, "one");
    EXPECT_EQ(op(t.y, t.x, t.x).reason(), "schema.argument_type");
  }
  const Rows other(5, 8);
  ASSERT_TRUE(op(other.y, other.x, none).ok());
  EXPECT_STREQ(ran, "one");
  const uint64_t before = dispatch::own_thread_block().cold_sequence;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(op(t.y, t.x, none).ok());
    ASSERT_TRUE(op(other.y, other.x, none).ok());
  }
  EXPECT_EQ(dispatch::own_thread_block().cold_sequence, before);
}

TEST_F(ConversionTest, the_word_of_an_enum_is_kept) {
  EXPECT_EQ(slow_calls([&] {
              ASSERT_TRUE(op(t.y, t.x, 3.0, 1.0, "far").ok());
              ASSERT_EQ(mode, 1);
              ASSERT_TRUE(op(t.y, t.x, 3.0, 1.0, std::string("near")).ok());
              ASSERT_EQ(mode, 0);
            }),
            0u);
  EXPECT_EQ(op(t.y, t.x, 3.0, 1.0, "farther").reason(), "schema.enum_word");
}

TEST_F(ConversionTest, calls_with_options_are_converted_too) {
  CallOptions options;
  options.max_threads = 1;
  EXPECT_EQ(slow_calls([&] {
              ASSERT_TRUE(op.with(options)(t.y, t.x, 4, none, "far").ok());
              ASSERT_EQ(factor, 4.0);
              ASSERT_EQ(mode, 1);
            }),
            0u);
}

}  // namespace
}  // namespace opmux::test
