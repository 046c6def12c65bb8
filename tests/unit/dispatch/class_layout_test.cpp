#include "dispatch/decide/class_layout.hpp"

#include <memory>

#include "dispatch/decide/locked_choices.hpp"

namespace opmux::dispatch {
namespace {

using schema::Dependencies;
using schema::Fact;
using schema::FactKind;
using schema::Predicate;
using schema::Relation;

const schema::Schema& schema() {
  static const schema::Schema parsed =
      schema::parse_schema("norm(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], int n = 0)")
          .value();
  return parsed;
}

const Fact kH{FactKind::dim, 0}, kRows{FactKind::dim, schema::kRowsDim};

/// A checked call of rows x H, optionally with a weight.
struct Call {
  explicit Call(int64_t rows, int64_t h, int64_t n = 0, bool weight = false, DType dtype = f32)
      : y(memory, dtype, {rows, h}), x(memory, dtype, {rows, h}), w(memory, dtype, {h}) {
    ArgValue values[4];
    values[0].tensor = &y;
    values[1].tensor = &x;
    values[2].tensor = weight ? &w : &absent;
    values[3].i64 = n;
    const CallSite site{ArgTag::tensor, ArgTag::tensor, ArgTag::tensor, ArgTag::integer};
    EXPECT_TRUE(normalise(schema(), site, values, arguments).ok());
    EXPECT_TRUE(check_arguments(schema(), arguments, dims).ok());
  }
  Call(const Call&) = delete;
  schema::Signature signature(uint32_t ambient = 0, uint32_t tag = 0) const {
    return {&schema(), &arguments, &dims, ambient, tag};
  }

  alignas(64) static inline float memory[4096];
  TensorView y, x, w, absent;
  schema::Arguments arguments;
  schema::BoundDims dims;
};

ClassKey key(const ClassLayout& layout, const schema::Signature& signature) {
  ClassKey key;
  EXPECT_TRUE(layout.key_of(schema::FactsOf{signature}, key));
  return key;
}

bool same_class(const Dependencies& dependencies, const Call& a, const Call& b) {
  const ClassLayout layout(dependencies);
  const ClassKey first = key(layout, a.signature()), second = key(layout, b.signature());
  if (first.equals(second)) {
    EXPECT_EQ(first.hash(), second.hash());
  }
  return first.equals(second);
}

TEST(ClassLayout, without_dependencies_everything_is_one_class) {
  EXPECT_TRUE(same_class({}, Call(1, 8), Call(7, 24, 3, true, bf16)));
}

TEST(ClassLayout, a_threshold_splits_a_dimension_into_intervals) {
  Dependencies dependencies;
  dependencies.add(Predicate{kH, Relation::at_least, 16});
  dependencies.add(Predicate{kH, Relation::at_most, 64});
  EXPECT_TRUE(same_class(dependencies, Call(1, 1), Call(1, 15)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 15), Call(1, 16)));
  EXPECT_TRUE(same_class(dependencies, Call(1, 16), Call(1, 64)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 64), Call(1, 65)));
  EXPECT_TRUE(same_class(dependencies, Call(1, 65), Call(1, 900)));
}

TEST(ClassLayout, a_limit_that_nothing_exceeds_splits_nothing) {
  Dependencies dependencies;
  dependencies.add(Predicate{kRows, Relation::at_most, INT64_MAX});
  EXPECT_TRUE(same_class(dependencies, Call(1, 8), Call(100, 8)));
}

TEST(ClassLayout, divisibility_and_equality_are_a_bit_each) {
  Dependencies dependencies;
  dependencies.add(Predicate{kH, Relation::multiple_of, 16});
  dependencies.add(Predicate{kH, Relation::equals, 48});
  EXPECT_TRUE(same_class(dependencies, Call(1, 16), Call(1, 32)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 16), Call(1, 48)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 16), Call(1, 17)));
  EXPECT_TRUE(same_class(dependencies, Call(1, 17), Call(1, 19)));
}

TEST(ClassLayout, equal_answers_about_multiples_give_the_same_class_and_others_do_not) {
  Dependencies dependencies;
  const std::vector<int64_t> divisors{3, 4, 16, 100, 1024, 65536};
  for (const int64_t n : divisors) dependencies.add(Predicate{kH, Relation::multiple_of, n});
  const auto answers = [&](int64_t h) {
    std::vector<bool> all;
    for (const int64_t n : divisors) all.push_back(h % n == 0);
    return all;
  };
  for (const int64_t a : {1, 3, 4, 8, 12, 16, 32, 48, 100, 300, 400, 1024, 3072}) {
    for (int64_t b = 1; b <= 128; ++b) {
      EXPECT_EQ(same_class(dependencies, Call(1, a), Call(1, b)), answers(a) == answers(b))
          << a << " and " << b;
    }
  }
}

