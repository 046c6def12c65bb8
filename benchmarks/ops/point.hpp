#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

namespace opmux::bench {

/// Contents of a tensor before the first call.
enum class Fill : uint8_t {
  uniform,   ///< between -1 and 1
  below,     ///< random integers in [0, number)
  counting,  ///< 0, 1, 2, ...
  value,     ///< `number` in every element
};

/// One argument of a measured call.
struct Argument {
  enum class Kind : uint8_t { tensor, constant, boolean, absent };
  std::string name;
  Kind kind = Kind::absent;
  DType dtype = {};
  std::vector<int64_t> shape = {};
  Fill fill = Fill::uniform;
  double number = 0;
};

/// One call to measure: an operator and its arguments in the order of the schema.
struct Point {
  std::string op;
  std::string label;  ///< for example "bf16 tokens=16 hidden=4096"
  int64_t tokens = 0, hidden = 0;
  DType dtype = {};
  double work = 0;  ///< multiplications or accessed elements; proportional to the time
  std::vector<Argument> arguments = {};

  std::string name() const { return op + " " + label; }
};

}  // namespace opmux::bench
