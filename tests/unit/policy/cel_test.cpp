#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "policy/conditions/condition_program.hpp"
#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

const schema::Schema& cel_schema() {
  static const schema::Schema schema =
      schema::parse_schema(
          "cel(out Tensor y[A, B, C], Tensor x[A, B, C], int i = 0, int j = 0, bool p = false, "
          "bool q = false, enum{none, tanh} mode = none, float r = 0.0)")
          .value();
  return schema;
}

/// A call of cel() with the values of one line of the table: "A=4 B=6 ... dtype=bf16".
class CelCall {
 public:
  explicit CelCall(const std::string& bindings)
      : signature_{&cel_schema(), &arguments_, &dims_, 0, 0} {
    std::istringstream pairs(bindings);
    for (std::string pair; pairs >> pair;) {
      const size_t sign = pair.find('=');
      values_[pair.substr(0, sign)] = pair.substr(sign + 1);
    }
    x_ = TensorView(static_cast<void*>(nullptr), parse_dtype(values_["dtype"]),
                    {number("A"), number("B"), number("C")});
    arguments_.count = 8;
    arguments_.tags = {ArgTag::tensor,  ArgTag::tensor,  ArgTag::integer,     ArgTag::integer,
                       ArgTag::logical, ArgTag::logical, ArgTag::enumeration, ArgTag::floating};
    arguments_.values[0].tensor = arguments_.values[1].tensor = &x_;
    arguments_.values[2].i64 = number("i");
    arguments_.values[3].i64 = number("j");
    arguments_.values[4].i64 = values_["p"] == "true";
    arguments_.values[5].i64 = values_["q"] == "true";
    arguments_.values[6].i64 = values_["mode"] == "tanh";
    arguments_.values[7].f64 = std::stod(values_["r"]);
    dims_.values[0] = number("A");
    dims_.values[1] = number("B");
    dims_.values[2] = number("C");
  }

  const schema::Signature& signature() const { return signature_; }

 private:
  int64_t number(const std::string& name) { return std::stoll(values_[name]); }

  std::map<std::string, std::string> values_;
  TensorView x_;
  schema::Arguments arguments_;
  schema::BoundDims dims_;
  schema::Signature signature_;
};

std::string answer_of(const std::string& bindings, const std::string& text) {
  const auto condition = Condition::parse(text);
  if (!condition) return "error";
  const auto program = ConditionProgram::compile(*condition, cel_schema());
  if (!program) return "error";
  switch (program->answer(CelCall(bindings).signature())) {
    case schema::Answer::yes: return "true";
    case schema::Answer::no: return "false";
    case schema::Answer::unknown: return "error";
  }
  return {};
}

TEST(Cel, answers_every_line_of_the_table_as_cel_does) {
  std::ifstream table(OPMUX_CEL_CASES);
  int cases = 0;
  for (std::string line; std::getline(table, line); ++cases) {
    const size_t first = line.find(" | "), last = line.rfind(" | ");
    const std::string bindings = line.substr(0, first);
    const std::string text = line.substr(first + 3, last - first - 3);
    EXPECT_EQ(answer_of(bindings, text), line.substr(last + 3)) << text << "   " << bindings;
  }
  EXPECT_GE(cases, 300);
}

}  // namespace
}  // namespace opmux::policy
