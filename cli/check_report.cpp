#include "cli/check_report.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/padded.hpp"

namespace opmux::cli {

std::string_view name_of(Mark mark) {
  switch (mark) {
    case Mark::passed: return "passed";
    case Mark::warning: return "warning";
    case Mark::failed: return "failed";
    case Mark::skipped: return "skipped";
  }
  return "unknown";
}

bool CheckReport::passed() const {
  const auto failed = [](const auto& part) { return part.mark == Mark::failed; };
  const auto verified = [](const auto& part) { return part.report.cases > 0; };
  return std::ranges::none_of(steps, failed) && std::ranges::none_of(implementations, failed) &&
         std::ranges::any_of(implementations, verified);
}

namespace {

/// Indents the lines after the first, and drops a trailing newline.
std::string indented(std::string_view text, size_t width) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::string made;
  for (const char c : text) {
    made.push_back(c);
    if (c == '\n') made.append(width, ' ');
  }
  return made;
}

std::string line_of(const CheckStep& step) {
  const std::string said = base::concat(step.code, step.code.empty() ? "" : ": ", step.text);
  const std::string head = base::concat("  ", padded(step.name, 8));
  if (said.empty()) return base::concat(head, name_of(step.mark), "\n");
  const std::string start = head + padded(std::string(name_of(step.mark)), 10);
  return start + indented(said, start.size()) + "\n";
}

std::string summary_of(const CheckedImplementation& one) {
  if (!one.code.empty()) return base::concat(one.code, ": ", one.text);
  return base::concat(one.report.cases, " calls, ", one.report.refused, " refused");
}

std::string never_chosen(const CheckedImplementation& one) {
  return base::concat(
      "the built-in policy would never choose it on this machine: ", one.report.instead,
      " ranks above its priority of ", one.priority, " in every call that it accepts");
}

std::string lines_of(const CheckedImplementation& one, size_t width) {
  std::string text =
      base::concat("  ", padded(one.id, width), "  ", padded(std::string(name_of(one.mark)), 8),
                   "  ", summary_of(one), "\n");
  if (one.never_chosen) text += base::concat("    note: ", never_chosen(one), "\n");
  for (const conformance::Finding& finding : one.report.findings) {
    text += base::concat("    ", indented(finding.to_string(), 4), "\n");
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '&': made += "&amp;"; break;
      case '<': made += "&lt;"; break;
      case '>': made += "&gt;"; break;
      case '"': made += "&quot;"; break;
      case '\n': made += "&#10;"; break;
      default: made.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
    }
  }
  return made;
}

std::string test_case(std::string_view suite, std::string_view name, Mark mark,
                      std::string_view kind, std::string_view text) {
  const std::string head =
      base::concat("    <testcase classname=\"", escaped(suite), "\" name=\"", escaped(name), "\"");
  if (mark == Mark::failed) {
    return base::concat(head, "><failure type=\"", escaped(kind), "\" message=\"", escaped(text),
                        "\"/></testcase>\n");
  }
  if (mark == Mark::skipped) {
    return base::concat(head, "><skipped message=\"", escaped(text), "\"/></testcase>\n");
  }
  if (text.empty()) return head + "/>\n";
  return base::concat(head, "><system-out>", escaped(text), "</system-out></testcase>\n");
}

std::string test_case(const CheckedImplementation& one) {
  std::string kind = one.code, text = summary_of(one);
  if (one.never_chosen) text += "\n" + never_chosen(one);
  for (const conformance::Finding& finding : one.report.findings) {
    if (kind.empty()) kind = finding.kind;
    text += "\n" + finding.to_string();
  }
  return test_case("conformance", one.id, one.mark, kind, text);
}

template <class Parts>
auto count(const Parts& parts, Mark mark) {
  return std::ranges::count_if(parts, [&](const auto& part) { return part.mark == mark; });
}

Json json_of(const CheckStep& step) {
  return {{"name", step.name},
          {"result", name_of(step.mark)},
          {"code", step.code},
          {"text", step.text}};
}

Json json_of(const CheckedImplementation& one) {
  Json made = to_json(one.report);
  made["id"] = one.id;
  made["result"] = name_of(one.mark);
  made["code"] = one.code;
  made["text"] = one.text;
  made["priority"] = one.priority;
  made["chosen"] = one.report.chosen;
  made["chosen_instead"] = one.report.instead;
  made["never_chosen"] = one.never_chosen;
  return made;
}

template <class Parts>
Json all(const Parts& parts) {
  Json list = Json::array();
  for (const auto& part : parts) list.push_back(json_of(part));
  return list;
}

}  // namespace

std::string to_text(const CheckReport& report) {
  std::string text = report.file + "\n";
  for (const CheckStep& step : report.steps) text += line_of(step);
  size_t width = 0;
  for (const auto& one : report.implementations) width = std::max(width, one.id.size());
  if (width > 0) text += "\nagainst the reference:\n";
  for (const auto& one : report.implementations) text += lines_of(one, width);
  const auto failed =
      count(report.steps, Mark::failed) + count(report.implementations, Mark::failed);
  if (failed > 0) return text + base::concat("\n", failed, " failed\n");
  return text + (report.passed() ? "\npassed\n" : "\nnothing was verified\n");
}

Json to_json(const CheckReport& report) {
  return {{"file", report.file},
          {"passed", report.passed()},
          {"plugin",
           {{"name", report.name},
            {"version", report.version},
            {"vendor", report.vendor},
            {"build_id", report.build_id},
            {"backends", report.backends},
            {"operators", report.operators},
            {"points", report.points}}},
          {"steps", all(report.steps)},
          {"implementations", all(report.implementations)}};
}

std::string to_junit(const CheckReport& report) {
  std::string cases;
  for (const CheckStep& step : report.steps) {
    cases += test_case("plugin", step.name, step.mark, step.code, step.text);
  }
  for (const CheckedImplementation& one : report.implementations) cases += test_case(one);
  const auto number = [&](Mark mark) {
    return count(report.steps, mark) + count(report.implementations, mark);
  };
  return base::concat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
      "name=\"opmux plugin check ",
      escaped(report.file), "\" tests=\"", report.steps.size() + report.implementations.size(),
      "\" failures=\"", number(Mark::failed), "\" errors=\"0\" skipped=\"", number(Mark::skipped),
      "\">\n", cases, "  </testsuite>\n</testsuites>\n");
}

}  // namespace opmux::cli
