#pragma once

#include <string>

#include "registry/dependencies.hpp"
#include "registry/reason.hpp"
#include "registry/record.hpp"

namespace opmux::dispatch {

/// Asks an implementation's verifier. It sees the facts that its `verify_reads` lists and nothing
/// else. Returns none (accepted, or no verifier), verify_refused or verify_broken, with the text.
registry::Reason run_verifier(const registry::ImplementationRecord& implementation,
                              const registry::Signature& signature, std::string& text);

/// What registry::has_default looks at for argument `index`.
void add_known_default(const registry::Schema& schema, size_t index, registry::Dependencies& into);

}  // namespace opmux::dispatch
