#pragma once

#include "reference.hpp"

#include <optional>
#include <string>
#include <vector>

#include <opmux/reader.h>
#include "dlpack_exchange.hpp"

/// Determines how the tensors of a Python type are read, once per type. All functions need the GIL.
namespace opmux::python {

enum class ReadPath : uint8_t {
  module,    ///< a native reader for this library reads it in place
  exchange,  ///< through the DLPack C exchange API
  protocol,  ///< through __dlpack__
  reroute,   ///< a subclass of torch.Tensor: the call goes through torch.ops
  none,      ///< not a tensor
};

struct TypeReader {
  PyTypeObject* type = nullptr;
  ReadPath path = ReadPath::none;
  const opmux_reader* reader = nullptr;
  const ExchangeApi* exchange = nullptr;
  bool torch = false;      ///< torch.Tensor or Parameter, not a subclass: autograd must be checked
  bool parameter = false;  ///< torch.nn.Parameter: may be packed if the schema says `const`
};

/// The reader of a type. The reference stays valid; its content changes when types are
/// reclassified.
const TypeReader& reader_of(PyTypeObject* type);

/// Objects of torch that the extension uses. Referenced forever once torch is imported.
struct TorchNames {
  PyObject* tensor = nullptr;
  PyObject* parameter = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* is_inference_mode_enabled = nullptr;
  PyObject* mode_flags = nullptr;   ///< dict that holds `_is_in_torch_dispatch_mode`
  PyObject* count_modes = nullptr;  ///< function that returns the number of active dispatch modes
  PyObject* is_deterministic = nullptr;
  PyObject* is_any_autocast_enabled = nullptr;
  PyObject* is_capturing = nullptr;  ///< null or None if torch was built without CUDA
};
/// Sets torch's tensor types and the functions that query its modes.
void learn_torch(const TorchNames& names);
/// Sets the native reader for torch tensors; null removes it. Reclassifies all known types.
void use_torch_reader(const opmux_reader* reader);

/// Whether torch is imported; its types and functions are known then.
bool knows_torch();
/// The native reader for torch tensors; null if none is set.
const opmux_reader* torch_reader_in_use();
/// Whether a native reader is set.
inline bool reads_in_place() { return torch_reader_in_use() != nullptr; }

/// Increases whenever types are reclassified.
extern uint64_t readers_generation;
/// Whether torch has devices whose calls can be captured in a graph.
extern bool may_capture;

/// The torch modes around a call. Each is queried at most once.
class TorchModes {
 public:
  bool grad();       ///< autograd is recording
  bool inference();  ///< inference mode is on, so inference tensors may be written
  bool dispatch();   ///< a dispatch mode, such as a tracer, must see every call
  /// Keeps the ambient facts that the native reader stated while it compared the tensors.
  void keep(uint32_t state) {
    state_ = state;
    has_state_ = true;
  }
  /// These facts; nullopt if there are none.
  std::optional<uint32_t> state() const {
    return has_state_ ? std::optional(state_) : std::nullopt;
  }
  // These are read each time.
  static bool grad_mode();      ///< torch.is_grad_enabled(), which inference mode does not change
  static bool deterministic();  ///< deterministic algorithms are required
  static bool autocast();       ///< autocast is enabled for a type of device
  static bool capturing();      ///< the current CUDA stream is being captured

 private:
  enum class Answer : uint8_t { unknown, yes, no };
  Answer grad_ = Answer::unknown, inference_ = Answer::unknown, dispatch_ = Answer::unknown;
  bool has_state_ = false;
  uint32_t state_ = 0;
};

/// Reads a tensor without owning it and returns one of OPMUX_READ_*. Only for ReadPath::module and
/// ReadPath::exchange.
int32_t read_borrowed(const TypeReader& how, PyObject* object, TorchModes& modes,
                      opmux_read_tensor& out);

/// Reads a tensor through the exchange API, if torch has no reason to see the call: a mode,
/// a gradient or a lazy bit. If not, returns false without an exception.
bool borrow_plain(const TypeReader& how, PyObject* object, TorchModes& modes, opmux_tensor& out);

/// Whether torch would refuse to write to a tensor that is read through the exchange API.
bool is_locked(const TypeReader& how, PyObject* object, TorchModes& modes);

/// Reads a tensor's layout even if a call could not use the tensor, for example because it requires
/// grad. Returns false, without an exception, if its type is read neither in place nor by exchange.
bool read_layout(const TypeReader& how, PyObject* object, opmux_read_tensor& out);

struct TypeReading {
  std::string type, path, detail;
};
/// The types seen so far, and how each is read.
std::vector<TypeReading> readings();

}  // namespace opmux::python
