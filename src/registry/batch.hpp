#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "registry/snapshot.hpp"

namespace opmux::registry {

inline constexpr size_t kMostImplementations = 256;  ///< of one operator

/// What is known of an operator besides its schema.
struct OperatorMarks {
  bool standard = false;
  bool data_checked = false;
  std::string_view integer = {};  ///< an output that is made of integers, whatever is read
};

/// What became of one item of a batch.
struct Refusal {
  std::string what;  ///< id, operator, point or backend
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
  std::shared_ptr<Backend> backend;  ///< null if it was refused
};

/// Adds a batch to a snapshot that is being built. With `all_or_nothing`, one refusal refuses
/// everything (a plugin's backend) and all refusals are listed; without, each refused item is
/// listed and stops nothing else. Either way a refused operator takes only the implementations of
/// it along. Returns false if `next` must not be published.
///
/// Refused are: malformed or reserved names ("registry.name"), a backend of kind vendor without
/// vendor ("registry.vendor"), a backend that exists otherwise ("registry.backend"), undefined
/// flags ("registry.flags"), a priority outside 0 to 1000 ("registry.priority"), another schema
/// under an operator's name ("registry.schema_differs"), an unknown operator
/// ("registry.unknown_operator", with the nearest), an id that exists ("registry.duplicate"), more
/// than 256 implementations of one operator ("registry.too_many"), no run function
/// ("registry.no_run"), arguments that differ from the schema ("schema.signature"), caps that name
/// unknown things ("caps.unknown_name", "caps.value"), facts that do not exist ("registry.reads"),
/// and answers as in Registry::answer_point.
bool apply(const Batch& batch, bool all_or_nothing, RegistrySnapshot& next, BatchResult& result);

/// Defines an operator in a snapshot that is being built. `changed` tells whether it was new.
Status define_operator(RegistrySnapshot& next, std::string_view schema_text, OperatorMarks marks,
                       bool& changed);

/// Puts an answer to a declared point into a snapshot that is being built.
Status answer_declared_point(RegistrySnapshot& next, const PointSignature& signature,
                             PointAnswer answer);

}  // namespace opmux::registry
