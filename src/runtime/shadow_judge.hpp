#pragma once

#include <optional>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "dispatch/operator_slot.hpp"
#include "registry/arguments.hpp"
#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::runtime {

/// The arguments of a copied call with separate memory for the results of another implementation.
class CallAgain {
 public:
  /// Outputs that `view` allows to widen become f32. Refers to the copy.
  CallAgain(const verify::CallCopy& copy, const verify::CallView& view);
  CallAgain(const CallAgain&) = delete;
  CallAgain& operator=(const CallAgain&) = delete;

  const registry::Arguments& arguments() const { return arguments_; }
  bool widened() const { return widened_; }
  /// The written values, in the order of the arguments.
  std::vector<std::vector<double>> results() const;

 private:
  void place(size_t i, const verify::CopiedArgument& from, bool wide);

  const verify::CallCopy& copy_;
  registry::Arguments arguments_;
  bool widened_ = false;
  std::vector<TensorView> tensors_;
  std::vector<std::vector<std::byte>> memory_;  ///< memory of the written arguments
};

/// The result of comparing a copied call with the reference.
struct ShadowVerdict {
  Status compared;  ///< not ok: the reference did not run, and why
  std::optional<verify::Mismatch> mismatch = {};
};

/// Runs the reference on a copied call and compares the results.
ShadowVerdict compare_with_reference(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
                                     verify::JudgedCall& judged);

/// The first output element that is NaN or infinite although all inputs are finite.
std::optional<verify::Mismatch> not_finite(const verify::CallCopy& copy,
                                           const verify::CallView& view);

}  // namespace opmux::runtime
