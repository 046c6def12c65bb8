#pragma once

#include "reference.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <opmux/detail/call_site.hpp>

#include "ambient.hpp"
#include "call_form.hpp"
#include "constants.hpp"
#include "signature.hpp"
#include "tensor_slot.hpp"

namespace opmux::python {

/// Converts the arguments of a Python call for the engine. Frames are reused across calls, and one
/// call uses a frame at a time. All functions need the GIL.
class ArgumentFrame {
 public:
  ArgumentFrame(const Signature& signature, ParameterConstants& constants);

  enum class Converted : uint8_t { ok, failed, reroute };
  /// Converts arguments in vectorcall layout. `failed` sets a Python exception; `reroute` means
  /// that the call must go through the tensors' library.
  /// `for_plan`: ambient() is not asked, because the decision of a plan is made.
  Converted take(PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                 bool for_plan = false);
  /// Adds an allocated output that the caller did not pass. Returns false with an exception set on
  /// failure.
  bool add_output(size_t i, PyObject* object);
  /// Releases the DLPack capsules that the call borrowed.
  void finish() {
    if (lent_) [[unlikely]]
      give_back();
  }

  /// The ambient facts that torch states for the call that take() converted.
  uint32_t ambient() { return torch_ambient(modes_); }
  /// Whether a tensor of the call is in memory of a device.
  bool on_device() const { return elsewhere_ != nullptr; }
  /// Writes the current stream of that device, as the library of the tensor states it; null if the
  /// library states none. Returns false with an exception set on failure.
  bool current_stream(void*& stream) const;
  /// The arguments in the form of the C API, for everything but the fast path.
  std::vector<opmux_arg> c_arguments() const;
  /// Whether the caller did not pass a required output.
  bool lacks_output() const { return lacks_output_; }
  /// The largest number of elements that the call writes to one tensor.
  int64_t elements_written() const { return elements_written_; }

  PyObject* given[OPMUX_MAX_ARGS] = {};  ///< borrowed, by schema position; null if not passed
  ArgValue values[OPMUX_MAX_ARGS] = {};
  CallSite site;
  uint32_t tensors = 0;         ///< number of tensor arguments
  bool words_possible = false;  ///< the call fits the engine's fastest entry: few, tensors first

  /// Whether all inputs of shape inference are the same as at the previous call of this function.
  /// If so, `inferred` is still valid.
  bool infers_as_before();
  std::vector<OutputInfo> inferred;  ///< inferred shapes and dtypes of the outputs

  const TensorSlot& slot(size_t i) const { return slots_[i]; }
  /// Raises the error for a call that must be rerouted when no reroute hook is set.
  void raise_not_taken() const;
  const Signature& signature() const { return *signature_; }

  ArgumentFrame* next_idle = nullptr;

 private:
  bool repeats(PyObject* const* args, bool for_plan);
  bool repeats_in_place(uint32_t tensors_met, bool for_plan);
  bool place(PyObject* const* args);
  bool repeats_otherwise(CallForm::Argument& argument, PyObject* object, bool& converted);
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
  void look_at_outputs();

  const Signature* signature_;
  ParameterConstants* constants_;
  std::unique_ptr<TensorSlot[]> slots_;
  CallForm form_;
  std::array<ArgTag, OPMUX_MAX_ARGS> tags_{};
  uint32_t count_ = 0;
  std::array<ArgTag, OPMUX_MAX_ARGS> site_tags_{};  ///< the tags that `site` was made of
  uint32_t site_count_ = 0;
  struct Inputs;
  std::unique_ptr<Inputs> inputs_;  ///< the inputs of `inferred`
  bool lent_ = false;
  bool lacks_output_ = false;
  int64_t elements_written_ = 0;
  const TensorSlot* elsewhere_ = nullptr;  ///< a tensor that is not in CPU memory; null if none is
  struct {
    size_t argument;
    const char* type;
    int32_t outcome;
  } rerouted_{};  ///< the argument that caused the last reroute
  TorchModes modes_;
  struct Lists;
  std::unique_ptr<Lists> lists_;

 public:
  ~ArgumentFrame();
};

}  // namespace opmux::python
