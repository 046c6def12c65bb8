#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schema/facts.hpp"

namespace opmux::schema {

/// A function of several facts of which a decision needs only the answer, so that all calls with
/// one answer fall into one class. The class key holds the answer as a single number. Immutable.
class Lookup {
 public:
  static constexpr size_t kMostFacts = 128;

  virtual ~Lookup() = default;
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  /// At least one, at most kMostFacts.
  const std::vector<Fact>& facts() const { return facts_; }

  /// The answer for a call whose facts `fact_of` returns.
  template <class FactOf>
  uint32_t answer(const FactOf& fact_of) const {
    std::array<int64_t, kMostFacts> values;
    for (size_t i = 0; i < facts_.size(); ++i) values[i] = fact_of(facts_[i]);
    return answer_for({values.data(), facts_.size()});
  }

  /// The predicates on dimensions that hold for every call with this answer. Empty for 0, which is
  /// the answer for all calls that the lookup does not know.
  virtual std::vector<Predicate> describe(uint32_t answer) const = 0;

 protected:
  Lookup() = default;
  void set_facts(std::vector<Fact> facts) { facts_ = std::move(facts); }

 private:
  /// `values` are those of facts(), in that order.
  virtual uint32_t answer_for(std::span<const int64_t> values) const = 0;

  std::vector<Fact> facts_;
};

}  // namespace opmux::schema
