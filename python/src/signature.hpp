#pragma once

#include "reference.hpp"

#include <array>
#include <string>
#include <vector>

#include <opmux/operator.hpp>

namespace opmux::python {

/// The Python signature of an operator: inputs in schema order, by position or by name, and outputs
/// through `out`.
class Signature {
 public:
  explicit Signature(const Operator& op);

  struct Parameter {
    std::string name;
    Reference interned;
    std::vector<std::string> words;  ///< the values of an enum
    std::string default_text;
  };
  /// The properties that every call reads, stored together for locality.
  struct Traits {
    ArgTag type = ArgTag::none;
    bool optional = false;
    bool output = false;
    bool written = false;  ///< an output, or updated in place
    bool constant = false;
  };

  /// Stores the arguments of a call at their schema positions in `given`; arguments not passed are
  /// null. Returns false with a Python exception set on failure.
  bool bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords, PyObject** given) const;

  /// The schema position of a named argument; -1 if it is unknown or names several outputs.
  int place_of(PyObject* keyword, PyObject* value) const;

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Traits& traits(size_t i) const { return traits_[i]; }
  size_t size() const { return size_; }
  const std::vector<uint8_t>& inputs() const { return inputs_; }
  const std::vector<uint8_t>& outputs() const { return outputs_; }
  /// Positions of the outputs and of the arguments that are updated in place.
  const std::vector<uint8_t>& written() const { return written_; }
  /// "rms_norm(x, weight=None, eps=1e-06, round_before_weight=False, *, out=None)".
  std::string text() const;

 private:
  bool bind_keyword(PyObject* keyword, PyObject* value, PyObject** given) const;
  bool bind_outputs(PyObject* value, PyObject** given) const;
  int position_of(PyObject* keyword) const;

  std::array<Traits, OPMUX_MAX_ARGS> traits_{};
  size_t size_ = 0;
  std::string name_;
  std::vector<Parameter> parameters_;
  std::vector<uint8_t> inputs_, outputs_, written_;
  Reference out_;  ///< the interned string "out"
};

}  // namespace opmux::python
