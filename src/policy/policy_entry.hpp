#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/condition_program.hpp"
#include "policy/policy_set.hpp"
#include "registry/record.hpp"

namespace opmux::policy {

using Indices = std::vector<uint16_t>;  ///< of candidates, ascending

/// An order or prefer list turned into places for candidates.
struct TierList {
  std::vector<uint16_t> tiers;  ///< per candidate; the length of the list = not in it
  Indices outside;              ///< candidates that are not in it
};

struct CandidateBoost {
  uint16_t candidate = 0;
  double add = 0, multiply = 1;
};

/// What one rule, one per-operator order or the general fields of one layer say about the
/// candidates of one operator. A field that is not set is absent, whatever it would match.
struct PolicyEntry {
  const PolicyLayer* layer = nullptr;
  const Rule* rule = nullptr;
  size_t strength = 0;  ///< position of the layer, 0 strongest
  std::optional<ConditionProgram> when;
  Indices denied, vendor_denied;
  std::optional<Indices> outside_require, outside_allow, outside_allow_vendors;
  std::optional<TierList> prefer, order;
  std::optional<bool> strict;
  std::optional<uint8_t> transforms;  ///< bits of transform_words.hpp
  std::vector<CandidateBoost> boosts;
  bool allow_none = false;

  /// Nothing of it can change a decision about these candidates.
  bool idle() const;
};

/// Everything that `layer` (not its outer ones) says about an operator, strongest first: rules by
/// rank, then the operator's own order, then the general fields.
std::vector<PolicyEntry> entries_of(const PolicyLayer& layer, size_t strength,
                                    const registry::OperatorRecord& op);

}  // namespace opmux::policy
