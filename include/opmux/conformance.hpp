#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/runtime.hpp>
#include <opmux/status.hpp>

/// The conformance suite for authors of kernels: generates calls of an operator and compares each
/// implementation with the reference, looking for wrong values, out-of-bounds access, modified
/// inputs, non-determinism and broken promises. A separate library: link opmux::conformance.
///
///   opmux::Result<opmux::conformance::Report> report =
///       opmux::conformance::verify(runtime, {.backends = {"simd"}, .cases = 100});
///   if (report && !report->passed()) std::cout << report->to_string();
namespace opmux::conformance {

/// Selection of implementations and cases. An empty list selects everything.
struct Options {
  std::vector<std::string> operators = {};
  std::vector<std::string> backends = {};
  std::vector<std::string> implementations = {};  ///< Ids.
  /// Calls generated for each operator; all implementations get the same ones. An implementation
  /// that accepts none of them gets more.
  uint64_t cases = 1000;
  /// Equal seeds generate equal cases.
  uint64_t seed = 1;
  /// Number of the first case. With `cases` 1 it reruns the case that a finding names.
  uint64_t first_case = 0;
  /// Continue after the first wrong case of an implementation and count all of them.
  bool count_wrong = false;
  /// Count the cases in which a call without a policy would choose the implementation.
  bool count_chosen = false;
};

/// One defect of one implementation.
struct Finding {
  std::string implementation;
  /// "value", "out_of_bounds", "input_changed", "uninitialised", "nondeterministic", "threads",
  /// "batch_variant", "crash", "outcome", "not_atomic", "other_ran", "all_refused".
  std::string kind;
  uint64_t seed = 0, number = 0;  ///< Of the case.
  std::string arguments;          ///< Of the call, as `opmux explain` takes them.
  std::string detail;             ///< The element, the value found, the value expected.

  /// Several lines, with the command that runs this case again.
  std::string to_string() const;
};

/// Result for one implementation.
struct ImplementationReport {
  std::string id;
  bool available = true;
  std::string reason;    ///< Why it is not available, in which case it was not verified.
  uint64_t cases = 0;    ///< Cases that it ran.
  uint64_t refused = 0;  ///< Cases that capabilities or verifier refused, or that it declined.
  uint64_t wrong = 0;    ///< Cases with a finding; at most 1 unless Options::count_wrong.
  uint64_t chosen = 0;   ///< Cases in which it would be chosen; see Options::count_chosen.
  std::string instead;   ///< Implementation that would be chosen most often otherwise.
  std::vector<Finding> findings;  ///< The first of each kind.

  /// Whether there are no findings; true also if it was not available.
  bool passed() const { return findings.empty(); }
};

/// Result for one operator.
struct OperatorReport {
  std::string name;
  uint64_t cases = 0;    ///< Generated cases that the reference could compute.
  uint64_t dropped = 0;  ///< Generated cases that the schema or the reference refused.
  std::string note;      ///< Why the operator could not be verified; empty otherwise.
  std::vector<ImplementationReport> implementations;
};

/// Result of verify(). A plain value.
struct Report {
  std::vector<OperatorReport> operators;

  /// Whether every available implementation of the verifiable operators passed, and there was at
  /// least one.
  bool passed() const;
  /// Cases run by all implementations together.
  uint64_t cases() const;
  /// A table of cases per operator and implementation, then the findings.
  std::string to_string() const;
};

/// Runs the suite on the calling thread and on threads of the runtime; it may take minutes. Fails
/// with `not_found` for an operator, backend or implementation that the runtime does not have. A
/// wrong kernel is a finding, not a failure. A kernel that crashes is stopped and reported if the
/// crash is on the calling thread or on a thread that opmux lent; do not run other work in the
/// process meanwhile, because signal handlers are replaced.
Result<Report> verify(Runtime& runtime, const Options& options = {});

}  // namespace opmux::conformance
