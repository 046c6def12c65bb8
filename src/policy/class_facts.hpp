#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "registry/dependencies.hpp"
#include "registry/facts.hpp"
#include "registry/formula.hpp"

namespace opmux::policy {

/// One thing that is known of a class of calls: "dtype(x) == bf16", "H % 16 == 0", "T < 128".
struct ClassFact {
  enum class Is : uint8_t {
    equal,
    not_equal,
    at_least,
    below,
    multiple,
    not_multiple,
    absent,
    answered,  ///< what the formula of a condition comes to
  };
  registry::Fact fact = {};
  Is is = Is::equal;
  int64_t value = 0;  ///< of no meaning for absent; an Answer for answered
  std::shared_ptr<const registry::Formula> formula = nullptr;  ///< of answered

  friend bool operator==(const ClassFact& a, const ClassFact& b) {
    const bool same_formula =
        a.formula == b.formula || (a.formula && b.formula && *a.formula == *b.formula);
    return a.fact == b.fact && a.is == b.is && a.value == b.value && same_formula;
  }
};
using ClassFacts = std::vector<ClassFact>;

/// Whether a call agrees with what is known.
bool holds(const ClassFact& known, const registry::Signature& signature);
void add_dependencies(const ClassFact& known, registry::Dependencies& into);

/// The fact that is called so, as registry::describe does.
std::optional<registry::Fact> find_fact(const registry::Schema& schema, std::string_view name);
/// "bf16", "cpu:0", "true", "tanh", "4096".
std::string value_text(const registry::Schema& schema, registry::Fact fact, int64_t value);

/// Joined by " && "; "always" if nothing is known. Reads back as the same facts.
std::string to_string(const registry::Schema& schema, const ClassFacts& facts);
/// Fails with "lock.fact" if the text is none, names what the schema does not have, or a formula
/// that is none of `formulas`.
Result<ClassFacts> parse_class_facts(const registry::Schema& schema,
                                     std::span<const registry::Formula> formulas,
                                     std::string_view text);

}  // namespace opmux::policy
