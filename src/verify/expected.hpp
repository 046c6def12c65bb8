#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "registry/record.hpp"
#include "verify/call_copy.hpp"

namespace opmux::verify {

/// The expected contents of one output: the reference's values, and how far a correct result may
/// differ from them before it is rounded to the tensor's dtype.
struct ExpectedOutput {
  size_t argument = 0;
  std::vector<double> values, bounds;  ///< row-major

  /// Sets the bound of every element to `relative` times the magnitude of its value.
  void bound_relative(double relative);
};

/// The expected contents of all outputs of a call.
struct Expected {
  std::vector<ExpectedOutput> outputs;

  /// The output with this argument name, which must be written.
  ExpectedOutput& of(const CallView& c, std::string_view name);
};

/// One element of a result that is outside of its bound.
struct Mismatch {
  size_t argument = 0;  ///< index of the output
  size_t element = 0;   ///< row-major element number
  double got = 0;
  double expected = 0;   ///< the reference's value
  double tolerance = 0;  ///< allowed difference from it

  /// "y[3,5] is 2, expected 1 (the reference has 1 +- 1e-06, in f32 from 0.99 to 1.01)".
  std::string describe(const CallView& c) const;
  /// "y[3,5]".
  std::string place(const CallView& c) const;
};

/// Converts packed elements to double.
std::vector<double> values_of(std::span<const std::byte> packed, DType dtype);

/// True if the reference computes this output in f32, so that the rounding of an implementation can
/// be checked.
bool widens(const CallView& c, const ArgumentView& argument);

/// Adds the operator's bounds to the reference's results: `values` of each written tensor, in the
/// order of the arguments.
Expected bounded(const CallView& c, std::vector<std::vector<double>> values);

/// bounded() without tolerance, for calls that write nothing or should not have run.
Expected exactly(const CallView& c, std::vector<std::vector<double>> values);

/// Returns the first element outside of its bound. `got` has the packed elements of each output.
std::optional<Mismatch> judge(const CallView& c, const Expected& expected,
                              std::span<const std::vector<std::byte>> got);

/// A call whose result differs from the reference. Borrows everything; valid only during the
/// callback.
struct Divergence {
  const registry::ImplementationRecord& implementation;  ///< implementation that ran
  const schema::Schema& schema;
  const CallCopy& call;      ///< inputs before the call, and outputs after it
  const Mismatch& mismatch;  ///< first wrong element
  std::string_view text;     ///< text of `mismatch`
  std::string_view what;     ///< class of the call: "f32 H<=4096 rows<=32 on cpu:0"
};

/// Receives divergences on the thread that compares, without any lock held. Must be thread-safe.
class DivergenceObserver {
 public:
  virtual ~DivergenceObserver() = default;
  virtual void saw(const Divergence& divergence) = 0;
};

}  // namespace opmux::verify
