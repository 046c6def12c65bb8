#include <opmux/typed.hpp>

#include "stage.hpp"

namespace opmux::test {
namespace {

Status scale_body(Out y, In x, double factor, int64_t count, bool twice) {
  if (count < 0) return {Code::invalid_argument, "", "a negative count"};
  if (count == 99) return {Code::not_found, "", "no such thing"};
  for (int64_t i = 0; i < count; ++i) {
    static_cast<float*>(y->data())[i] =
        static_cast<const float*>(x->data())[i] * static_cast<float>(twice ? 2 * factor : factor);
  }
  return {};
}
using Scale = Dispatchable<Status(Out, In, double, int64_t, bool)>;
constexpr const char* kScale =
    "scale(out Tensor y[*], Tensor x[*], float factor, int count, bool twice)";

TEST(Dispatchable, runs_its_body_until_a_better_implementation_exists) {
  Stage stage;
  const Scale scale(stage.runtime, kScale, scale_body);
  ASSERT_TRUE(scale.status().ok()) << scale.status().to_string();
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  const TensorView x(in, f32, {4}), y(out, f32, {4});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(scale(y, x, 1.5, 4, true).ok());
  EXPECT_EQ(out[3], 12);
  EXPECT_EQ(stage.stats("scale/own.body").calls, 2u);
  stage.add({.id = "scale/fast.one", .kind = Kind::default_});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(scale(y, x, 1.5, 4, false).ok()); }), "scale/fast.one");
  EXPECT_EQ(stage.stats("scale/own.body").calls, 2u);
}

TEST(Dispatchable, passes_on_the_status_of_its_body) {
  Stage stage;
  const Scale scale(stage.runtime, kScale, scale_body);
  float memory[4] = {};
  const TensorView x(memory, f32, {4}), y(memory + 2, f32, {2});
  const Status refused = scale(y, x, 1, -1, false);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.message().find("a negative count"), std::string_view::npos);
  EXPECT_EQ(scale(y, x, 1, 99, false).code(), Code::failed) << "not a valid kernel outcome";
}

TEST(Dispatchable, says_what_is_wrong_with_its_schema) {
  Stage stage;
  const Scale broken(stage.runtime, "scale(out Tenser y[*])", scale_body);
  EXPECT_FALSE(broken.status().ok());
  const Scale other(stage.runtime, "other(out Tensor y[*], Tensor x[*])", scale_body);
  EXPECT_EQ(other.status().reason(), "schema.signature");
  float memory[4] = {};
  const TensorView x(memory, f32, {4});
  EXPECT_EQ(other(x, x, 1, 1, false).reason(), "schema.signature");
  const Scale first(stage.runtime, kScale, scale_body);
  const Scale again(stage.runtime, kScale, scale_body);
  EXPECT_EQ(again.status().reason(), "registry.duplicate");
}

TEST(Op, compares_its_signature_with_the_schema_once) {
  Stage stage;
  (void)stage.define(
      "mixed(out Tensor y[*], inout Tensor z[*], Tensor x[*], int n, float f = 1, bool b = true, "
      "enum{one, two} e = one, str s = \"a\", int[] l = [])");
  stage.add({.id = "mixed/one.x", .kind = Kind::default_});
  const auto reason = [&](const Status& status) {
    return status.ok() ? std::string("fits") : std::string(status.message());
  };
  using All = Op<Status(Out, InOut, In, int, double, bool, std::string_view, std::string_view,
                        std::vector<int64_t>)>;
  const All all(stage.runtime, "mixed");
  EXPECT_EQ(reason(all.status()), "fits");
  float memory[4] = {};
  const TensorView t(memory, f32, {4});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(all(t, t, t, 1, 2, false, "two", "b", {1, 2}).ok()); }),
            "mixed/one.x");
  const Op<Status(Out, InOut, In, int, int)> shorter(stage.runtime, "mixed");
  EXPECT_EQ(reason(shorter.status()), "fits");
  EXPECT_EQ(
      reason(Op<Status(Out, InOut, In, int, double, bool, int)>(stage.runtime, "mixed").status()),
      "fits");

  const auto differs = [&](const Status& status, const std::string& words) {
    EXPECT_EQ(status.reason(), "schema.signature");
    EXPECT_NE(reason(status).find(words), std::string::npos) << reason(status);
  };
  differs(Op<Status(In, InOut, In, int)>(stage.runtime, "mixed").status(), "parameter 1 is In");
  differs(Op<Status(Out, Out, In, int)>(stage.runtime, "mixed").status(), "parameter 2 is Out");
  differs(Op<Status(Out, InOut, InOut, int)>(stage.runtime, "mixed").status(),
          "parameter 3 is InOut");
  differs(Op<Status(Out, InOut, In, double)>(stage.runtime, "mixed").status(),
          "parameter 4 is a floating point number");
  differs(Op<Status(Out, InOut, In, bool)>(stage.runtime, "mixed").status(), "parameter 4 is bool");
  differs(Op<Status(Out, InOut, In, std::string_view)>(stage.runtime, "mixed").status(),
          "parameter 4 is std::string_view");
  differs(Op<Status(Out, InOut, In, std::vector<int64_t>)>(stage.runtime, "mixed").status(),
          "parameter 4 is a list of int64_t");
  differs(Op<Status(Out, InOut, In, int, double, int)>(stage.runtime, "mixed").status(),
          "parameter 6 is an integer");
  differs(Op<Status(Out, InOut, In)>(stage.runtime, "mixed").status(),
          "argument n has no default and no parameter");
  differs(Op<Status(Out, InOut, In, int, double, bool, int, std::string_view, std::vector<int64_t>,
                    int)>(stage.runtime, "mixed")
              .status(),
          "10 parameters");
  EXPECT_EQ(Op<Status(Out)>(stage.runtime, "mixd").status().code(), Code::not_found);
  const Op<Status(In)> wrong(stage.runtime, "mixed");
  EXPECT_EQ(wrong(t).reason(), "schema.signature");
}

}  // namespace
}  // namespace opmux::test
