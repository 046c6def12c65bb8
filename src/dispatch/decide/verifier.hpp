#pragma once

#include <string>
#include <vector>

#include "registry/reason.hpp"
#include "registry/record.hpp"
#include "schema/dependencies.hpp"

namespace opmux::dispatch {

/// A fact that the verifier of an implementation with OPMUX_IMPL_VERIFY_RECORDED read.
struct RecordedRead {
  const registry::ImplementationRecord* implementation;
  schema::Fact fact;
  friend bool operator==(const RecordedRead&, const RecordedRead&) = default;
};

/// A read of something besides facts (OPMUX_FACT_OUTSIDE), so that the answer cannot be cached.
struct OutsideRead {
  const registry::ImplementationRecord* implementation;
  std::string what;
  friend bool operator==(const OutsideRead&, const OutsideRead&) = default;
};

/// The reads of all verifiers in one decision.
struct VerifierReads {
  std::vector<RecordedRead> facts;  ///< by verifiers whose reads are recorded
  std::vector<OutsideRead> outside;

  void clear() {
    facts.clear();
    outside.clear();
  }
};

/// Runs an implementation's verifier, which can read the facts in its `verify_reads` or, if its
/// reads are recorded, all facts; these are added to `reads` and to the implementation's record.
/// Returns none (accepted, or no verifier), verify_refused or verify_broken, with the text.
registry::Reason run_verifier(const registry::ImplementationRecord& implementation,
                              const schema::Signature& signature, VerifierReads& reads,
                              std::string& text);

/// Adds the facts that registry::has_default reads for argument `index`.
void add_known_default(const schema::Schema& schema, size_t index, schema::Dependencies& into);

}  // namespace opmux::dispatch
