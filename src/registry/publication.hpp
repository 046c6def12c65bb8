#pragma once

#include <cstdint>
#include <memory>

#include "registry/snapshot.hpp"

namespace opmux::registry {

/// Gives access to the current snapshot of a registry. Thread-safe.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  virtual RegistrySnapshotPtr snapshot() const = 0;
};

/// A change of the registry, the policies, the lock or the selector that is ready to be made.
class Change {
 public:
  virtual ~Change() = default;
  /// Makes the change, or undoes it if it was made.
  virtual void exchange() noexcept = 0;
};

/// A Change that exchanges a base::Published value.
template <class Next>
class ChangeTo final : public Change {
 public:
  explicit ChangeTo(Next& next) : next_(next) {}
  void exchange() noexcept override { next_.exchange(); }

 private:
  Next& next_;
};

/// One publication, in two steps: the first makes a change under the locks of its owner, the second
/// follows without them.
class Publication {
 public:
  virtual ~Publication() = default;
  /// Makes the change and publishes the newest registry and policies. If there is not enough
  /// memory, it undoes the change and throws std::bad_alloc.
  virtual void publish(Change& change) = 0;
  /// Evaluates bound plans again and frees what was replaced. It may run selectors, verifiers and
  /// destructors of the program, so the caller must hold no lock that calls need. Returns the
  /// generation; 0 if there was no publication.
  virtual uint64_t finish() noexcept = 0;
};

/// Puts changes of a runtime's registry and policies in force. Thread-safe.
class Publisher {
 public:
  virtual ~Publisher() = default;
  virtual std::unique_ptr<Publication> begin() = 0;
  /// Stops the use of withdrawn implementations when there is no memory to publish a registry
  /// without them: calls decide again before they run, and bound plans are revoked.
  virtual void stop_withdrawn() noexcept = 0;
};

}  // namespace opmux::registry
