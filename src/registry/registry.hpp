#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "base/locks.hpp"
#include "base/text.hpp"
#include "registry/batch.hpp"
#include "registry/implementation/native_kernel.hpp"
#include "registry/point.hpp"
#include "registry/publication.hpp"
#include "registry/record.hpp"
#include "registry/snapshot.hpp"

namespace opmux::registry {

/// The error for an attempt to change a frozen runtime; `what` names the attempted operation.
inline Status frozen(std::string_view what) {
  return {Code::frozen, "runtime.frozen",
          base::concat(what, ": this runtime is frozen; create a new runtime to make changes")};
}

/// Operators, backends, implementations and specialization points of one runtime. Thread-safe:
/// readers take an immutable snapshot, writers build the next snapshot and publish it. After a fork
/// the child has a complete snapshot and unlocked locks, whatever the parent's threads were doing.
class Registry final : public SnapshotSource {
 public:
  RegistrySnapshotPtr snapshot() const override { return current_.get(); }

  /// Sets the publisher through which each new snapshot takes effect; null: none.
  /// Set it while no other thread uses this object.
  void set_publisher(Publisher* publisher) { publisher_ = publisher; }

  /// Restricts the features of the processor that implementations and conditions may count on. Call
  /// it before anything is registered.
  void set_cpu_features(base::CpuFeatures cpu);

  /// A frozen registry refuses new operators, implementations and answers (`frozen`,
  /// "runtime.frozen"). Registered ones can still be withdrawn.
  void freeze(bool on) noexcept;
  bool frozen() const { return frozen_.load(std::memory_order_acquire); }

  /// Defines an operator. Defining it again with the same canonical text changes nothing; a
  /// different text is refused (`already_exists`, "registry.schema_differs"), and the message
  /// quotes both texts.
  Status define(std::string_view schema_text, OperatorMarks marks = {});

  /// Adds a batch; registry/batch.hpp lists the reasons for refusals.
  BatchResult add(const Batch& batch, bool all_or_nothing);
  /// Adds several batches, each all or nothing, and publishes once. A frozen registry refuses each.
  std::vector<BatchResult> add_each(const std::vector<Batch>& batches);
  /// Adds operators and then batches, all or nothing, and publishes once. Fails with the first
  /// refusal; the message names the refused item. Returns the implementations in the order of the
  /// batches.
  Result<std::vector<ImplementationPtr>> add_together(std::span<const OperatorDraft> operators,
                                                      std::span<const Batch> batches);

  /// Removes implementations and marks them withdrawn; unknown ones are ignored. A backend that the
  /// program registered (not a plugin) is removed with its last implementation or answer. Without
  /// memory for a new snapshot, calls stop using the implementations nevertheless, and the next
  /// change removes them.
  void withdraw(const std::vector<ImplementationPtr>& implementations) noexcept;
  /// Removes a backend with all its implementations and answers.
  void withdraw_backend(std::string_view name);
  /// Removes several backends and publishes once.
  void withdraw_backends(const std::vector<std::string>& names);

  /// Declares a specialization point. Declaring it again with the same signature changes nothing; a
  /// different signature is refused ("point.signature"). Answers that plugins registered before the
  /// declaration are adopted; those with a different signature are dropped and added to `dropped`.
  Status declare_point(std::string_view signature, std::vector<Refusal>* dropped = nullptr);
  /// Answers a declared point for a registered backend. Refused: "point.unknown" with the nearest
  /// name, "point.signature", "point.backend", "point.duplicate", "point.no_function".
  Status answer_point(std::string_view signature, std::string_view backend, PointFunction answer);
  /// Removes a backend's answer to one point.
  void withdraw_answer(std::string_view signature, std::string_view backend);

 private:
  /// Applies `edit` to a copy of the current snapshot and publishes the copy if `edit` returns
  /// true. Throws std::bad_alloc, and changes nothing, if there is not enough memory.
  template <class Edit>
  void change(Edit&& edit);
  /// change() without the removal of implementations that were withdrawn before.
  template <class Edit>
  void publish(Edit&& edit);

  base::Published<RegistrySnapshot> current_;
  Publisher* publisher_ = nullptr;
  std::atomic<bool> frozen_{false};       ///< written only while no update is in progress
  std::atomic<bool> removal_due_{false};  ///< withdrawn implementations are still registered
};

}  // namespace opmux::registry
