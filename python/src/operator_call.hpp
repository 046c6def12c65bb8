#pragma once

#include "reference.hpp"

#include <string>

#include <opmux/runtime.hpp>

#include "argument_frame.hpp"
#include "runtime_object.hpp"
#include "scope_object.hpp"
#include "signature.hpp"

namespace opmux::python {

/// An operator that Python can call. Used with the GIL held; a call may release the GIL while a
/// kernel runs.
class OperatorCall {
 public:
  OperatorCall(Reference runtime_object, HeldRuntime& held, Operator op);
  OperatorCall(const OperatorCall&) = delete;
  OperatorCall& operator=(const OperatorCall&) = delete;
  ~OperatorCall();

  /// Makes a call. `args` has vectorcall layout: `count` positional arguments, then those named by
  /// `keywords`.
  PyObject* call(PyObject* const* args, Py_ssize_t count, PyObject* keywords);
  /// Binds a plan for arguments like these.
  Result<Plan> bind(ArgumentFrame& frame, bool for_capture) const;
  Explanation explain(ArgumentFrame& frame) const;
  Result<std::string> decide(ArgumentFrame& frame) const;

  /// Returns the operator as a builtin function, which torch.compile can substitute.
  PyObject* function(PyObject* self);

  const Operator& op() const { return op_; }
  const Signature& signature() const { return signature_; }
  HeldRuntime& runtime() const { return *held_; }

  /// A frame for one call, taken from the list of idle frames and returned to it at the end.
  class Lease {
   public:
    explicit Lease(OperatorCall& op) : op_(&op), frame_(op.take_frame()) {}
    ~Lease() {
      frame_->finish();
      frame_->next_idle = op_->idle_;
      op_->idle_ = frame_;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ArgumentFrame& operator*() const { return *frame_; }
    ArgumentFrame* operator->() const { return frame_; }

   private:
    OperatorCall* op_;
    ArgumentFrame* frame_;
  };

 private:
  ArgumentFrame* take_frame() {
    ArgumentFrame* const frame = idle_;
    if (frame == nullptr) [[unlikely]]
      return new ArgumentFrame(signature_, held_->constants);
    idle_ = frame->next_idle;
    return frame;
  }
  PyObject* call_allocating(ArgumentFrame& frame);
  PyObject* reroute(const ArgumentFrame& frame, PyObject* const* args, Py_ssize_t count,
                    PyObject* keywords) const;

  Reference runtime_object_;
  HeldRuntime* held_;
  Operator op_;
  Signature signature_;
  ArgumentFrame* idle_ = nullptr;
  std::string doc_;
  PyMethodDef method_{};
};

/// The return value of a call: its outputs, or None for in-place operators.
PyObject* outputs_of(const ArgumentFrame& frame);

/// Allocates the outputs that the caller did not pass. Returns false with an exception set on
/// failure.
bool allocate_outputs(const Operator& op, ArgumentFrame& frame, std::vector<Reference>& made);

}  // namespace opmux::python
