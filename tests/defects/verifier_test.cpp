#include <stdexcept>

#include "stage.hpp"

namespace opmux::test {
namespace {

TEST(Defects, a_verifiers_exception_looks_like_a_refusal) {
  std::vector<Event> events;
  Options options = bare();
  options.sink = [&](const Event& event) { events.push_back(event); };
  Stage stage(std::move(options));
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/broken.one",
             .kind = Kind::default_,
             .verify = [](const Facts&) -> std::string { throw std::runtime_error("no table"); }});
  stage.add({.id = "copy/odd.one",
             .kind = Kind::default_,
             .verify = [](const Facts&) -> std::string { throw 7; }});
  stage.add({.id = "copy/refusing.one", .kind = Kind::default_, .verify = [](const Facts&) {
               return std::string("not today");
             }});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");

  const Explanation why = op.explain(rows.y, rows.x);
  EXPECT_EQ(why.chosen, "copy/plain.one");
  EXPECT_EQ(candidate(why, "copy/broken.one").code, "verify.broken");
  EXPECT_NE(candidate(why, "copy/broken.one").reason.find("no table"), std::string::npos);
  EXPECT_EQ(candidate(why, "copy/odd.one").code, "verify.broken");
  EXPECT_EQ(candidate(why, "copy/refusing.one").code, "verify.refused");
  EXPECT_EQ(candidate(why, "copy/refusing.one").reason, "not today");
  const auto told = [&](const std::string& impl) {
    for (const Event& event : events) {
      if (event.code == "dispatch.refused" && event.impl == impl) return event.fields.at(0).second;
    }
    return std::string();
  };
  EXPECT_EQ(told("copy/broken.one"), "verify.broken");
  EXPECT_EQ(told("copy/refusing.one"), "verify.refused");
}

TEST(Defects, one_verifier_that_throws_removes_its_whole_backend) {
  Stage stage;
  const Operator copy = stage.define(kCopy);
  const Operator move = stage.define("move(out Tensor y[..., H], Tensor x[..., H])");
  stage.add({.id = "copy/acme.one",
             .kind = Kind::default_,
             .verify = [](const Facts&) -> std::string { throw std::runtime_error("no table"); }});
  stage.add({.id = "move/acme.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  stage.add({.id = "move/plain.one", .kind = Kind::reference});
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copy(rows.y, rows.x).ok()); }), "copy/plain.one");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(move(rows.y, rows.x).ok()); }), "move/acme.one");
}

}  // namespace
}  // namespace opmux::test
