#pragma once

#include <string>

#include "registry/dependencies.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Runs an implementation's verifier, which can read only the facts in its `verify_reads`. Returns
/// none (accepted, or no verifier), verify_refused or verify_broken, with the text.
registry::Reason run_verifier(const registry::ImplementationRecord& implementation,
                              const registry::Signature& signature, std::string& text);

/// Adds the facts that registry::has_default reads for argument `index`.
void add_known_default(const registry::Schema& schema, size_t index, registry::Dependencies& into);

}  // namespace opmux::dispatch