TEST(ClassLayout, exact_facts_keep_their_values_apart) {
  Dependencies scalar, dtype, present, dim;
  scalar.add(Fact{FactKind::scalar, 3});
  dtype.add(Fact{FactKind::dtype, 1});
  present.add(Fact{FactKind::present, 2});
  dim.add(kH);
  EXPECT_FALSE(same_class(scalar, Call(1, 8, 1), Call(1, 8, 2)));
  EXPECT_TRUE(same_class(scalar, Call(1, 8, 1), Call(2, 9, 1)));
  EXPECT_FALSE(same_class(dtype, Call(1, 8), Call(1, 8, 0, false, bf16)));
  EXPECT_FALSE(same_class(dtype, Call(1, 8, 0, false, f16), Call(1, 8, 0, false, bf16)));
  EXPECT_FALSE(same_class(present, Call(1, 8), Call(1, 8, 0, true)));
  EXPECT_FALSE(same_class(dim, Call(1, 8), Call(1, 9)));
}

TEST(ClassLayout, more_than_sixteen_bits_and_four_intervals_do_not_run_into_each_other) {
  Dependencies dependencies;
  for (int64_t n = 2; n < 72; ++n) dependencies.add(Predicate{kH, Relation::multiple_of, n});
  for (const int64_t cut : {10, 20, 30}) {
    dependencies.add(Predicate{kH, Relation::at_least, cut});
    dependencies.add(Predicate{kRows, Relation::at_least, cut});
  }
  const ClassLayout layout(dependencies);
  EXPECT_EQ(key(layout, Call(1, 5).signature()).count(), 3u) << "70 bits and two intervals";
  EXPECT_FALSE(same_class(dependencies, Call(1, 71), Call(1, 73)));
  EXPECT_FALSE(same_class(dependencies, Call(9, 97), Call(10, 97)));
  EXPECT_TRUE(same_class(dependencies, Call(10, 97), Call(19, 89)));
}

TEST(ClassLayout, a_key_can_be_read_back_fact_by_fact) {
  Dependencies dependencies;
  for (int64_t n = 2; n < 72; ++n) dependencies.add(Predicate{kH, Relation::multiple_of, n});
  dependencies.add(Predicate{kRows, Relation::equals, 7});
  dependencies.add(Predicate{kRows, Relation::at_least, 10});
  dependencies.add(Fact{FactKind::dtype, 1});
  dependencies.add(Fact{FactKind::scalar, 3});
  const ClassLayout layout(dependencies);
  const auto parts = [&](const Call& call) {
    return layout.parts_of(key(layout, call.signature()));
  };
  const auto before = parts(Call(1, 8));
  const auto changed = [&](const Call& call) {
    std::vector<size_t> places;
    const auto after = parts(call);
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].fact, after[i].fact);
      if (before[i].word != after[i].word) places.push_back(i);
    }
    return places;
  };
  const auto expect = [&](size_t place, Fact fact, bool exact) {
    EXPECT_EQ(before[place].fact, fact) << place;
    EXPECT_EQ(before[place].exact, exact) << place;
  };
  ASSERT_EQ(before.size(), 5u);
  expect(0, Fact{FactKind::dtype, 1}, true);
  expect(1, kH, false);
  expect(2, kRows, false);
  expect(3, kRows, false);
  expect(4, Fact{FactKind::scalar, 3}, true);
  EXPECT_THAT(changed(Call(1, 8, 0, false, bf16)), testing::ElementsAre(0));
  EXPECT_THAT(changed(Call(1, 71)), testing::ElementsAre(1));
  EXPECT_THAT(changed(Call(7, 8)), testing::ElementsAre(2));
  EXPECT_THAT(changed(Call(10, 8)), testing::ElementsAre(3));
  EXPECT_THAT(changed(Call(1, 8, 5)), testing::ElementsAre(4));
}

