#include <opmux/explanation.hpp>

#include <algorithm>
#include <ostream>

#include "base/text.hpp"

namespace opmux {
namespace {

void pad_to(std::string& text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
}

std::string line_of(const Candidate& candidate, size_t id_width) {
  std::string line = candidate.accepted() ? "  \xE2\x9C\x94 " : "  \xE2\x9C\x98 ";
  std::string id = candidate.id;
  pad_to(id, id_width + 2);
  std::string verdict = candidate.verdict;
  pad_to(verdict, 12);
  line += id + verdict;
  if (!candidate.code.empty()) line += candidate.code + (candidate.reason.empty() ? "" : ": ");
  line += candidate.reason;
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

}  // namespace

std::string Explanation::to_string() const {
  std::string text = op + "  " + arguments;
  if (!device.empty()) text += "   " + device + "   generation " + std::to_string(generation);
  text += "\n";
  size_t width = 0;
  for (const Candidate& candidate : candidates) width = std::max(width, candidate.id.size());
  for (const Candidate& candidate : candidates) text += line_of(candidate, width);
  if (!candidates.empty()) {
    text += "depends on: " + (depends_on.empty() ? "nothing" : base::join(depends_on, ", "));
    if (!independent.empty()) text += "         not on: " + base::join(independent, ", ");
    text += "\n";
  }
  if (!note.empty()) text += "note: " + note + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) {
  return out << explanation.to_string();
}

}  // namespace opmux
