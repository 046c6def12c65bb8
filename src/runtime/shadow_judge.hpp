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

/// A copied call's arguments with room for the results of another implementation.
class CallAgain {
 public:
  /// Outputs that `view` lets widen are f32. Refers to the copy.
  CallAgain(const verify::CallCopy& copy, const verify::CallView& view);
  CallAgain(const CallAgain&) = delete;
  CallAgain& operator=(const CallAgain&) = delete;

  const registry::Arguments& arguments() const { return arguments_; }
  bool widened() const { return widened_; }
  /// What was written, as numbers, in the order of arguments.
  std::vector<std::vector<double>> results() const;

 private:
  void place(size_t i, const verify::CopiedArgument& from, bool wide);

  const verify::CallCopy& copy_;
  registry::Arguments arguments_;
  bool widened_ = false;
  std::vector<TensorView> tensors_;
  std::vector<std::vector<std::byte>> memory_;  ///< of what is written
};

/// What the reference makes of a call that it did not run.
struct ShadowVerdict {
  Status compared;  ///< not ok: there is nothing to compare with, and why
  std::optional<verify::Mismatch> mismatch = {};
};

/// Runs the reference on a copied call and compares.
ShadowVerdict compare_with_reference(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
                                     verify::JudgedCall& judged);

/// The first element that is NaN or infinite although nothing that was read is.
std::optional<verify::Mismatch> not_finite(const verify::CallCopy& copy,
                                           const verify::CallView& view);

}  // namespace opmux::runtime
