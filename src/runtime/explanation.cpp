#include <opmux/explanation.hpp>

#include <algorithm>
#include <ostream>

#include "base/text.hpp"

namespace opmux {
namespace {

constexpr std::string_view kLastResort = "last resort";

void pad_to(std::string& text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
}

/// "any number of rows and any H take the same plan".
std::string freedom(const std::vector<std::string>& independent) {
  std::string text;
  for (size_t i = 0; i < independent.size(); ++i) {
    if (i != 0) text += i + 1 == independent.size() ? " and " : ", ";
    text += independent[i] == "rows" ? "any number of rows" : "any " + independent[i];
  }
  return text + (independent.size() == 1 ? " takes the same plan" : " take the same plan");
}

/// The first two words of a description of a machine, "GenuineIntel 6-85-7". The JSON has the
/// whole description.
std::string_view processor_of(std::string_view machine) {
  return machine.substr(0, machine.find(' ', machine.find(' ') + 1));
}

/// "f32 K=64 threads=1 eager, M=5..95; bundle fleet-7.bundle (sha256 9f86d081), 2026-11-16, CPU".
std::string row_text(const Measurement& row) {
  constexpr size_t kShortDigest = 8;
  const std::string origin = row.bundle.empty()
                                 ? "measured by this process"
                                 : base::concat(row.found_in, " bundle ", row.bundle, " (sha256 ",
                                                row.digest.substr(0, kShortDigest), ")");
  return base::concat(row.cell, row.range.empty() ? "" : ", ", row.range, "; ", origin, ", ",
                      row.date, ", ", processor_of(row.machine), row.aged ? "; aged" : "");
}

std::string line_of(const Candidate& candidate, size_t id_width) {
  std::string line = candidate.accepted() ? "  \xE2\x9C\x94 " : "  \xE2\x9C\x98 ";
  std::string id = candidate.id;
  pad_to(id, id_width + 2);
  std::string verdict = candidate.verdict;
  pad_to(verdict, 12);
  line += id + verdict;
  if (!candidate.code.empty()) {
    const bool continues = candidate.reason.empty() || candidate.reason.starts_with("by ");
    line += candidate.code + (continues ? " " : ": ");
  }
  if (candidate.verdict != kLastResort) line += candidate.reason;
  while (line.ends_with(' ')) line.pop_back();
  if (candidate.measured && candidate.verdict == "chosen")
    line += "\n      row " + row_text(*candidate.measured);
  return line + "\n";
}

}  // namespace

std::string Explanation::to_string() const {
  std::string text = op + "  " + arguments;
  if (!device.empty()) text += "   " + device + "   generation " + std::to_string(generation);
  text += "\n";
  size_t width = 0;
  for (const Candidate& candidate : candidates) width = std::max(width, candidate.id.size());
  std::string last_resort;
  for (const Candidate& candidate : candidates) {
    (candidate.verdict == kLastResort ? last_resort : text) += line_of(candidate, width);
  }
  text += last_resort;
  if (!candidates.empty()) {
    const std::string facts = depends_on.empty() ? "nothing" : base::join(depends_on, ", ");
    text += "depends on: " + facts;
    // On a long line of facts the sentence would be overlooked, so it gets a line.
    constexpr size_t kFewFacts = 60;
    const std::string_view gap = facts.size() > kFewFacts ? "\n            " : "         ";
    if (!independent.empty()) text.append(gap).append(freedom(independent));
    text += "\n";
  }
  if (!note.empty()) text += "note: " + note + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) {
  return out << explanation.to_string();
}

}  // namespace opmux
