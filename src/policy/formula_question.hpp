#pragma once

#include <optional>

#include <opmux/policy.hpp>

#include "registry/facts.hpp"
#include "registry/formula.hpp"

namespace opmux::policy {

/// A question, or its negation.
struct SignedQuestion {
  registry::Predicate question;
  bool negated = false;
};

/// The question about one fact that a formula comes to, if it is no more than that: `T > 8192`,
/// `16 <= H`, `H % 16 == 0`, `dtype(x) != "f16"`, `causal`.
std::optional<SignedQuestion> as_question(const registry::Formula& formula);

/// The question that a comparison with a number asks; != asks for equality.
registry::Predicate question_of(registry::Fact fact, Compare compare, int64_t value);

}  // namespace opmux::policy