TEST(ClassLayout, a_key_holds_any_number_of_facts) {
  Dependencies dependencies;
  for (uint8_t arg = 0; arg < 4; ++arg) {
    for (const FactKind kind : {FactKind::device, FactKind::rank, FactKind::alignment}) {
      if (arg < 3) dependencies.add(Fact{kind, arg});
    }
  }
  // Questions that get a bit each fill words beyond those that need no allocation.
  for (int64_t n = 3; n < 1203; n += 2) dependencies.add(Predicate{kH, Relation::multiple_of, n});
  dependencies.add(Fact{FactKind::scalar, 3});
  const ClassLayout layout(dependencies);
  const ClassKey long_key = key(layout, Call(1, 1201).signature());
  EXPECT_GT(long_key.count(), ClassKey::kInline);
  EXPECT_TRUE(same_class(dependencies, Call(1, 8), Call(1, 16)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 8), Call(1, 1201)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 8, 1), Call(1, 8, 2)));
  EXPECT_EQ(layout.parts_of(long_key).back().word, 0u) << "the scalar is the last part";
}

TEST(ClassLayout, many_equalities_of_a_dimension_share_one_index) {
  Dependencies dependencies;
  for (int64_t n = 0; n < 10'000; ++n) dependencies.add(Predicate{kH, Relation::equals, 3 * n + 2});
  const ClassLayout layout(dependencies);
  EXPECT_EQ(key(layout, Call(1, 5).signature()).count(), 1u);
  EXPECT_FALSE(same_class(dependencies, Call(1, 5), Call(1, 8)));
  EXPECT_FALSE(same_class(dependencies, Call(1, 5), Call(1, 6)));
  EXPECT_TRUE(same_class(dependencies, Call(1, 6), Call(1, 7)));
  EXPECT_TRUE(same_class(dependencies, Call(1, 6), Call(1, 30'001)));
  const policy::ClassFacts facts = layout.facts_of(key(layout, Call(1, 5).signature()));
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].is, policy::ClassFact::Is::equal);
  EXPECT_EQ(facts[0].value, 5);
  EXPECT_EQ(layout.facts_of(key(layout, Call(1, 6).signature())).size(), 10'000u);
}

TEST(ClassLayout, ambient_facts_and_tags_count_if_a_check_reads_them) {
  Dependencies dependencies;
  dependencies.add(Fact{FactKind::ambient, 2});
  dependencies.add(Fact{FactKind::tag, 0});
  const ClassLayout layout(dependencies);
  const Call call(1, 8);
  const ClassKey plain = key(layout, call.signature());
  EXPECT_FALSE(plain.equals(key(layout, call.signature(schema::kDeterministic))));
  EXPECT_TRUE(plain.equals(key(layout, call.signature(schema::kGrad))));
  EXPECT_FALSE(plain.equals(key(layout, call.signature(0, 7))));
}

/// Answers 1 for H = 8 with 5 to 9 rows, 2 for more of them, 0 for anything else.
class TwoIntervals final : public schema::Lookup {
 public:
  TwoIntervals() { set_facts({kRows, kH}); }
  std::vector<Predicate> describe(uint32_t answer) const override {
    if (answer == 0) return {};
    std::vector<Predicate> all{{kH, Relation::equals, 8},
                               {kRows, Relation::at_least, answer == 1 ? 5 : 10}};
    if (answer == 1) all.push_back({kRows, Relation::at_most, 9});
    return all;
  }

 private:
  uint32_t answer_for(std::span<const int64_t> values) const override {
    if (values[1] != 8 || values[0] < 5) return 0;
    return values[0] < 10 ? 1 : 2;
  }
};

TEST(ClassLayout, calls_with_one_answer_of_a_lookup_are_a_class_that_can_be_described) {
  Dependencies dependencies;
  dependencies.add(std::make_shared<const TwoIntervals>());
  for (const int64_t cut : {3, 20, 30}) dependencies.add(Predicate{kRows, Relation::at_least, cut});
  EXPECT_TRUE(same_class(dependencies, Call(5, 8), Call(9, 8)));
  EXPECT_FALSE(same_class(dependencies, Call(4, 8), Call(5, 8)));
  EXPECT_FALSE(same_class(dependencies, Call(9, 8), Call(10, 8)));
  EXPECT_TRUE(same_class(dependencies, Call(4, 8), Call(9, 16)));
  EXPECT_FALSE(same_class(dependencies, Call(19, 8), Call(20, 8))) << "other questions count too";
  EXPECT_THAT(dependencies.facts(), testing::ElementsAre(kH, kRows));
  const ClassLayout layout(dependencies);
  const auto facts_of = [&](const Call& call) {
    return layout.facts_of(key(layout, call.signature()));
  };
  EXPECT_EQ(policy::to_string(schema(), facts_of(Call(7, 8))),
            "rows >= 3 && rows < 20 && H == 8 && rows >= 5 && rows < 10");
  // The class of which the lookup knows nothing contains the others, so they are looked up first.
  const LockedClasses classes(
      {{facts_of(Call(7, 16)), "copy/a.x"}, {facts_of(Call(7, 8)), "copy/b.x"}});
  EXPECT_EQ(classes.find(Call(6, 8).signature())->implementation, "copy/b.x");
  EXPECT_EQ(classes.find(Call(4, 8).signature())->implementation, "copy/a.x");
  EXPECT_EQ(classes.find(Call(6, 24).signature())->implementation, "copy/a.x");
  EXPECT_EQ(classes.find(Call(25, 24).signature()), nullptr);
  const ClassKey one = key(layout, Call(7, 8).signature()),
                 other = key(layout, Call(7, 16).signature());
  EXPECT_NE(layout.parts_of(one)[0].word, layout.parts_of(other)[0].word);
  EXPECT_EQ(layout.parts_of(one)[1].word, layout.parts_of(other)[1].word);
}

/// Predicates of every kind, about H, rows, the scalar, the weight and ambient facts.
Dependencies all_kinds_of_questions() {
  Dependencies all;
  for (const int64_t factor : {2, 3, 8, 16}) all.add(Predicate{kH, Relation::multiple_of, factor});
  all.add(Predicate{kH, Relation::equals, 12});
  all.add(Predicate{kH, Relation::at_least, 9});
  all.add(Predicate{kRows, Relation::at_most, 2});
  all.add(Fact{FactKind::dtype, 1});
  all.add(Fact{FactKind::dtype, 2});
  all.add(Fact{FactKind::present, 2});
  all.add(Fact{FactKind::scalar, 3});
  all.add(Fact{FactKind::layout, 1});
  all.add(Fact{FactKind::device, 1});
  all.add(Fact{FactKind::ambient, 2});
  schema::Formula formula{{kRows, kH}, {}};
  using Op = schema::WhereExpression::Op;
  formula.steps = {{Op::scalar, 0, 0},
                   {Op::scalar, 1, 0},
                   {Op::multiply, 0, 0},
                   {Op::constant, 0, 30},
                   {Op::greater, 0, 0}};
  all.add(formula);
  return all;
}

TEST(ClassLayout, the_facts_of_a_key_read_back_and_hold_for_the_calls_of_that_key_alone) {
  const Dependencies dependencies = all_kinds_of_questions();
  const ClassLayout layout(dependencies);
  std::vector<std::unique_ptr<Call>> calls;
  for (const int64_t rows : {1, 2, 3}) {
    for (const int64_t h : {1, 2, 6, 8, 9, 12, 16, 24, 30, 32}) {
      calls.push_back(std::make_unique<Call>(rows, h));
      calls.push_back(std::make_unique<Call>(rows, h, 1, true, h % 3 == 0 ? bf16 : f32));
    }
  }
  for (const auto& one : calls) {
    const ClassKey own = key(layout, one->signature());
    const std::string text = policy::to_string(schema(), layout.facts_of(own));
    const auto read = policy::parse_class_facts(schema(), dependencies.formulas(), text);
    ASSERT_TRUE(read.has_value()) << text << ": " << read.error().message();
    EXPECT_EQ(policy::to_string(schema(), *read), text);
    const LockedClasses classes({{*read, "copy/a.x"}});
    for (const auto& other : calls) {
      EXPECT_EQ(classes.find(other->signature()) != nullptr,
                own.equals(key(layout, other->signature())))
          << text;
    }
    EXPECT_EQ(classes.find(one->signature(schema::kDeterministic)), nullptr);
  }
}

TEST(ClassLayout, an_unknown_fact_is_refused) {
  for (const char* text : {"", "W == 4", "H", "H ~ 4", "H == four", "H % 0 == 0", "H == 4 5",
                           "dtype(x) == b16", "(rows*H) == true", "always && H == 4"}) {
    EXPECT_EQ(policy::parse_class_facts(schema(), {}, text).error().reason(), "lock.fact") << text;
  }
}

}  // namespace
}  // namespace opmux::dispatch
