#pragma once

#include "reference.hpp"

#include <memory>
#include <string>

#include <opmux/implementation.hpp>

#include "operator_call.hpp"

namespace opmux::python {

inline constexpr const char* kInterpreterEnds = "the Python interpreter is ending";

/// The reason in the answer of a function that returns None or a str; throws if it raised. `what`
/// names the function.
std::string refusal_in(const Reference& answer, const char* what);

/// A Python function as an implementation. The engine may destroy it on any thread.
class PythonKernel {
 public:
  /// `function` takes the inputs in the order of the schema, `out` if there are outputs, and
  /// `stream` if `takes_stream`. `available` takes nothing; it and `verifier` may be null.
  PythonKernel(const Operator& op, Reference function, Reference verifier, Reference available,
               bool takes_stream);
  PythonKernel(const PythonKernel&) = delete;
  PythonKernel& operator=(const PythonKernel&) = delete;
  ~PythonKernel();

  Outcome run(const CallFrame& call) const;
  /// Returns the reason for a refusal; empty if the verifier accepts. Throws if it is broken.
  std::string verify(const Facts& facts) const;
  /// Returns why the implementation cannot run in this process; empty if it can.
  std::string why_unavailable() const;

 private:
  bool serves(const struct CallRecord* record, const CallFrame& call) const;
  Outcome run_with_gil(const CallFrame& call, CallRecord* record) const;
  struct Arguments;
  bool collect(const CallFrame& call, PyObject* const* given, Arguments& args) const;
  Outcome end(const CallFrame& call, const Reference& result, PyObject* out,
              CallRecord* record) const;

  const dispatch::OperatorSlot* slot_;
  Signature signature_;
  Reference function_, verifier_, available_;
  const bool takes_stream_;
};

}  // namespace opmux::python
