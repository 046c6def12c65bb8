#pragma once

#include <string>
#include <vector>

#include <opmux/replay.hpp>
#include <opmux/runtime.hpp>

#include "replay/recording.hpp"
#include "schema/schema.hpp"
#include "verify/expected.hpp"

namespace opmux::replay {

/// The expected results of a recorded call: those of the reference, with tolerances.
struct ReplayTarget {
  /// One per argument; empty for arguments that are not tensors.
  std::vector<verify::Tensor> tensors;
  verify::CallView view;  ///< points into `tensors` and the recording
  verify::Expected expected;
};

/// Runs one recorded call with one implementation after another. Its arguments must outlive it.
class ReplayStage {
 public:
  ReplayStage(runtime::Core& core, const Operator& op, const schema::Schema& schema,
              std::string reference)
      : core_(&core), op_(op), schema_(&schema), reference_(std::move(reference)) {}

  /// Compares one implementation with the reference. Missing elements of the call must have been
  /// generated before.
  ReplayedImplementation judge(const Recording& call, const std::string& id) const;

 private:
  struct Run {
    Status status;
    std::string ran;  ///< id of the implementation that ran; empty if none did
    std::vector<std::vector<std::byte>> outputs;
  };
  Run run(const Recording& call, const std::vector<RecordedArgument>& arguments,
          const std::string& id) const;
  void view_of(const Recording& call, ReplayTarget& target) const;
  std::vector<RecordedArgument> for_reference(const Recording& call,
                                              const ReplayTarget& target) const;
  Status expect(const Recording& call, ReplayTarget& target) const;
  bool written(const Recording& call, size_t argument) const;

  runtime::Core* core_;
  Operator op_;
  const schema::Schema* schema_;
  std::string reference_;
};

}  // namespace opmux::replay
