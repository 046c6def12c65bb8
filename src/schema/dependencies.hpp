#pragma once

#include <memory>
#include <vector>

#include "schema/expressions/formula.hpp"
#include "schema/facts.hpp"
#include "schema/lookup.hpp"

namespace opmux::schema {

/// Everything that a decision about one operator can depend on, sorted and without duplicates.
/// Predicates on dimensions, formulas and lookups matter only by their result, so that calls fall
/// into classes; exact facts matter by their value.
class Dependencies {
 public:
  void add(Fact fact);
  /// Adds a predicate on a dimension; a predicate on any other fact adds the fact itself as exact.
  void add(const Predicate& predicate);
  void add(const Formula& formula);
  void add(std::shared_ptr<const Lookup> lookup);
  void add(const Dependencies& other);

  const std::vector<Fact>& exact() const { return exact_; }
  const std::vector<Predicate>& questions() const { return questions_; }
  const std::vector<Formula>& formulas() const { return formulas_; }
  const std::vector<std::shared_ptr<const Lookup>>& lookups() const { return lookups_; }
  /// All facts that are read, sorted.
  std::vector<Fact> facts() const;

 private:
  std::vector<Fact> exact_;
  std::vector<Predicate> questions_;
  std::vector<Formula> formulas_;
  std::vector<std::shared_ptr<const Lookup>> lookups_;
};

}  // namespace opmux::schema
