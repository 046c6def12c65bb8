#include "policy/unmatched.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.hpp"

namespace opmux::policy {
namespace {

template <class Visit>
void for_each_token(const Rule& rule, const Visit& visit) {
  const std::array<std::pair<std::string_view, const std::vector<std::string>*>, 5> lists{
      {{"require", &rule.require},
       {"prefer", &rule.prefer},
       {"order", &rule.order},
       {"deny", &rule.deny},
       {"allow", &rule.allow}}};
  for (const auto& [field, tokens] : lists) {
    for (const std::string& token : *tokens) visit(field, token);
  }
  for (const Boost& boost : rule.boost) visit("boost", boost.impl);
  if (rule.breaker && !rule.impl.empty()) visit("impl", rule.impl);
}

}  // namespace

PresentNames::PresentNames(const registry::RegistrySnapshot& known) {
  for (const auto& [name, op] : known.operators) {
    for (const registry::ImplementationPtr& impl : op->implementations) {
      present_.push_back({name, {impl->id, impl->kind, impl->vendor}});
    }
  }
}

bool PresentNames::matches(std::string_view op, const std::string& token) {
  if (token.find_first_of("/:") == token.npos) return true;
  const auto [at, added] = known_.try_emplace(base::concat(op, " ", token), false);
  if (!added) return at->second;
  const auto parsed = Token::parse(token);
  if (!parsed) return at->second;
  const bool one = op.find('*') == op.npos;
  auto first = present_.begin(), last = present_.end();
  if (one) {
    std::tie(first, last) =
        std::equal_range(first, last, Present{op, {}},
                         [](const Present& a, const Present& b) { return a.op < b.op; });
  }
  return at->second = std::any_of(first, last, [&](const Present& present) {
           return parsed->matches(present.subject) && (one || glob_match(op, present.op));
         });
}

std::vector<Unmatched> unmatched_of(const Policy& policy, const registry::RegistrySnapshot& known) {
  PresentNames names(known);
  std::vector<Unmatched> all;
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    for_each_token(policy.rules[i], [&](std::string_view field, const std::string& token) {
      if (!names.matches(policy.rules[i].op, token)) all.push_back({i, field, token});
    });
  }
  return all;
}

std::vector<const Rule*> unmatched_rules(const Policy& policy,
                                         const registry::RegistrySnapshot& known) {
  PresentNames names(known);
  std::vector<const Rule*> all;
  for (const Rule& rule : policy.rules) {
    size_t tokens = 0, matched = 0;
    for_each_token(rule, [&](std::string_view, const std::string& token) {
      ++tokens;
      if (names.matches(rule.op, token)) ++matched;
    });
    if (tokens > 0 && matched == 0) all.push_back(&rule);
  }
  return all;
}

}  // namespace opmux::policy
