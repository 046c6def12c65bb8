#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "base/process.hpp"
#include "registry/names.hpp"
#include "registry/native_kernel.hpp"
#include "registry/point.hpp"
#include "registry/record.hpp"

namespace opmux::registry {

/// Everything registered at one moment. Immutable; maps give deterministic order.
struct RegistrySnapshot {
  std::map<std::string, std::shared_ptr<const OperatorRecord>, std::less<>> operators;
  std::map<std::string, std::shared_ptr<Backend>, std::less<>> backends;
  std::map<std::string, std::shared_ptr<const PointRecord>, std::less<>> points;

  const OperatorRecord* find(std::string_view op) const;
  ImplementationPtr find_implementation(std::string_view id) const;
};

using RegistrySnapshotPtr = std::shared_ptr<const RegistrySnapshot>;

/// What became of one item of a batch.
struct Refusal {
  std::string what;  ///< id, operator or point
  Status why;
};

/// One backend with all it brings, or additions to a backend that exists: committed together.
struct Batch {
  std::vector<std::string> operators;  ///< schema texts
  BackendDraft backend;
  std::vector<ImplementationDraft> implementations;
  std::vector<PointAnswerDraft> points;
};

struct BatchResult {
  std::vector<ImplementationPtr> added;
  std::vector<Refusal> refused;
  std::shared_ptr<Backend> backend;
};

/// The set of operators, backends and implementations: an object, no globals. Thread-safe; readers
/// take a snapshot, writers build the next one aside. `changed` is called after each publication,
/// outside the lock.
class Registry {
 public:
  Registry();

  RegistrySnapshotPtr snapshot() const;

  /// Defines an operator. The same canonical text again is the same operator; another text under
  /// its name is refused (`already_exists`, "registry.schema_differs") with both texts.
  Status define(std::string_view schema_text, bool standard = false);

  /// Adds a batch. With `all_or_nothing`, one refusal refuses everything (a plugin's backend);
  /// without, each refused item is listed and stops nothing else. Refusals: duplicate id
  /// ("registry.duplicate"), unknown operator ("registry.unknown_operator", with the nearest),
  /// malformed or reserved names ("registry.name"), vendor missing ("registry.vendor"), arguments
  /// that differ from the schema ("schema.signature"), caps that name unknown things, priority out
  /// of range ("registry.priority"), no run function ("registry.no_run").
  BatchResult add(Batch batch, bool all_or_nothing);

  /// Takes implementations out again; unknown ones are ignored. Marks them withdrawn.
  void withdraw(const std::vector<ImplementationPtr>& implementations);
  /// Takes a backend with all its implementations and answers out.
  void withdraw_backend(std::string_view name);

  /// Declares a specialization point, or answers one; see registry/point.hpp.
  Status declare_point(std::string_view signature);

 private:
  std::shared_ptr<const RegistrySnapshot> load() const;
  void publish(std::shared_ptr<RegistrySnapshot> next);

  mutable base::ForkMutex mutex_;  ///< writers, and readers of the pointer below
  RegistrySnapshotPtr current_;
};

}  // namespace opmux::registry
