#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "schema/dependencies.hpp"
#include "schema/expressions/formula.hpp"
#include "schema/facts.hpp"

namespace opmux::policy {

/// One property that all calls of a class share: "dtype(x) == bf16", "H % 16 == 0", "T < 128".
struct ClassFact {
  enum class Is : uint8_t {
    equal,
    not_equal,
    at_least,
    below,
    multiple,
    not_multiple,
    absent,
    answered,  ///< a formula has a certain answer
  };
  schema::Fact fact = {};
  Is is = Is::equal;
  int64_t value = 0;  ///< unused for `absent`; an Answer for `answered`
  std::shared_ptr<const schema::Formula> formula = nullptr;  ///< only for `answered`

  friend bool operator==(const ClassFact& a, const ClassFact& b) {
    const bool same_formula =
        a.formula == b.formula || (a.formula && b.formula && *a.formula == *b.formula);
    return a.fact == b.fact && a.is == b.is && a.value == b.value && same_formula;
  }
};
using ClassFacts = std::vector<ClassFact>;

/// Whether a call has the property.
bool holds(const ClassFact& known, const schema::Signature& signature);
void add_dependencies(const ClassFact& known, schema::Dependencies& into);

/// Finds a fact by the name that registry::describe() gives it.
std::optional<schema::Fact> find_fact(const schema::Schema& schema, std::string_view name);
/// A fact's value as text: "bf16", "cpu:0", "true", "tanh", "4096".
std::string value_text(const schema::Schema& schema, schema::Fact fact, int64_t value);

/// The facts as text, joined by " && "; "always" if there are none. parse_class_facts() is the
/// inverse.
std::string to_string(const schema::Schema& schema, const ClassFacts& facts);
/// Fails with "lock.fact" if the text is malformed, names a fact that the schema does not have, or
/// contains a formula that is not in `formulas`.
Result<ClassFacts> parse_class_facts(const schema::Schema& schema,
                                     std::span<const schema::Formula> formulas,
                                     std::string_view text);

/// A formula as text, with a schema's names and without spaces: "((T*2)>H)". Formulas with the same
/// text are equivalent.
std::string to_string(const schema::Schema& schema, const schema::Formula& formula);

}  // namespace opmux::policy
