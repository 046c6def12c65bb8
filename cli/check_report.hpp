#pragma once

#include <string>
#include <vector>

#include "cli/verify_json.hpp"

namespace opmux::cli {

/// How one thing that `opmux plugin check` looked at came out.
enum class Mark { passed, warning, failed, skipped };

/// "passed", "warning", "failed", "skipped".
std::string_view name_of(Mark mark);

/// One look at the file as a whole: its path, the file, the probe, loading it.
struct CheckStep {
  std::string name;
  Mark mark = Mark::passed;
  std::string code;  ///< reason, if it is not passed
  std::string text;  ///< what was found; may have several lines
};

/// One implementation in the conformance suite.
struct CheckedImplementation {
  std::string id;
  int priority = 0;
  Mark mark = Mark::passed;
  /// Why nothing can be said of it: "not_available", "not_verified", "crash", "hang", "exit".
  std::string code, text;
  conformance::ImplementationReport report;
  /// The built-in policy would choose another one in every call that it takes here.
  bool never_chosen = false;
};

struct CheckReport {
  std::string file;
  std::string name, version, vendor, build_id;  ///< of the plugin, as far as it came to that
  std::vector<std::string> backends, operators, points;
  std::vector<CheckStep> steps;
  std::vector<CheckedImplementation> implementations;

  /// Nothing failed, and something was verified.
  bool passed() const;
};

/// For people; with findings as `opmux verify` prints them.
std::string to_text(const CheckReport& report);
/// As docs/schemas/plugin_check.json describes it.
Json to_json(const CheckReport& report);
/// JUnit XML: a test case for each step and for each implementation.
std::string to_junit(const CheckReport& report);

}  // namespace opmux::cli
