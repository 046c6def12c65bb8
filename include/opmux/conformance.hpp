#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/runtime.hpp>
#include <opmux/status.hpp>

/// The conformance suite: generated calls of every operator, each implementation against the
/// reference. A library of its own: link opmux::conformance.
///
///     opmux::Runtime runtime = opmux::Runtime::create({.plugins = {.folders = {folder}}}).value();
///     auto report = opmux::conformance::verify(runtime, {.backends = {"acme"}});
///     EXPECT_TRUE(report && report->passed()) << report->to_string();
namespace opmux::conformance {

/// What to verify. Empty lists leave nothing out.
struct Options {
  std::vector<std::string> operators = {};
  std::vector<std::string> backends = {};
  std::vector<std::string> implementations = {};  ///< ids
  /// How many calls are drawn per operator; every implementation gets the same ones. If it takes
  /// none of them, it gets some more.
  uint64_t cases = 1000;
  uint64_t seed = 1;
  /// The number of the first case: with `cases` 1, the case that a finding names, alone.
  uint64_t first_case = 0;
  /// Go on after an implementation's first wrong case, and count them.
  bool count_wrong = false;
  /// Count the cases in which a call without a policy would have chosen the implementation.
  bool count_chosen = false;
};

/// One thing that was wrong with one implementation.
struct Finding {
  std::string implementation;
  /// "value", "out_of_bounds", "input_changed", "uninitialised", "nondeterministic", "threads",
  /// "batch_variant", "crash", "outcome", "not_atomic", "other_ran", "all_refused".
  std::string kind;
  uint64_t seed = 0, number = 0;  ///< which case it was
  std::string arguments;          ///< of that call, as `opmux explain` takes them
  std::string detail;             ///< the element, what was found, what was expected

  /// Several lines, with the command that runs this case again.
  std::string to_string() const;
};

struct ImplementationReport {
  std::string id;
  bool available = true;
  std::string reason;    ///< why it is not available; it was then not verified
  uint64_t cases = 0;    ///< that it ran
  uint64_t refused = 0;  ///< that its capabilities or its verifier refused, or that it declined
  uint64_t wrong = 0;    ///< with a finding; at most 1 unless Options::count_wrong
  uint64_t chosen = 0;   ///< that it ran and would have been chosen for; see Options::count_chosen
  std::string instead;   ///< who was chosen most often in the others
  std::vector<Finding> findings;  ///< the first of each kind

  bool passed() const { return findings.empty(); }
};

struct OperatorReport {
  std::string name;
  uint64_t cases = 0;    ///< that were drawn and that the reference answered
  uint64_t dropped = 0;  ///< that the schema or the reference did not take
  std::string note;      ///< why nothing was verified, if so: it then counts for nothing
  std::vector<ImplementationReport> implementations;
};

struct Report {
  std::vector<OperatorReport> operators;

  /// Every available implementation of the operators that could be verified passed, and there was
  /// at least one.
  bool passed() const;
  uint64_t cases() const;  ///< run by implementations, in all
  /// A table of cases per operator and implementation, then the findings.
  std::string to_string() const;
};

/// Runs the suite. Fails with `not_found` for an operator, backend or implementation that the
/// runtime does not have; wrong kernels are no failure but findings. A kernel that crashes is
/// stopped and reported if it does so on the calling thread or on a thread that opmux lent.
Result<Report> verify(Runtime& runtime, const Options& options = {});

}  // namespace opmux::conformance
