#pragma once

#include <cstdint>
#include <string>

#include <opmux/status.hpp>

namespace opmux {

/// Record of one call. Pass one to Operator::with() to have it filled in:
///
///   opmux::Operator softmax = runtime.op("softmax").value();
///   float x[4] = {}, y[4];
///   opmux::CallReport report;
///   opmux::Status status = softmax.with(report)(opmux::TensorView(y, opmux::f32, {1, 4}),
///                                               opmux::TensorView(x, opmux::f32, {1, 4}));
///   if (status.ok() && report.fell_back) {
///     std::cerr << report.implementation << " ran: " << report.reason << "\n";
///   }
///
/// A call with a report reads the clock and takes the slow path; for steady monitoring read
/// Runtime::stats() instead. A report may be reused; every field is written on each call, also when
/// the call fails.
struct CallReport {
  std::string implementation;  ///< Ran last: "rms_norm/simd.avx512"; empty if none ran.
  bool fell_back = false;   ///< The first choice did not run, or a preferred candidate was refused.
  std::string reason;       ///< Why it fell back; empty otherwise.
  std::string transforms;   ///< Conversions of tensors made for it: "contiguous(x), widen(y, x)".
  bool cached = false;      ///< The decision was made before this call.
  uint64_t generation = 0;  ///< Number of the snapshot that decided.
  uint64_t select_ns = 0;   ///< Time spent checking arguments and choosing.
  uint64_t run_ns = 0;      ///< Time inside implementations, failed attempts included.
  Code outcome = Code::ok;  ///< Code of the Status that the call returned.
};

}  // namespace opmux
