#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "registry/snapshot.hpp"

namespace opmux::registry {

inline constexpr size_t kMostImplementations = 256;  ///< per operator

/// Properties of an operator that its schema does not express.
struct OperatorMarks {
  bool standard = false;
  bool data_checked = false;
  std::string_view integer = {};  ///< name of an output that is inferred as i64; empty = none
};

/// An operator that the program defines.
struct OperatorDraft {
  std::string schema;
  OperatorMarks marks = {};
};

/// An item of a batch that was refused.
struct Refusal {
  std::string what;  ///< id, operator, point or backend
  Status why;
};

/// The status of a refusal, with a message that begins with the name of the refused item.
Status status_of(const Refusal& refusal);

/// A new backend with its implementations and answers, or additions to an existing backend. Applied
/// to one snapshot.
struct Batch {
  std::vector<std::string> operators;  ///< schema texts
  BackendDraft backend;
  std::vector<ImplementationDraft> implementations;
  std::vector<PointAnswerDraft> points;
};

struct BatchResult {
  std::vector<ImplementationPtr> added;
  std::vector<Refusal> refused;
  std::shared_ptr<Backend> backend;  ///< null if it was refused
};

/// Adds a batch to a snapshot that is being built. With `all_or_nothing` (a plugin's backend), one
/// refusal refuses the whole batch; otherwise only the refused items are left out. `result` lists
/// all refusals. In both modes a refused operator excludes only its implementations. Returns false
/// if `next` must not be published.
///
/// Reasons for a refusal:
///   "registry.name"              a malformed or reserved name
///   "registry.vendor"            a backend of kind vendor without a vendor
///   "registry.backend"           a backend of this name exists and differs, or is a plugin's
///   "registry.flags"             undefined flags
///   "registry.priority"          a priority above 1000
///   "registry.schema_differs"    the operator exists with a different schema
///   "registry.unknown_operator"  no such operator; the message suggests the nearest name
///   "registry.duplicate"         the implementation id exists
///   "registry.too_many"          more than 256 implementations of one operator
///   "registry.no_run"            no run function
///   "registry.hint"              see compile_hints()
///   "registry.reads"             `verify_reads` or `plan_reads` lists an unknown fact
///   "schema.signature"           built for arguments that the schema does not have
///   "caps.unknown_name", "caps.value"  see compile_caps()
///   "point.*"                    see Registry::answer_point()
bool apply(const Batch& batch, bool all_or_nothing, RegistrySnapshot& next, BatchResult& result);

/// Adds operators and then batches to a snapshot that is being built. Stops at the first refusal
/// and returns it with the name of the refused item; `next` then contains a part of the additions
/// and must not be published. Sets `changed` if something is new. Returns the implementations in
/// the order of the batches.
Result<std::vector<ImplementationPtr>> apply_together(std::span<const OperatorDraft> operators,
                                                      std::span<const Batch> batches,
                                                      RegistrySnapshot& next, bool& changed);

/// Defines an operator in a snapshot that is being built. Sets `changed` if the operator is new.
Status define_operator(RegistrySnapshot& next, std::string_view schema_text, OperatorMarks marks,
                       bool& changed);

/// Adds an answer for a declared point to a snapshot that is being built.
Status answer_declared_point(RegistrySnapshot& next, const PointSignature& signature,
                             PointAnswer answer);

}  // namespace opmux::registry
