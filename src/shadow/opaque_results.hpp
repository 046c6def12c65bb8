#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "shadow/shadow_sampler.hpp"
#include "verify/call_copy.hpp"
#include "verify/expected.hpp"

namespace opmux::shadow {

/// Tensors that an implementation of an opaque operator returned, as the outputs of a call.
class ReturnedTensors {
 public:
  explicit ReturnedTensors(const std::vector<TensorView>& tensors);
  ReturnedTensors(const ReturnedTensors&) = delete;
  ReturnedTensors& operator=(const ReturnedTensors&) = delete;

  const opmux_call& call() const { return call_; }

 private:
  std::vector<opmux_arg> arguments_;
  opmux_call call_{};
};

/// The comparison of what an implementation returned with what the reference returned.
class ComparedResults {
 public:
  /// Throws std::bad_alloc.
  ComparedResults(std::string_view op, const std::vector<TensorView>& got,
                  const std::vector<TensorView>& expected);
  ComparedResults(const ComparedResults&) = delete;
  ComparedResults& operator=(const ComparedResults&) = delete;

  /// The first wrong element; nullopt if the results agree.
  const std::optional<verify::Mismatch>& mismatch() const { return mismatch_; }
  /// Why they cannot be compared element by element although they should agree: another number of
  /// tensors, another shape or element type. Empty if they can.
  const std::string& differs() const { return differs_; }
  const verify::CallView& view() const { return view_; }

 private:
  std::vector<std::string> names_;
  std::vector<verify::Tensor> tensors_;
  verify::CallView view_;
  std::optional<verify::Mismatch> mismatch_;
  std::string differs_;
};

}  // namespace opmux::shadow
