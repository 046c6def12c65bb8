#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "base/published.hpp"
#include "registry/batch.hpp"
#include "registry/names.hpp"
#include "registry/native_kernel.hpp"
#include "registry/point.hpp"
#include "registry/record.hpp"
#include "registry/snapshot.hpp"

namespace opmux::registry {

/// The set of operators, backends and implementations: an object, no globals. Thread-safe; readers
/// take a snapshot, writers build the next one aside. A fork at any moment leaves the child with a
/// whole snapshot and free locks.
class Registry {
 public:
  RegistrySnapshotPtr snapshot() const { return current_.get(); }

  /// Called after each publication, outside the locks. Set it before other threads use this object.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  /// While frozen nothing is added: new operators, implementations and answers are refused
  /// (`frozen`, "runtime.frozen"). What is there may still be withdrawn.
  void freeze(bool on);
  bool frozen() const { return frozen_.load(std::memory_order_acquire); }

  /// Defines an operator. The same canonical text again is the same operator; another text under
  /// its name is refused (`already_exists`, "registry.schema_differs") with both texts.
  Status define(std::string_view schema_text, OperatorMarks marks = {});

  /// Adds a batch; see registry/batch.hpp for what is refused.
  BatchResult add(const Batch& batch, bool all_or_nothing);
  /// Adds each batch whole or not at all, and publishes once.
  std::vector<BatchResult> add_each(const std::vector<Batch>& batches);

  /// Takes implementations out again; unknown ones are ignored. Marks them withdrawn. A backend of
  /// the program itself goes with the last thing it brought.
  void withdraw(const std::vector<ImplementationPtr>& implementations);
  /// Takes a backend with all its implementations and answers out.
  void withdraw_backend(std::string_view name);
  /// Takes several out, and publishes once.
  void withdraw_backends(const std::vector<std::string>& names);

  /// Declares a specialization point; the same signature again changes nothing, another one is
  /// refused ("point.signature"). Answers that plugins gave before are adopted; those with another
  /// signature are dropped and, if `dropped` is given, listed there.
  Status declare_point(std::string_view signature, std::vector<Refusal>* dropped = nullptr);
  /// Answers a declared point for a registered backend. Refused: "point.unknown" with the nearest
  /// name, "point.signature", "point.backend", "point.duplicate", "point.no_function".
  Status answer_point(std::string_view signature, std::string_view backend, PointFunction answer);
  /// Takes a backend's answer to one point out again.
  void withdraw_answer(std::string_view signature, std::string_view backend);

 private:
  /// Publishes what `edit` made of the current snapshot, if `edit` says so.
  template <class Edit>
  void change(Edit&& edit);

  base::Published<RegistrySnapshot> current_;
  std::function<void()> changed_;
  std::atomic<bool> frozen_{false};  ///< written where no change is under way
};

}  // namespace opmux::registry
