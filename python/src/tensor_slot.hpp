#pragma once

#include "reference.hpp"

#include <opmux/tensor.hpp>

#include "type_readers.hpp"

namespace opmux::python {

/// One tensor argument, reused across calls: reading a tensor of the same layout only compares the
/// layout and stores the data pointer.
class TensorSlot {
 public:
  TensorSlot() = default;
  TensorSlot(const TensorSlot&) = delete;
  TensorSlot& operator=(const TensorSlot&) = delete;
  ~TensorSlot() { drop(); }

  /// Reads a tensor and returns one of OPMUX_READ_*. The view borrows the tensor until drop().
  int32_t read(PyObject* object, TorchModes& modes) {
    PyTypeObject* const type = Py_TYPE(object);
    if (how_ == nullptr || how_->type != type) [[unlikely]]
      how_ = &reader_of(type);
    if (how_->path > ReadPath::exchange) [[unlikely]]
      return read_otherwise(object);
    opmux_read_tensor read;
    const int32_t outcome = read_borrowed(*how_, object, modes, read);
    if (outcome != OPMUX_READ_OK) [[unlikely]]
      return outcome;
    put(read);
    version_ = read.version;
    locked_ = read.locked != 0;
    // A tensor with elements but without memory is a meta or fake tensor.
    if (read.data == nullptr && elements_ != 0) [[unlikely]]
      return OPMUX_READ_PLACE;
    return OPMUX_READ_OK;
  }

  /// Releases the capsule that `__dlpack__` returned.
  void drop() {
    if (lent_) [[unlikely]] {
      lent_ = {};
      read_only_ = false;
    }
  }

  const TensorView& view() const { return view_; }
  int64_t elements() const { return elements_; }
  /// A counter that increases whenever a different layout is read; equal numbers mean equal
  /// layouts.
  uint64_t layout() const { return layout_; }
  const TypeReader& how() const { return *how_; }
  /// The version counter of the data; 0 if the tensor's library has none.
  uint64_t version() const { return version_; }
  /// Reads a tensor through the exchange API if it can be used as the last one: it has the same
  /// layout, and `written` ones can be written to. If not, returns false without an exception.
  bool repeats(PyObject* object, const TypeReader& how, TorchModes& modes, bool written);
  /// Where a reader may store another address, which is not null, for a tensor of the same layout.
  void** data_place() { return &const_cast<opmux_tensor&>(view_.c()).data; }
  /// The reason why the tensor cannot be written; null if it can.
  const char* not_writable(PyObject* object, TorchModes& modes) const {
    if (read_only_) return "is read-only";
    if (locked_ || is_locked(*how_, object, modes)) {
      return "is an inference tensor, which torch can write to only inside inference_mode(): "
             "clone() it outside";
    }
    return overlaps_ ? "has a stride of 0, so its elements share memory" : nullptr;
  }

 private:
  bool same_layout(const opmux_read_tensor& read) const {
    const opmux_tensor& own = view_.c();
    if (own.ndim != read.ndim || view_.dtype().packed() != read.dtype) return false;
    if (own.device.type != read.device_type || own.device.id != read.device_id) return false;
    if (read.strides == nullptr) return false;
    for (int32_t i = 0; i < read.ndim; ++i) {
      if (own.shape[i] != read.shape[i] || own.strides[i] != read.strides[i]) return false;
    }
    return true;
  }
  void put(const opmux_read_tensor& read) {
    if (same_layout(read)) [[likely]] {
      view_.set_data(read.data);
    } else {
      put_anew(read);
    }
  }
  void put_anew(const opmux_read_tensor& read);
  int32_t read_otherwise(PyObject* object);
  int32_t read_protocol(PyObject* object);

  TensorView view_;
  int64_t elements_ = 0;
  uint64_t version_ = 0;
  uint64_t layout_ = 0;
  const TypeReader* how_ = nullptr;
  Reference lent_;  ///< capsule returned by `__dlpack__`
  bool read_only_ = false;
  bool overlaps_ = false;  ///< a dimension has stride 0
  bool locked_ = false;    ///< an inference tensor outside of inference mode
};

}  // namespace opmux::python
