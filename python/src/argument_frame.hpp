#pragma once

#include "reference.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <opmux/call_site.hpp>

#include "call_form.hpp"
#include "constants.hpp"
#include "signature.hpp"
#include "tensor_slot.hpp"

namespace opmux::python {

/// The arguments of one call on their way from Python to the engine. Kept between calls, used by
/// one call at a time; all with the GIL held.
class ArgumentFrame {
 public:
  ArgumentFrame(const Signature& signature, ParameterConstants& constants);

  enum class Converted : uint8_t { ok, failed, reroute };
  /// Turns the arguments of a call, as vectorcall has them, into what the engine takes. `failed`
  /// has a Python exception set; `reroute` wants the call to be made by the tensors' own library.
  Converted take(PyObject* const* args, Py_ssize_t count, PyObject* keywords);
  /// An output that the call was not given, made for it; false with an exception set.
  bool add_output(size_t i, PyObject* object);
  /// Gives back what the call was lent.
  void finish() {
    if (lent_) [[unlikely]]
      give_back();
  }

  /// As the C face takes them: for whatever is not the fast path.
  std::vector<opmux_arg> c_arguments() const;
  /// Whether a required output was not given.
  bool lacks_output() const;
  /// The largest number of elements that the call writes to one tensor.
  int64_t elements_written() const;

  PyObject* given[OPMUX_MAX_ARGS] = {};  ///< borrowed, by position in the schema; null: left out
  ArgValue values[OPMUX_MAX_ARGS] = {};
  CallSite site;
  uint32_t tensors = 0;         ///< of the first arguments
  bool words_possible = false;  ///< few arguments, tensors first: the engine's shortest way

  /// Whether everything that the shapes of outputs follow from is as it was when this was asked
  /// last. Keeps `inferred` good for as long as it says so.
  bool infers_as_before();
  std::vector<OutputInfo> inferred;  ///< what outputs look like

  const TensorSlot& slot(size_t i) const { return slots_[i]; }
  /// Raises why a call that should be rerouted cannot be made: nobody takes it.
  void raise_not_taken() const;
  const Signature& signature() const { return *signature_; }

  ArgumentFrame* next_idle = nullptr;

 private:
  bool repeats(PyObject* const* args, Py_ssize_t count, PyObject* keywords);
  bool repeats_otherwise(CallForm::Argument& argument, PyObject* object);
  void remember(PyObject* const* args, Py_ssize_t count, PyObject* keywords);
  void remember_argument(CallForm::Argument& argument, uint8_t at, PyObject* object);
  Converted convert();
  Converted convert_one(size_t i);
  Converted convert_tensor(size_t i, PyObject* object);
  Converted convert_scalar(size_t i, PyObject* object);
  Converted convert_enum(size_t i, PyObject* object);
  Converted convert_ints(size_t i, PyObject* object);
  Converted convert_tensors(size_t i, PyObject* object);
  Converted convert_constant(size_t i, const HeldConstant& held);
  Converted refuse_tensor(size_t i, PyObject* object, const TensorSlot& slot, int32_t outcome);
  Converted refuse_reading(size_t i) const;
  Converted refuse_type(size_t i, PyObject* object, const std::string& wanted) const;
  Converted refuse_writing(size_t i, const char* why) const;
  void give_back();
  void set_site();

  const Signature* signature_;
  ParameterConstants* constants_;
  std::unique_ptr<TensorSlot[]> slots_;
  CallForm form_;
  std::array<ArgTag, OPMUX_MAX_ARGS> tags_{};
  uint32_t count_ = 0;
  std::array<ArgTag, OPMUX_MAX_ARGS> site_tags_{};  ///< that `site` was made of
  uint32_t site_count_ = 0;
  struct Inputs;
  std::unique_ptr<Inputs> inputs_;  ///< that `inferred` follows from
  bool lent_ = false;
  struct {
    size_t argument;
    const char* type;
    int32_t outcome;
  } rerouted_{};  ///< what the last call was rerouted for
  TorchModes modes_;
  struct Lists;
  std::unique_ptr<Lists> lists_;

 public:
  ~ArgumentFrame();
};

}  // namespace opmux::python
