#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/rules/policy_set.hpp"

namespace opmux {
namespace {

/// A policy without its outer policies.
Policy top_of(const Policy& policy) {
  Policy top = policy;
  top.outer = nullptr;
  return top;
}

std::string content_of(const Policy& policy) {
  policy::ContentWriter writer;
  writer.add_all(top_of(policy));
  return writer.bytes();
}

std::vector<const Policy*> chain_of(const Policy& policy) {
  std::vector<const Policy*> chain;
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) chain.push_back(at);
  return chain;
}

/// Links the policies of `chain`, innermost first, into one.
Policy linked(const std::vector<const Policy*>& chain) {
  std::shared_ptr<const Policy> outer;
  for (size_t i = chain.size(); i-- > 1;) {
    auto next = std::make_shared<Policy>(top_of(*chain[i]));
    next->outer = std::move(outer);
    outer = std::move(next);
  }
  Policy whole = chain.empty() ? Policy() : top_of(*chain.front());
  whole.outer = std::move(outer);
  return whole;
}

}  // namespace

std::string_view name_of(Tuning tuning) noexcept {
  switch (tuning) {
    case Tuning::off: return "off";
    case Tuning::bundle: break;
    case Tuning::online: return "online";
    case Tuning::online_apply: return "online_apply";
  }
  return "bundle";
}

bool Policy::empty() const {
  const bool lists = prefer.empty() && require.empty() && deny.empty() && allow.empty() &&
                     allow_vendors.empty() && deny_vendors.empty() && transforms.empty();
  return lists && !strict && !tuning && per_op.empty() && rules.empty() &&
         (!outer || outer->empty());
}

Policy combine(const Policy& outer, const Policy& inner) {
  // Drop repeated policies, so that entering the same scope repeatedly does not grow the chain.
  std::vector<const Policy*> chain = chain_of(inner);
  for (const Policy* at : chain_of(outer)) chain.push_back(at);
  std::vector<const Policy*> kept;
  std::vector<std::string> contents;
  for (const Policy* at : chain) {
    if (top_of(*at).empty()) continue;
    std::string content = content_of(*at);
    if (std::find(contents.begin(), contents.end(), content) != contents.end()) continue;
    contents.push_back(std::move(content));
    kept.push_back(at);
  }
  return linked(kept);
}

}  // namespace opmux
