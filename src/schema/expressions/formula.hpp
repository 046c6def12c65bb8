#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "schema/expressions/where.hpp"
#include "schema/facts.hpp"

namespace opmux::schema {

/// Three-valued result of a condition on facts; `unknown` if a fact that it needs is absent.
enum class Answer : uint8_t { no, yes, unknown };

/// An integer expression over several facts with a yes/no result. Overflow, division by zero and
/// absent facts make the result unknown, unless the other side of an && or || decides. Immutable.
struct Formula {
  static constexpr size_t kMostFacts = 16;

  std::vector<Fact> facts;
  std::vector<WhereExpression::Step> steps;  ///< `scalar` reads the facts by position

  template <class FactOf>
  Answer answer(const FactOf& fact_of) const {
    std::array<int64_t, kMostFacts> values;
    for (size_t i = 0; i < facts.size(); ++i) values[i] = fact_of(facts[i]);
    return answer_for({values.data(), facts.size()});
  }

  friend auto operator<=>(const Formula&, const Formula&) = default;

 private:
  Answer answer_for(std::span<const int64_t> values) const;
};

inline Answer Formula::answer_for(std::span<const int64_t> values) const {
  const auto result = evaluate(steps, {}, values);
  if (!result) return Answer::unknown;
  return *result != 0 ? Answer::yes : Answer::no;
}

}  // namespace opmux::schema
