#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/implementation.hpp>

#include "registry/backend.hpp"
#include "registry/capability.hpp"
#include "registry/facts.hpp"
#include "registry/schema.hpp"

namespace opmux::registry {

/// The functions of an implementation, as abi.h has them. `run` is never null.
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

/// What a call runs: the kernel or, if it only enqueues, a function that notes it for its stream.
struct RunEntry {
  int32_t (*run)(void*, const opmux_call*) = nullptr;
  void* user_data = nullptr;
};

/// Takes the functions that `from` lists: an opmux_impl's all, KernelFunctions' all but verify.
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

/// What is asked to be registered, before it is checked against its operator.
struct ImplementationDraft {
  std::string op, variant;
  uint32_t flags = 0;  ///< OPMUX_IMPL_*
  int priority = -1;
  uint64_t prefix_hash = 0;  ///< 0 = see signature
  std::string signature;     ///< empty and no hash = the operator's current schema
  Caps caps;
  Kernel kernel;
  std::optional<std::vector<FactName>> verify_reads;  ///< nothing = scalars, dtypes, ranks, device
  std::optional<std::vector<FactName>> plan_reads;    ///< nothing = everything
  std::string build_id;
  std::shared_ptr<void> owner;  ///< keeps what the functions need alive
};

/// One registered implementation. Immutable but for the words at the end.
struct ImplementationRecord {
  std::string id, op, variant, vendor, build_id;
  Kind kind = Kind::vendor;
  int priority = 0;
  uint32_t flags = 0;
  size_t arg_count = 0;  ///< arguments of the schema it was built for; the rest must be default
  uint32_t number = 0;   ///< unique in the process: index of its counters
  Kernel kernel;
  RunEntry entry;
  Capability capability;
  std::vector<Fact> verify_reads;
  std::optional<std::vector<Fact>> plan_reads;
  std::shared_ptr<Backend> backend;
  std::shared_ptr<void> owner;

  /// Set once when its registration ends; read by bound plans.
  mutable std::atomic<bool> withdrawn{false};
  /// Why it is in quarantine; null if it is not. Read by decisions.
  mutable std::atomic<const std::string*> quarantined{nullptr};

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
};

using ImplementationPtr = std::shared_ptr<const ImplementationRecord>;

/// One operator with everything registered for it, in a snapshot. Immutable.
struct OperatorRecord {
  std::shared_ptr<const Schema> schema;
  std::vector<ImplementationPtr> implementations;  ///< by id, bytewise
  bool standard = false;
  bool data_checked =
      false;              ///< its kernels look at data (index ranges): invalid_argument is final
  uint64_t revision = 0;  ///< changes whenever this record does
};

}  // namespace opmux::registry
