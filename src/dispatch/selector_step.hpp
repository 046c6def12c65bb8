#pragma once

#include <vector>

#include <opmux/selector.hpp>

#include "registry/dependencies.hpp"
#include "registry/facts.hpp"

namespace opmux::dispatch {

struct Decision;

/// Calls the program's selector and moves the candidate that it picks to the front of the order.
void apply_selector(const Selector& selector, const registry::Signature& signature,
                    Decision& decision);

/// Adds the facts that the selector reads in calls of this operator.
void add_dependencies(const Selector& selector, const registry::Schema& schema,
                      registry::Dependencies& into);

}  // namespace opmux::dispatch
