#pragma once

#include <vector>

#include <opmux/explanation.hpp>

#include "schema/dependencies.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

struct Evaluation;

/// Calls the program's selector and moves the candidate that it picks to the front of the order.
void apply_selector(const Selector& selector, const schema::Signature& signature,
                    Evaluation& decision);

/// Adds the facts that the selector reads in calls of this operator.
void add_dependencies(const Selector& selector, const schema::Schema& schema,
                      schema::Dependencies& into);

}  // namespace opmux::dispatch
