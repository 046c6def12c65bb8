#include <algorithm>

#include "base/text.hpp"
#include "policy/conditions/class_facts.hpp"
#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace opmux::runtime {
namespace {

Status check(const Selector& selector, const registry::RegistrySnapshot& registry) {
  if (!selector.pick) {
    return {Code::invalid_argument, "selector.function", "a selector needs a pick function"};
  }
  for (const std::string& name : selector.reads) {
    const bool known = std::ranges::any_of(registry.operators, [&](const auto& op) {
      return policy::find_fact(*op.second->schema, name).has_value();
    });
    if (known) continue;
    return {Code::invalid_argument, "selector.reads",
            base::concat("no operator has a fact '", name,
                         "'; use the names that `opmux explain` prints after 'depends on'")};
  }
  return {};
}

}  // namespace

Status Core::set_selector(std::shared_ptr<const Selector> selector) {
  if (frozen()) return registry::frozen("set_selector");
  if (selector != nullptr) {
    if (Status bad = check(*selector, *registry_.snapshot()); !bad.ok()) return bad;
  }
  publisher_.set_selector(std::move(selector));
  return {};
}

}  // namespace opmux::runtime
