#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/persistent_map.hpp"
#include "base/system/cpu_features.hpp"
#include "registry/implementation/architecture.hpp"
#include "registry/point.hpp"
#include "registry/record.hpp"

namespace opmux::registry {

/// Everything that is registered at one moment. Immutable once published; ordered maps make
/// iteration deterministic. A snapshot shares the records of all operators that it did not change
/// with the one before, so that the cost of a change does not grow with the number of operators.
struct RegistrySnapshot {
  using Operators = base::PersistentMap<std::string, std::shared_ptr<const OperatorRecord>>;
  Operators operators;
  std::map<std::string, std::shared_ptr<Backend>, std::less<>> backends;
  std::map<std::string, std::shared_ptr<const PointRecord>, std::less<>> points;
  std::vector<UnclaimedAnswer> unclaimed;  ///< answers to points that are not declared yet
  /// Features that implementations and conditions may count on; null: all of the processor.
  std::shared_ptr<const base::CpuFeatures> cpu;
  /// The number of implementations of each backend that has some.
  std::map<const Backend*, size_t> implementation_counts;
  /// Architectures that the program states; the same object in all snapshots of a registry.
  std::shared_ptr<StatedArchitectures> architectures = std::make_shared<StatedArchitectures>();

  const OperatorRecord* find(std::string_view op) const;
  ImplementationPtr find_implementation(std::string_view id) const;
  /// Finds an implementation by its number; null if there is none.
  const ImplementationRecord* find(uint32_t number) const;
};

using RegistrySnapshotPtr = std::shared_ptr<const RegistrySnapshot>;

/// Stores an operator's record in a snapshot that is being built. Assigns a new revision and sorts
/// the implementations by id.
void put_operator(RegistrySnapshot& snapshot, OperatorRecord record);

/// Calls `visit` for each implementation that `after` contains and `before` does not.
template <class Visit>
void for_each_new_implementation(const RegistrySnapshot& before, const RegistrySnapshot& after,
                                 Visit&& visit) {
  for_each_difference(before.operators, after.operators, [&](const auto* was, const auto* is) {
    if (is == nullptr) return;
    for (const ImplementationPtr& implementation : is->second->implementations) {
      const bool known = was != nullptr && contains(*was->second, implementation);
      if (!known) visit(*implementation);
    }
  });
}

}  // namespace opmux::registry
