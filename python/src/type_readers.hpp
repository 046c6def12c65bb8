#pragma once

#include "reference.hpp"

#include <string>
#include <vector>

#include <opmux/reader.h>
#include "dlpack_exchange.hpp"

/// Which way the tensors of a Python type are read; found once per type. All with the GIL held.
namespace opmux::python {

enum class ReadPath : uint8_t {
  module,    ///< a module made for this library reads it in place
  exchange,  ///< DLPack's exchange of C functions
  protocol,  ///< __dlpack__
  reroute,   ///< its library must see the call: a subclass of torch.Tensor
  none,      ///< no tensor
};

struct TypeReader {
  PyTypeObject* type = nullptr;
  ReadPath path = ReadPath::none;
  const opmux_reader* reader = nullptr;
  const ExchangeApi* exchange = nullptr;
  bool torch = false;      ///< torch.Tensor or Parameter itself: autograd has a say
  bool parameter = false;  ///< torch.nn.Parameter: may be packed where the schema says `const`
};

/// How tensors of the type are read. Valid until types are forgotten.
const TypeReader& reader_of(PyTypeObject* type);

/// Torch's own, kept for good once it is imported.
struct TorchNames {
  PyObject* tensor = nullptr;
  PyObject* parameter = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* is_inference_mode_enabled = nullptr;
  PyObject* mode_flags = nullptr;   ///< a dict: whether `_is_in_torch_dispatch_mode`
  PyObject* count_modes = nullptr;  ///< a function: how many of them see the calls that come now
};
/// Tells of torch: the types read in place, and how the modes around a call are asked for.
void learn_torch(const TorchNames& names);
/// A module that reads torch's tensors; null to go without. Types are looked at again.
void use_torch_reader(const opmux_reader* reader);

/// Whether there is a reader made for a library.
bool reads_in_place();

/// Grows with whatever changes how types are read.
extern uint64_t readers_generation;

/// The modes of torch around a call; each asked for at most once.
class TorchModes {
 public:
  bool grad();       ///< autograd is recording
  bool inference();  ///< tensors that nobody tracks may be written to
  bool dispatch();   ///< somebody wants to see every call, as those that trace

 private:
  enum class Answer : uint8_t { unknown, yes, no };
  Answer grad_ = Answer::unknown, inference_ = Answer::unknown, dispatch_ = Answer::unknown;
};

/// Reads a tensor without taking part in its ownership; one of OPMUX_READ_*. For ReadPath::module
/// and ReadPath::exchange.
int32_t read_borrowed(const TypeReader& how, PyObject* object, TorchModes& modes,
                      opmux_read_tensor& out);

/// Whether torch would refuse to write to a tensor that came by exchange.
bool is_locked(const TypeReader& how, PyObject* object, TorchModes& modes);

/// Reads what a tensor is like, whoever may use it; false, without an exception, if its type is
/// read neither in place nor by exchange.
bool read_layout(const TypeReader& how, PyObject* object, opmux_read_tensor& out);

struct TypeReading {
  std::string type, path, detail;
};
/// The types that were met so far, and how each is read.
std::vector<TypeReading> readings();

}  // namespace opmux::python
