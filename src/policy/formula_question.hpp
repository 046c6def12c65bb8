#pragma once

#include <optional>

#include <opmux/policy.hpp>

#include "registry/facts.hpp"
#include "registry/formula.hpp"

namespace opmux::policy {

/// A predicate, or its negation.
struct SignedQuestion {
  registry::Predicate question;
  bool negated = false;
};

/// The predicate that a formula is equivalent to, if it only compares one fact with a constant:
/// `T > 8192`, `16 <= H`, `H % 16 == 0`, `dtype(x) != "f16"`, `causal`.
std::optional<SignedQuestion> as_question(const registry::Formula& formula);

/// The predicate for a comparison with a number. For != it is equality, which the caller negates.
registry::Predicate question_of(registry::Fact fact, Compare compare, int64_t value);

}  // namespace opmux::policy
