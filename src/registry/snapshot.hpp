#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "registry/point.hpp"
#include "registry/record.hpp"

namespace opmux::registry {

/// Everything registered at one moment. Immutable; maps give deterministic order.
struct RegistrySnapshot {
  std::map<std::string, std::shared_ptr<const OperatorRecord>, std::less<>> operators;
  std::map<std::string, std::shared_ptr<Backend>, std::less<>> backends;
  std::map<std::string, std::shared_ptr<const PointRecord>, std::less<>> points;
  std::vector<UnclaimedAnswer> unclaimed;  ///< to points that nobody declared yet

  const OperatorRecord* find(std::string_view op) const;
  ImplementationPtr find_implementation(std::string_view id) const;
  /// By its number; null if it is not there.
  const ImplementationRecord* find(uint32_t number) const;
};

using RegistrySnapshotPtr = std::shared_ptr<const RegistrySnapshot>;

/// Puts an operator's record into a snapshot that is being built, with a revision of its own and
/// its implementations in order.
void put_operator(RegistrySnapshot& snapshot, OperatorRecord record);

}  // namespace opmux::registry
