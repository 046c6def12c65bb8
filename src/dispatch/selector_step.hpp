#pragma once

#include <vector>

#include <opmux/selector.hpp>

#include "registry/dependencies.hpp"
#include "registry/facts.hpp"

namespace opmux::dispatch {

struct Decision;

/// Asks the program's selector, and puts what it picks first.
void apply_selector(const Selector& selector, const registry::Signature& signature,
                    Decision& decision);

/// What a selector looks at in calls of this operator.
void add_dependencies(const Selector& selector, const registry::Schema& schema,
                      registry::Dependencies& into);

}  // namespace opmux::dispatch
