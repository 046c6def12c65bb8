#include "registry/implementation/hint.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace opmux {

std::string Hint::range() const {
  if (most == 0) return base::concat(dim, " >= ", least);
  if (least == 0) return base::concat(dim, " <= ", most);
  if (least == most) return base::concat(dim, " == ", least);
  return base::concat(least, " <= ", dim, " <= ", most);
}

}  // namespace opmux

namespace opmux::registry {
namespace {

Status bad_hint(std::string message) {
  return {Code::invalid_argument, "registry.hint", std::move(message)};
}

/// Calls visit(predicate) for each bound that the dimension of a call is compared with.
template <class Visit>
void visit_bounds(const CompiledHint& compiled, const Visit& visit) {
  const Hint& hint = compiled.hint;
  // A range without an upper limit still needs a question that an absent dimension fails.
  if (hint.least > 0 || hint.most == 0) {
    visit(schema::Predicate{compiled.fact, schema::Relation::at_least, hint.least});
  }
  if (hint.most != 0) {
    visit(schema::Predicate{compiled.fact, schema::Relation::at_most, hint.most});
  }
}

bool applies(const CompiledHint& compiled, const schema::Signature& signature) {
  bool within = true;
  visit_bounds(compiled, [&](const schema::Predicate& bound) {
    within = within && schema::holds(bound, signature);
  });
  return within;
}

Result<CompiledHint> compile(const Hint& hint, const schema::Schema& schema) {
  const auto fact = schema::resolve_fact(schema, schema::FactKind::dim, hint.dim);
  if (!fact) {
    return bad_hint(base::concat("a hint names the dimension '", hint.dim, "', which ", schema.name,
                                 " does not have",
                                 base::suggestion(hint.dim, schema.size_names())));
  }
  if (hint.least < 0 || hint.most < 0 || (hint.most != 0 && hint.most < hint.least)) {
    return bad_hint(base::concat("the hint for ", hint.dim, " is about ", hint.least, " to ",
                                 hint.most, ", which is not a range of sizes"));
  }
  if (hint.priority < 0 || hint.priority > kHighestPriority) {
    return bad_hint(base::concat("the hint for ", hint.dim, " has the priority ", hint.priority,
                                 ", which is not in 0 to ", kHighestPriority));
  }
  return CompiledHint{hint, *fact};
}

}  // namespace

Result<std::vector<CompiledHint>> compile_hints(const std::vector<Hint>& hints,
                                                const schema::Schema& schema) {
  std::vector<CompiledHint> all;
  for (const Hint& hint : hints) {
    Result<CompiledHint> compiled = compile(hint, schema);
    if (!compiled) return compiled.error();
    all.push_back(*std::move(compiled));
  }
  return all;
}

const CompiledHint* hint_for(const std::vector<CompiledHint>& hints,
                             const schema::Signature& signature) {
  const auto first =
      std::ranges::find_if(hints, [&](const CompiledHint& one) { return applies(one, signature); });
  return first == hints.end() ? nullptr : &*first;
}

void add_dependencies(const std::vector<CompiledHint>& hints, schema::Dependencies& into) {
  for (const CompiledHint& each : hints) {
    visit_bounds(each, [&](const schema::Predicate& bound) { into.add(bound); });
  }
}

int best_priority(int priority, const std::vector<CompiledHint>& hints) {
  for (const CompiledHint& each : hints) priority = std::max(priority, each.hint.priority);
  return priority;
}

}  // namespace opmux::registry
