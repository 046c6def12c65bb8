#include <algorithm>

#include <opmux/conformance.hpp>

namespace opmux::conformance {
namespace {

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string number(uint64_t value, size_t width) {
  const std::string text = std::to_string(value);
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string line(const ImplementationReport& report, size_t width) {
  std::string text = "  " + padded(report.id, width + 2);
  if (!report.available) return text + "not available: " + report.reason + "\n";
  text += number(report.cases, 7) + " cases" + number(report.refused, 7) + " refused  ";
  if (report.passed()) return text + "passed\n";
  return text + "wrong: " + report.findings.front().kind + "\n";
}

}  // namespace

std::string Finding::to_string() const {
  const std::string op = implementation.substr(0, implementation.find('/'));
  std::string text = implementation + " is wrong: " + kind + "\n  " + detail + "\n";
  if (arguments.empty()) return text;
  text += "  call: " + op + " " + arguments + "\n";
  return text + "  reproduce with: opmux verify " + op + " --impl " + implementation + " --seed " +
         std::to_string(seed) + " --case " + std::to_string(number) + "\n";
}

bool Report::passed() const {
  bool any = false;
  for (const OperatorReport& op : operators) {
    for (const ImplementationReport& report : op.implementations) {
      if (!report.available || !op.note.empty()) continue;
      if (!report.passed()) return false;
      any = true;
    }
  }
  return any;
}

uint64_t Report::cases() const {
  uint64_t all = 0;
  for (const OperatorReport& op : operators) {
    for (const ImplementationReport& report : op.implementations) all += report.cases;
  }
  return all;
}

std::string Report::to_string() const {
  size_t width = 0, implementations = 0, verified = 0;
  for (const OperatorReport& op : operators) {
    verified += op.note.empty() ? 1 : 0;
    for (const ImplementationReport& report : op.implementations) {
      width = std::max(width, report.id.size());
      implementations += report.available && op.note.empty() ? 1 : 0;
    }
  }
  std::string table, findings;
  for (const OperatorReport& op : operators) {
    table += op.name + ": ";
    table += op.note.empty() ? std::to_string(op.cases) + " cases drawn\n"
                             : "not verified: " + op.note + "\n";
    if (!op.note.empty()) continue;
    for (const ImplementationReport& report : op.implementations) {
      table += line(report, width);
      for (const Finding& finding : report.findings) findings += finding.to_string();
    }
  }
  return table + findings + std::to_string(verified) + " operators, " +
         std::to_string(implementations) + " implementations, " + std::to_string(cases()) +
         " cases: " + (passed() ? "passed" : "not passed") + "\n";
}

}  // namespace opmux::conformance
