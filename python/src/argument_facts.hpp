#pragma once

#include "reference.hpp"

#include <cstdint>
#include <vector>

#include "type_readers.hpp"

/// What a decision of a dispatchable function looked at, so that a later call can be compared with
/// it without running any verifier. All with the GIL held.
namespace opmux::python {

/// What can be asked of an argument; the numbers are those of `_facts.py`.
enum class FactKind : uint8_t {
  type = 0,
  value = 1,  ///< of a number, a str, bytes, None
  dtype = 2,
  rank = 3,
  dim = 4,  ///< `index` counts from the end if it is negative
  contiguous = 5,
  requires_grad = 6,
  device = 7,
  stride = 8,
  attribute = 9,
  length = 10,  ///< of a list or a tuple
  same = 11,    ///< the very object: a type, a dtype, a function
};
inline constexpr int kFactKinds = 12;

/// One question about an argument and its answer: a number, or an object to compare with.
struct Fact {
  FactKind kind = FactKind::type;
  int32_t index = 0;
  int64_t number = 0;
  Reference object = {}, name = {};
};

/// Everything that was asked about one argument, or about one item of a list that is one.
class ArgumentFacts {
 public:
  ArgumentFacts(uint32_t argument, std::vector<uint32_t> path)
      : argument_(argument), path_(std::move(path)) {}

  /// Adds a question, answered from the call's own arguments. False if it has no answer that could
  /// be kept; no exception is set then.
  bool ask(PyObject* const* args, FactKind kind, int32_t index, PyObject* name);
  /// Whether another call gives the same answers. Never leaves an exception.
  bool agree(PyObject* const* args) const;

  uint32_t argument() const { return argument_; }
  const std::vector<uint32_t>& path() const { return path_; }

 private:
  PyObject* find(PyObject* const* args) const;
  bool agrees(const Fact& fact, PyObject* object, const opmux_read_tensor& tensor) const;

  uint32_t argument_;
  std::vector<uint32_t> path_;
  Reference type_;
  const TypeReader* reader_ = nullptr;  ///< null: not a tensor that can be read in place
  bool layout_ = false;                 ///< some fact wants the tensor to be read
  std::vector<Fact> facts_;
};

}  // namespace opmux::python
