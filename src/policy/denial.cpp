#include "policy/denial.hpp"

#include <algorithm>

namespace opmux::policy {
namespace {

bool any_matches(const std::vector<std::string>& tokens, const Subject& subject) {
  return std::ranges::any_of(tokens, [&](const std::string& text) {
    const Result<Token> token = Token::parse(text);
    return token && token->matches(subject);
  });
}

}  // namespace

bool denies(const PolicyLayer& layer, const Subject& subject) {
  const Policy& policy = layer.policy();
  if (any_matches(policy.deny, subject)) return true;
  if (subject.kind == Kind::vendor &&
      std::ranges::find(policy.deny_vendors, subject.vendor) != policy.deny_vendors.end()) {
    return true;
  }
  return std::ranges::any_of(policy.rules, [&](const Rule& rule) {
    return rule.op == "*" && !rule.when && any_matches(rule.deny, subject);
  });
}

}  // namespace opmux::policy
