#include "signature.hpp"

#include "errors.hpp"

namespace opmux::python {
namespace {

std::string python_default(ArgTag type, const std::string& text) {
  if (text.empty()) return "None";
  if (type == ArgTag::logical) return text == "true" ? "True" : "False";
  if (type == ArgTag::enumeration) return "'" + text + "'";
  return text;
}

void raise_arguments(const std::string& message) {
  raise(Code::invalid_argument, "python.arguments", message);
}

}  // namespace

Signature::Signature(const Operator& op)
    : name_(op.name()), out_(Reference::steal(PyUnicode_InternFromString("out"))) {
  for (const ArgumentInfo& info : op.arguments()) {
    const auto at = static_cast<uint8_t>(parameters_.size());
    (info.output ? outputs_ : inputs_).push_back(at);
    if (info.output || info.updated) written_.push_back(at);
    Parameter& parameter = parameters_.emplace_back();
    parameter.name = info.name;
    parameter.interned = Reference::steal(PyUnicode_InternFromString(info.name.c_str()));
    traits_[at] = {info.type, info.optional, info.output, info.output || info.updated,
                   info.constant};
    ++size_;
    parameter.words = info.words;
    parameter.default_text = info.default_text;
  }
}

bool Signature::bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                     PyObject** given) const {
  if (static_cast<size_t>(count) > inputs_.size()) [[unlikely]] {
    raise_arguments(text() + " takes " + std::to_string(inputs_.size()) +
                    " positional arguments, but " + std::to_string(count) + " were passed");
    return false;
  }
  // Most operators have few arguments: a fixed count lets the compiler avoid calling memset.
  for (size_t i = 0; i < 8; ++i) given[i] = nullptr;
  for (size_t i = 8; i < traits_.size() && i < size_; ++i) given[i] = nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) given[inputs_[static_cast<size_t>(i)]] = args[i];
  if (keywords == nullptr) return true;
  const Py_ssize_t named = PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (!bind_keyword(PyTuple_GET_ITEM(keywords, i), args[count + i], given)) return false;
  }
  return true;
}

bool Signature::bind_keyword(PyObject* keyword, PyObject* value, PyObject** given) const {
  if (keyword == out_.get()) return bind_outputs(value, given);
  const int at = position_of(keyword);
  if (at < 0) [[unlikely]] {
    if (PyUnicode_Compare(keyword, out_.get()) == 0) return bind_outputs(value, given);
    const char* const word = PyUnicode_AsUTF8(keyword);
    if (word == nullptr) return false;
    raise_arguments(name_ + " has no argument '" + word + "': " + text());
    return false;
  }
  if (given[at] != nullptr) [[unlikely]] {
    raise_arguments(name_ + " got '" + parameters_[static_cast<size_t>(at)].name + "' twice");
    return false;
  }
  given[at] = value;
  return true;
}

int Signature::place_of(PyObject* keyword, PyObject* value) const {
  if (keyword != out_.get()) return position_of(keyword);
  if (outputs_.size() != 1 || value == Py_None || PyTuple_Check(value) != 0) return -1;
  return outputs_[0];
}

int Signature::position_of(PyObject* keyword) const {
  for (const uint8_t i : inputs_) {
    if (parameters_[i].interned.get() == keyword) return i;
  }
  for (const uint8_t i : inputs_) {
    if (PyUnicode_Compare(parameters_[i].interned.get(), keyword) == 0) return i;
  }
  return -1;
}

bool Signature::bind_outputs(PyObject* value, PyObject** given) const {
  if (value == Py_None) return true;
  if (outputs_.size() == 1 && PyTuple_Check(value) == 0) [[likely]] {
    given[outputs_[0]] = value;
    return true;
  }
  if (outputs_.empty()) {
    raise_arguments(name_ + " writes to its arguments and takes no out=");
    return false;
  }
  if (PyTuple_Check(value) == 0 ||
      static_cast<size_t>(PyTuple_GET_SIZE(value)) != outputs_.size()) {
    raise_arguments(name_ + " writes " + std::to_string(outputs_.size()) +
                    " tensors: out= must be a tuple of that size");
    return false;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(i));
    if (item != Py_None) given[outputs_[i]] = item;
  }
  return true;
}

std::string Signature::text() const {
  std::string text = name_ + "(";
  const char* separator = "";
  for (const uint8_t i : inputs_) {
    const Parameter& parameter = parameters_[i];
    text.append(separator).append(parameter.name);
    if (traits_[i].optional) {
      text.append("=").append(python_default(traits_[i].type, parameter.default_text));
    }
    separator = ", ";
  }
  if (!outputs_.empty()) text.append(separator).append("*, out=None");
  return text.append(")");
}

}  // namespace opmux::python
