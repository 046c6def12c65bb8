#include "constants.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "gil.hpp"

namespace opmux::python {

struct ParameterConstants::Entry {
  Constant constant;
  uint64_t version;
  Reference watch;  ///< weak reference whose callback removes the entry
};

struct ParameterConstants::Table {
  std::unordered_map<PyObject*, Entry> entries;
  std::vector<Constant> retired;  ///< replaced constants that running calls may still use
};

namespace {

constexpr const char* kCapsule = "opmux.parameter";

/// Data of the weak reference's callback; owned by its capsule.
struct Watch {
  ParameterConstants* constants;
  PyObject* parameter;
};

PyObject* parameter_gone(PyObject* capsule, PyObject*) {
  auto* watch = static_cast<Watch*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (watch == nullptr) return nullptr;
  watch->constants->forget(watch->parameter);
  Py_RETURN_NONE;
}

PyMethodDef gone_method = {"parameter_gone", parameter_gone, METH_O, nullptr};

Reference watch_parameter(ParameterConstants* constants, PyObject* parameter) {
  const auto free_watch = [](PyObject* capsule) {
    delete static_cast<Watch*>(PyCapsule_GetPointer(capsule, kCapsule));
  };
  auto* const watch = new Watch{constants, parameter};
  const Reference capsule = Reference::steal(PyCapsule_New(watch, kCapsule, free_watch));
  if (!capsule) {
    delete watch;
    return {};
  }
  const Reference callback =
      Reference::steal(PyCFunction_NewEx(&gone_method, capsule.get(), nullptr));
  return callback ? Reference::steal(PyWeakref_NewRef(parameter, callback.get())) : Reference();
}

bool same_tensor(const TensorView& a, const TensorView& b) {
  return a.same_start(b) && a.dtype() == b.dtype() && std::ranges::equal(a.shape(), b.shape()) &&
         std::ranges::equal(a.strides(), b.strides());
}

}  // namespace

ParameterConstants::~ParameterConstants() { delete table_; }

size_t ParameterConstants::size() const { return table_ == nullptr ? 0 : table_->entries.size(); }

const Constant* ParameterConstants::find(PyObject* parameter, const TensorSlot& slot) {
  if (slot.version() == 0) return nullptr;
  if (table_ == nullptr) table_ = new Table;
  const auto found = table_->entries.find(parameter);
  if (found == table_->entries.end()) return add(parameter, slot);
  Entry& entry = found->second;
  if (!same_tensor(entry.constant.view(), slot.view())) {
    // The parameter has new storage, so the constant of the old storage is retired.
    // Calls without the GIL may still use constants that were retired before.
    if (blocks_without_gil == 0) table_->retired.clear();
    table_->retired.push_back(std::move(entry.constant));
    table_->entries.erase(found);
    return add(parameter, slot);
  }
  if (entry.version != slot.version()) {
    entry.constant.changed();
    entry.version = slot.version();
  }
  return &entry.constant;
}

const Constant* ParameterConstants::add(PyObject* parameter, const TensorSlot& slot) {
  auto constant = runtime_->constant(slot.view());
  if (!constant) return nullptr;
  Reference watch = watch_parameter(this, parameter);
  if (!watch) {
    PyErr_Clear();
    return nullptr;
  }
  Entry entry{std::move(*constant), slot.version(), std::move(watch)};
  return &table_->entries.emplace(parameter, std::move(entry)).first->second.constant;
}

void ParameterConstants::forget(PyObject* parameter) {
  if (table_ == nullptr) return;
  const auto found = table_->entries.find(parameter);
  if (found == table_->entries.end()) return;
  // The weak reference's callback is running, so the reference must outlive the entry.
  const Reference watch = std::move(found->second.watch);
  table_->entries.erase(found);
}

}  // namespace opmux::python
