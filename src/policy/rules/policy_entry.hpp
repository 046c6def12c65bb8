#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/conditions/condition_program.hpp"
#include "policy/rules/policy_set.hpp"
#include "policy/rules/token.hpp"
#include "registry/record.hpp"

/// The words of `transforms` lists.
namespace opmux::policy {

inline constexpr uint8_t kContiguous = 1, kWiden = 2;

inline constexpr std::array<std::string_view, 3> kTransformWords{"none", "contiguous", "widen"};

/// The bits for a list of words; nullopt if the list is empty, has an unknown word, or combines
/// `none` with others.
inline std::optional<uint8_t> transform_bits(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  uint8_t bits = 0;
  for (const std::string& word : words) {
    if (word == "contiguous") {
      bits |= kContiguous;
    } else if (word == "widen") {
      bits |= kWiden;
    } else if (word != "none" || words.size() > 1) {
      return std::nullopt;
    }
  }
  return bits;
}

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
  std::string condition;  ///< text of `when`; empty if the entry always applies
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

/// Whether a layer denies an implementation for all operators: by `deny`, `deny_vendors`, or a rule
/// for operator "*" without a condition.
bool denies(const PolicyLayer& layer, const Subject& subject);

}  // namespace opmux::policy
