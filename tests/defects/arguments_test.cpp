#include <stdexcept>

#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr const char* kNorm =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6)";

struct Norm : Stage {
  explicit Norm(const DefineOptions& options = {}) : op(define(kNorm, options)) {
    add({.id = "norm/fast.one", .kind = Kind::default_});
    add({.id = "norm/plain.one", .kind = Kind::reference});
  }
  template <class... Args>
  std::string run(const Args&... args) {
    return ran_by([&] { EXPECT_TRUE(op(args...).ok()); });
  }
  Operator op;
};

TEST(Defects, one_call_with_bad_arguments_disables_every_implementation) {
  Norm stage;
  const Rows rows;
  const TensorView short_weight(rows.weight, f32, {7});
  for (int i = 0; i < 10; ++i) {
    const std::string ran = ran_by(
        [&] { EXPECT_EQ(stage.op(rows.y, rows.x, short_weight).code(), Code::invalid_argument); });
    EXPECT_EQ(ran, "");
    EXPECT_EQ(stage.run(rows.y, rows.x, rows.w), "norm/fast.one");
  }
  EXPECT_EQ(stage.stats("norm/fast.one").failed, 0u);
  EXPECT_EQ(stage.stats("norm/plain.one").calls, 0u);
}

// The arguments look valid, but the kernel finds invalid data, such as an index out of range.
TEST(Defects, one_call_with_bad_data_disables_every_implementation) {
  Norm stage({.data_checked = true});
  const Rows rows;
  const auto good = stage.kernel("norm/fast.one").body;
  stage.kernel("norm/fast.one").body = [](CallFrame& call) {
    return call.end(Outcome::invalid_argument, "index 9 is outside [0, 8)");
  };
  const std::string ran = ran_by([&] {
    const Status status = stage.op(rows.y, rows.x);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find("index 9"), std::string_view::npos);
  });
  EXPECT_EQ(ran, "norm/fast.one") << "no fallback ran";
  stage.kernel("norm/fast.one").body = good;
  EXPECT_EQ(stage.run(rows.y, rows.x), "norm/fast.one");
  EXPECT_EQ(stage.stats("norm/fast.one").invalid_argument, 1u);
  EXPECT_EQ(stage.stats("norm/fast.one").failed, 0u);
}

TEST(Defects, one_failed_call_moves_later_calls_to_the_reference) {
  Norm stage;
  const Rows rows;
  const auto good = stage.kernel("norm/fast.one").body;
  for (const bool warm : {false, true}) {
    const Rows other(4, warm ? 16 : 8);
    if (warm) {
      EXPECT_EQ(stage.run(other.y, other.x), "norm/fast.one");
    }
    stage.kernel("norm/fast.one").body = [](CallFrame&) -> Outcome {
      throw std::runtime_error("once");
    };
    EXPECT_EQ(stage.run(other.y, other.x), "norm/fast.one norm/plain.one");
    stage.kernel("norm/fast.one").body = good;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(stage.run(other.y, other.x), "norm/fast.one");
  }
}

TEST(Defects, argument_lists_differ_between_implementations_of_one_operator) {
  Norm stage;
  const auto refused = [&](const std::string& signature) {
    const auto made = stage.runtime.implement({.id = "norm/odd.one",
                                               .kind = Kind::default_,
                                               .priority = 900,
                                               .run = [](CallFrame&) { return Outcome::ok; },
                                               .signature = signature});
    return made ? std::string("accepted") : std::string(made.error().reason());
  };
  EXPECT_EQ(refused("norm(out Tensor y[..., H], Tensor x[..., H], float eps = 1e-6)"),
            "schema.signature");
  EXPECT_EQ(refused("norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], "
                    "float eps = 1e-6, int more = 0)"),
            "schema.signature");
  const Rows rows;
  EXPECT_EQ(stage.run(rows.y, rows.x, rows.w, 1e-5), "norm/fast.one");

  // A plugin built before eps existed is a candidate only while eps has its default.
  stage.add({.id = "norm/older.one",
             .kind = Kind::default_,
             .priority = 900,
             .signature = "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H])"});
  EXPECT_EQ(stage.run(rows.y, rows.x, rows.w), "norm/older.one");
  EXPECT_EQ(stage.run(rows.y, rows.x, rows.w, 1e-6), "norm/older.one");
  EXPECT_EQ(stage.run(rows.y, rows.x, rows.w, 1e-5), "norm/fast.one");
  EXPECT_EQ(stage.run(rows.y, rows.x, rows.w, 1e-6), "norm/older.one");
  EXPECT_EQ(candidate(stage.op.explain(rows.y, rows.x, rows.w, 1e-5), "norm/older.one").code,
            "schema.argument_not_known");
}

TEST(Defects, an_enum_by_position_is_refused) {
  Stage stage;
  const Operator op =
      stage.define("gate(out Tensor y[H], Tensor x[H], enum{none, tanh} mode = none)");
  int64_t seen = -1;
  stage.add({.id = "gate/one.x", .kind = Kind::default_, .run = [&](CallFrame& call) {
               seen = call.i64(2);
               return Outcome::ok;
             }});
  const Rows rows;
  const TensorView y(const_cast<float*>(rows.out), f32, {8}), x(rows.in, f32, {8});
  for (const int position : {1, 0, 1, 1, 0}) {
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(y, x, position).ok()); }), "gate/one.x");
    EXPECT_EQ(seen, position);
  }
  EXPECT_EQ(op(y, x, 2).reason(), "schema.enum_word");
  EXPECT_TRUE(op(y, x, "tanh").ok());
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace opmux::test
