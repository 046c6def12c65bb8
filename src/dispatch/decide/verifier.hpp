#pragma once

#include <string>

#include "registry/reason.hpp"
#include "registry/record.hpp"
#include "schema/dependencies.hpp"

namespace opmux::dispatch {

/// Runs an implementation's verifier, which can read only the facts in its `verify_reads`. Returns
/// none (accepted, or no verifier), verify_refused or verify_broken, with the text.
registry::Reason run_verifier(const registry::ImplementationRecord& implementation,
                              const schema::Signature& signature, std::string& text);

/// Adds the facts that registry::has_default reads for argument `index`.
void add_known_default(const schema::Schema& schema, size_t index, schema::Dependencies& into);

}  // namespace opmux::dispatch
