#pragma once

#include <vector>

#include "registry/facts.hpp"
#include "registry/formula.hpp"

namespace opmux::registry {

/// Everything a decision about one operator can depend on, without repetition and in order:
/// questions about dimensions, which only split them into classes, formulas, which do so too, and
/// facts that count exactly.
class Dependencies {
 public:
  void add(Fact fact);
  /// A question; about anything but a dimension it counts as the exact fact.
  void add(const Predicate& predicate);
  void add(const Formula& formula);
  void add(const Dependencies& other);

  const std::vector<Fact>& exact() const { return exact_; }
  const std::vector<Predicate>& questions() const { return questions_; }
  const std::vector<Formula>& formulas() const { return formulas_; }
  /// All facts mentioned, in order.
  std::vector<Fact> facts() const;

 private:
  std::vector<Fact> exact_;
  std::vector<Predicate> questions_;
  std::vector<Formula> formulas_;
};

}  // namespace opmux::registry
