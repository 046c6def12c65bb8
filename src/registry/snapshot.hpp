#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "registry/point.hpp"
#include "registry/record.hpp"

namespace opmux::registry {

/// Everything that is registered at one moment. Immutable once published; ordered maps make
/// iteration deterministic.
struct RegistrySnapshot {
  std::map<std::string, std::shared_ptr<const OperatorRecord>, std::less<>> operators;
  std::map<std::string, std::shared_ptr<Backend>, std::less<>> backends;
  std::map<std::string, std::shared_ptr<const PointRecord>, std::less<>> points;
  std::vector<UnclaimedAnswer> unclaimed;  ///< answers to points that are not declared yet

  const OperatorRecord* find(std::string_view op) const;
  ImplementationPtr find_implementation(std::string_view id) const;
  /// Finds an implementation by its number; null if there is none.
  const ImplementationRecord* find(uint32_t number) const;
};

using RegistrySnapshotPtr = std::shared_ptr<const RegistrySnapshot>;

/// Stores an operator's record in a snapshot that is being built. Assigns a new revision and sorts
/// the implementations by id.
void put_operator(RegistrySnapshot& snapshot, OperatorRecord record);

}  // namespace opmux::registry
