#pragma once

#include "reference.hpp"

#include <cstdint>
#include <vector>

#include "type_readers.hpp"

/// The facts that a decision of a dispatchable function read. A later call is compared with them
/// without running a verifier. All functions need the GIL.
namespace opmux::python {

/// The kinds of facts of an argument. The numbers match `_facts.py`.
enum class FactKind : uint8_t {
  type = 0,
  value = 1,  ///< value of a number, str, bytes or None
  dtype = 2,
  rank = 3,
  dim = 4,  ///< a negative `index` counts from the end
  contiguous = 5,
  requires_grad = 6,
  device = 7,
  stride = 8,
  attribute = 9,
  length = 10,  ///< length of a list or tuple
  same = 11,    ///< identity of the object: a type, a dtype, a function
};
inline constexpr int kFactKinds = 12;

/// One fact of an argument and its value: a number, or an object to compare with.
struct Fact {
  FactKind kind = FactKind::type;
  int32_t index = 0;
  int64_t number = 0;
  Reference object = {}, name = {};
};

/// The facts that were read from one argument, or from one item of a list argument.
class ArgumentFacts {
 public:
  ArgumentFacts(uint32_t argument, std::vector<uint32_t> path)
      : argument_(argument), path_(std::move(path)) {}

  /// Adds a fact with its value in the call `args`. Returns false, without an exception, if the
  /// value cannot be stored for comparison.
  bool ask(PyObject* const* args, FactKind kind, int32_t index, PyObject* name);
  /// Whether another call has the same values. Never leaves an exception set.
  bool agree(PyObject* const* args) const;

  uint32_t argument() const { return argument_; }
  const std::vector<uint32_t>& path() const { return path_; }

 private:
  PyObject* find(PyObject* const* args) const;
  bool agrees(const Fact& fact, PyObject* object, const opmux_read_tensor& tensor) const;

  uint32_t argument_;
  std::vector<uint32_t> path_;
  Reference type_;
  const TypeReader* reader_ = nullptr;  ///< null if the argument cannot be read as a tensor
  bool layout_ = false;                 ///< some fact needs the tensor's layout
  std::vector<Fact> facts_;
};

}  // namespace opmux::python
