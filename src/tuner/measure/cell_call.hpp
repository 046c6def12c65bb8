#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

#include "conformance/case.hpp"

namespace opmux::tuner {

/// How many copies of the tensors of a call are made, so that constants come from memory and not
/// from a cache. Outputs have as many copies; other inputs are shared and stay in the caches.
struct CopyLimits {
  uint64_t cold_bytes = 0;  ///< constants of all copies together; twice the last-level cache
  uint64_t most_bytes = uint64_t{256} << 20;  ///< of all copies together
  size_t most_copies = 64;                    ///< each has a plan for each implementation
  size_t least_copies = 2;                    ///< unless they exceed most_bytes
};

/// The number of copies for tensors of these sizes.
size_t copies_of(uint64_t constant_bytes, uint64_t output_bytes, const CopyLimits& limits);

/// A call with its tensors in memory. Arguments that the schema calls `const` are passed as
/// Constants, so that implementations keep packed copies, as in a service.
class CellCall {
 public:
  /// The case and the operator must outlive it. Fails if a constant cannot be made.
  static Result<std::unique_ptr<CellCall>> make(Runtime& runtime, const Operator& op,
                                                const conformance::Case& c,
                                                const CopyLimits& limits);
  CellCall(const CellCall&) = delete;
  CellCall& operator=(const CellCall&) = delete;

  size_t copies() const { return copies_.size(); }
  /// The arguments for explain_arguments() and other functions for tools.
  std::span<const opmux_arg> arguments(size_t copy) const { return copies_[copy].arguments; }
  /// Plans that run one implementation, one for each copy; its prepared states are made.
  Result<std::vector<Plan>> bind(Runtime& runtime, const std::string& implementation) const;
  /// A plan for the first copy only.
  Result<Plan> bind_first(Runtime& runtime, const std::string& implementation) const;
  Status run(const Plan& plan, size_t copy) const;

  /// Fills the written tensors of the first copy with the elements from before the call.
  void restore();
  /// The elements of the written tensors of the first copy.
  std::vector<std::vector<std::byte>> outputs() const;

 private:
  struct Copy {
    std::deque<TensorView> views;
    std::deque<Constant> constants;
    CallSite site;
    std::vector<ArgValue> values;
    std::vector<opmux_arg> arguments;
    std::vector<std::byte*> written;  ///< the first element of each written tensor
  };
  CellCall(const Operator& op, const conformance::Case& c) : op_(op), case_(&c) {}
  Status add_copy(Runtime& runtime);
  /// Memory with the elements of a tensor, aligned as an allocator of tensors does.
  std::byte* place(const conformance::CaseArgument& argument);
  Result<Plan> bind_copy(size_t copy) const;

  Operator op_;
  const conformance::Case* case_;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::vector<std::unique_ptr<std::byte[], Free>> memory_;
  std::vector<std::byte*> shared_;  ///< by argument; null if each copy has the tensor
  std::deque<Copy> copies_;
};

}  // namespace opmux::tuner
