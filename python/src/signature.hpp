#pragma once

#include "reference.hpp"

#include <array>
#include <string>
#include <vector>

#include <opmux/operator.hpp>

namespace opmux::python {

/// How an operator is called from Python: its inputs in the order of the schema, by position or by
/// name, and its outputs through `out`.
class Signature {
 public:
  explicit Signature(const Operator& op);

  struct Parameter {
    std::string name;
    Reference interned;
    std::vector<std::string> words;  ///< of an enum
    std::string default_text;
  };
  /// What every call looks at, close together.
  struct Traits {
    ArgTag type = ArgTag::none;
    bool optional = false;
    bool output = false;
    bool written = false;  ///< an output, or updated in place
    bool constant = false;
  };

  /// Puts the arguments of a call where the schema has them; what was not given is null. False
  /// with a Python exception set.
  bool bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords, PyObject** given) const;

  /// Where the schema has a named argument; -1 if that is not one place.
  int place_of(PyObject* keyword, PyObject* value) const;

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Traits& traits(size_t i) const { return traits_[i]; }
  size_t size() const { return size_; }
  const std::vector<uint8_t>& inputs() const { return inputs_; }
  const std::vector<uint8_t>& outputs() const { return outputs_; }
  /// Outputs, and what is updated in place.
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
  Reference out_;  ///< the word `out`
};

}  // namespace opmux::python
