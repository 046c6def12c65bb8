#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/condition_program.hpp"
#include "policy/policy_set.hpp"
#include "registry/record.hpp"

namespace opmux::policy {

using Indices = std::vector<uint16_t>;  ///< candidate indices, ascending

/// An order or prefer list, resolved to positions of candidates.
struct TierList {
  std::vector<uint16_t> tiers;  ///< position per candidate; list length = not listed
  Indices outside;              ///< candidates that are not listed
};

/// A boost of one candidate's score.
struct CandidateBoost {
  uint16_t candidate = 0;
  double add = 0, multiply = 1;
};

/// The effect of one rule, one per-operator order or the general fields of one layer on the
/// candidates of one operator. `outside_*` are the candidates that the list does not match; nullopt
/// if the policy does not set the list.
struct PolicyEntry {
  const PolicyLayer* layer = nullptr;
  const Rule* rule = nullptr;
  size_t strength = 0;  ///< position of the layer; 0 = strongest
  std::optional<ConditionProgram> when;
  Indices denied, vendor_denied;
  std::optional<Indices> outside_require, outside_allow, outside_allow_vendors;
  std::optional<TierList> prefer, order;
  std::optional<bool> strict;
  std::optional<uint8_t> transforms;  ///< bits of transform_words.hpp
  std::vector<CandidateBoost> boosts;
  bool allow_none = false;

  /// Whether the entry cannot affect any decision about these candidates.
  bool idle() const;
};

/// The entries of `layer`, without its outer layers, for an operator. Strongest first: rules by
/// rank, then the per-operator order, then the general fields.
std::vector<PolicyEntry> entries_of(const PolicyLayer& layer, size_t strength,
                                    const registry::OperatorRecord& op);

}  // namespace opmux::policy
