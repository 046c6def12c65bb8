#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/implementation.hpp>

#include "base/system/cpu_features.hpp"
#include "registry/backend.hpp"
#include "registry/implementation/capability.hpp"
#include "registry/implementation/hint.hpp"
#include "registry/implementation/implementation_probe.hpp"
#include "registry/implementation/recorded_reads.hpp"
#include "schema/facts.hpp"
#include "schema/schema.hpp"

namespace opmux::registry {

/// The functions of an implementation, as abi.h declares them. `run` is never null once registered.
struct Kernel {
  void* user_data = nullptr;
  int32_t (*verify)(void*, const opmux_facts*, opmux_error*) = nullptr;
  int32_t (*plan)(void*, const opmux_call*, void**) = nullptr;
  void (*plan_free)(void*, void*) = nullptr;
  uint64_t (*workspace)(void*, const opmux_call*) = nullptr;
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  int32_t (*create)(void*, const opmux_arg*, uint32_t, void**, opmux_error*) = nullptr;
  int32_t (*load)(void*, void*, const opmux_arg*, uint32_t, opmux_error*) = nullptr;
  void (*destroy)(void*, void*) = nullptr;
  int32_t (*describe)(void*, void*, const opmux_node_sink*) = nullptr;
};

/// The function that a call runs: the kernel or, for a backend with streams, a wrapper that records
/// the call in the stream's history first.
struct RunEntry {
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
};

/// Copies the function pointers of `from`, an opmux_impl or a KernelFunctions (which has no
/// verify).
template <class From>
void take_functions(const From& from, Kernel& to) {
  to.user_data = from.user_data;
  to.run = from.run;
  to.plan = from.plan;
  to.plan_free = from.plan_free;
  to.workspace = from.workspace;
  to.create = from.create;
  to.load = from.load;
  to.destroy = from.destroy;
  to.describe = from.describe;
  if constexpr (requires { from.verify; }) to.verify = from.verify;
}

/// An implementation as its author describes it, before it is checked against its operator.
struct ImplementationDraft {
  std::string op, variant;
  uint32_t flags = 0;  ///< OPMUX_IMPL_*
  int priority = -1;
  uint64_t prefix_hash = 0;  ///< hash of the schema it was built for; 0 = use `signature`
  std::string signature;     ///< empty and no hash: the operator's current schema
  Caps caps;
  std::vector<Hint> hints;
  Kernel kernel;
  std::function<std::string()> available;  ///< see ImplementationProbe; may be empty
  std::optional<std::vector<schema::FactName>>
      verify_reads;  ///< nullopt = scalars, dtypes, ranks, device; if recorded: none yet
  std::optional<std::vector<schema::FactName>> plan_reads;    ///< nullopt = everything
  std::optional<std::vector<schema::FactName>> create_reads;  ///< scalars; nullopt = all options
  std::string build_id;
  std::shared_ptr<void> owner;  ///< keeps the functions' code and data alive
};

/// One registered implementation. Immutable except for `recorded` and the atomics at the end.
struct ImplementationRecord {
  std::string id, op, variant, vendor, build_id;
  Kind kind = Kind::vendor;
  int priority = 0;
  uint32_t flags = 0;
  size_t arg_count = 0;  ///< arguments it was built for; later ones must have their default
  /// It has create() and no `const` argument: it runs only in calls through an Instance.
  bool needs_instance = false;
  uint32_t number = 0;  ///< unique in the process; index of its counters
  Kernel kernel;
  RunEntry entry;
  RunEntry restoring;  ///< runs `entry` and restores the states in `left`
  Capability capability;
  std::vector<CompiledHint> hints;  ///< in the order of its author; the first that applies counts
  std::vector<schema::Fact> verify_reads;
  /// Set for a verifier with OPMUX_IMPL_VERIFY_RECORDED; decisions add to it.
  std::unique_ptr<RecordedReads> recorded;
  std::optional<std::vector<schema::Fact>> plan_reads;
  uint32_t create_args = ~uint32_t{0};  ///< bit i: create() gets argument i if it is not a tensor
  std::shared_ptr<Backend> backend;
  std::shared_ptr<void> owner;
  /// Describes an implementation of a plugin that is not loaded. Never registered.
  bool deferred = false;
  std::unique_ptr<const ImplementationProbe> probe;  ///< null: as available as its backend

  /// Set once, when the implementation is withdrawn; bound plans read it.
  mutable std::atomic<bool> withdrawn{false};
  /// Why the implementation is quarantined; null if it is not. Decisions read it.
  mutable std::atomic<const std::string*> quarantined{nullptr};
  /// The bits of base::kAllStates that a run left changed so far.
  mutable std::atomic<uint32_t> left{0};
  /// Number of runs whose states were compared.
  mutable std::atomic<uint32_t> compared{0};

  /// The function that plans run. A plan that was made before `left` changed runs `entry`.
  const RunEntry& run_entry() const {
    return left.load(std::memory_order_relaxed) == 0 ? entry : restoring;
  }
  bool has(uint32_t flag) const { return (flags & flag) != 0; }
};

using ImplementationPtr = std::shared_ptr<const ImplementationRecord>;

/// One operator of a snapshot with its implementations. Immutable.
struct OperatorRecord {
  std::shared_ptr<const schema::Schema> schema;
  std::vector<ImplementationPtr> implementations;  ///< sorted by id, bytewise
  bool standard = false;
  bool data_checked =
      false;              ///< kernels validate data (index ranges), so invalid_argument is final
  uint64_t revision = 0;  ///< changes whenever this record does
  /// Features that conditions may count on; null: all of the processor.
  std::shared_ptr<const base::CpuFeatures> cpu;
};

inline bool contains(const OperatorRecord& op, const ImplementationPtr& implementation) {
  return std::find(op.implementations.begin(), op.implementations.end(), implementation) !=
         op.implementations.end();
}

}  // namespace opmux::registry
