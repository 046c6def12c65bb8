#pragma once

#include <cstdint>

#include "registry/snapshot.hpp"

namespace opmux::registry {

/// Gives access to the current snapshot of a registry. Thread-safe.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  virtual RegistrySnapshotPtr snapshot() const = 0;
};

/// Puts changes of a runtime's registry and policies in force. Thread-safe.
class Publisher {
 public:
  virtual ~Publisher() = default;
  /// Publishes the newest registry and policies; returns the new generation. It may run selectors
  /// and verifiers of the program, so the caller must hold no lock that calls need.
  virtual uint64_t publish() = 0;
};

}  // namespace opmux::registry
