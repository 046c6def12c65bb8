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

/// Tells of torch, once it is imported: the types read in place, and how autograd is asked.
/// `is_grad_enabled` is torch's function.
void learn_torch(PyObject* tensor_type, PyObject* parameter_type, PyObject* is_grad_enabled);
/// A module that reads torch's tensors; null to go without. Types are looked at again.
void use_torch_reader(const opmux_reader* reader);

/// Whether autograd is recording; asked at most once per call.
class GradMode {
 public:
  bool enabled();

 private:
  enum class Answer : uint8_t { unknown, yes, no } answer_ = Answer::unknown;
};

/// Reads a tensor without taking part in its ownership; one of OPMUX_READ_*. For ReadPath::module
/// and ReadPath::exchange.
int32_t read_borrowed(const TypeReader& how, PyObject* object, GradMode& grad,
                      opmux_read_tensor& out);

/// Reads what a tensor is like, whoever may use it; false, without an exception, if its type is
/// read neither in place nor by exchange.
bool read_layout(const TypeReader& how, PyObject* object, opmux_read_tensor& out);

struct TypeReading {
  std::string type, path, detail;
};
/// The types that were met so far, and how each is read.
std::vector<TypeReading> readings();

}  // namespace opmux::python
