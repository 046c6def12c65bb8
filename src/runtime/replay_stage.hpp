#pragma once

#include <string>
#include <vector>

#include <opmux/replay.hpp>
#include <opmux/runtime.hpp>

#include "record/recording.hpp"
#include "registry/schema.hpp"
#include "verify/expected.hpp"

namespace opmux::runtime {

/// What a recorded call should give: that of the reference, with how far right results may be away.
struct ReplayTarget {
  std::vector<verify::Tensor> tensors;  ///< of each argument; empty for what is none
  verify::CallView view;                ///< points into `tensors` and the recording
  verify::Expected expected;
};

/// Makes one recorded call with one implementation after another. Everything outlives it.
class ReplayStage {
 public:
  ReplayStage(Runtime& runtime, const Operator& op, const registry::Schema& schema,
              std::string reference)
      : runtime_(&runtime), op_(op), schema_(&schema), reference_(std::move(reference)) {}

  /// One implementation against the reference. What the call has no elements for must have been
  /// drawn before.
  ReplayedImplementation judge(const record::Recording& call, const std::string& id) const;

 private:
  struct Run {
    Status status;
    std::string ran;  ///< id; empty if nothing did
    std::vector<std::vector<std::byte>> outputs;
  };
  Run run(const record::Recording& call, const std::vector<record::RecordedArgument>& arguments,
          const std::string& id) const;
  void view_of(const record::Recording& call, ReplayTarget& target) const;
  std::vector<record::RecordedArgument> for_reference(const record::Recording& call,
                                                      const ReplayTarget& target) const;
  Status expect(const record::Recording& call, ReplayTarget& target) const;
  bool written(const record::Recording& call, size_t argument) const;

  Runtime* runtime_;
  Operator op_;
  const registry::Schema* schema_;
  std::string reference_;
};

}  // namespace opmux::runtime
