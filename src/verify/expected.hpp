#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/call_view.hpp"

namespace opmux::verify {

/// What one written tensor should hold: the reference's values, and how far from them the result of
/// a right implementation may be before it is rounded to the tensor's dtype.
struct ExpectedOutput {
  size_t argument = 0;
  std::vector<double> values, bounds;  ///< row-major

  /// The bound of every element is `relative` times its value.
  void bound_relative(double relative);
};

struct Expected {
  std::vector<ExpectedOutput> outputs;

  /// Of a tensor that is written; by the position of its argument.
  ExpectedOutput& of(const CallView& c, std::string_view name);
};

/// One element that is not what it should be.
struct Mismatch {
  size_t argument = 0;  ///< that was written
  size_t element = 0;   ///< row-major
  double got = 0;
  double expected = 0;   ///< the reference's value
  double tolerance = 0;  ///< how far from it a right result may be

  /// "y[3,5] is 2, expected 1 (the reference has 1 +- 1e-06, in f32 from 0.99 to 1.01)".
  std::string describe(const CallView& c) const;
  /// "y[3,5]".
  std::string place(const CallView& c) const;
};

/// Elements, packed and row-major, as numbers.
std::vector<double> values_of(std::span<const std::byte> packed, DType dtype);

/// Whether the reference is asked for an output in f32, so that what an implementation rounds can
/// be judged.
bool widens(const CallView& c, const ArgumentView& argument);

/// Bounds what the reference computed: `values` of each written tensor, in the order of arguments.
Expected bounded(const CallView& c, std::vector<std::vector<double>> values);

/// The same without any tolerance, for calls that write nothing or should not have run.
Expected exactly(const CallView& c, std::vector<std::vector<double>> values);

/// The first element that is not what it should be. `got` holds the packed elements of each output.
std::optional<Mismatch> judge(const CallView& c, const Expected& expected,
                              std::span<const std::vector<std::byte>> got);

}  // namespace opmux::verify
