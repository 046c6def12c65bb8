#pragma once

#include <string>
#include <vector>

#include "cli/verify_json.hpp"

namespace opmux::cli {

/// The result of one check of `opmux plugin check`.
enum class Mark { passed, warning, failed, skipped };

/// "passed", "warning", "failed", "skipped".
std::string_view name_of(Mark mark);

/// One step about the whole file: its path, its contents, the probe, or loading it.
struct CheckStep {
  std::string name;
  Mark mark = Mark::passed;
  std::string code;  ///< reason code unless the step passed
  std::string text;  ///< findings; may have several lines
};

/// The result of one implementation in the conformance suite.
struct CheckedImplementation {
  std::string id;
  int priority = 0;
  Mark mark = Mark::passed;
  /// Why it was not verified: "not_available", "not_verified", "crash", "hang", "exit".
  std::string code, text;
  conformance::ImplementationReport report;
  /// The built-in policy would choose another implementation in every call that this one accepts.
  bool never_chosen = false;
};

struct CheckReport {
  std::string file;
  std::string name, version, vendor, build_id;  ///< of the plugin, as far as they are known
  std::vector<std::string> backends, operators, points;
  std::vector<CheckStep> steps;
  std::vector<CheckedImplementation> implementations;

  /// Whether nothing failed and at least one implementation was verified.
  bool passed() const;
};

/// For people; prints findings as `opmux verify` does.
std::string to_text(const CheckReport& report);
/// In the format of docs/schemas/plugin_check.json.
Json to_json(const CheckReport& report);
/// JUnit XML: a test case for each step and for each implementation.
std::string to_junit(const CheckReport& report);

}  // namespace opmux::cli
