#include "replay/dump_filter.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "policy/rules/token.hpp"

namespace opmux::replay {
namespace {

Status refuse_dump(std::string_view text, std::string_view why) {
  return {Code::invalid_argument, "record.dump",
          base::concat("'", text, "' is not of the form op:layer:step: ", why)};
}

/// The part before the next ':'; removes both from `rest`.
std::string_view next_part(std::string_view& rest) {
  const size_t colon = std::min(rest.find(':'), rest.size());
  const std::string_view part = rest.substr(0, colon);
  rest.remove_prefix(std::min(colon + 1, rest.size()));
  return part;
}

std::vector<std::string> patterns_of(std::string_view list) {
  std::vector<std::string> patterns;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) patterns.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return patterns;
}

bool read_number(std::string_view text, uint64_t& into) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && stop == text.data() + text.size();
}

bool any_fits(const std::vector<std::string>& patterns, std::string_view text) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return policy::glob_match(pattern, text);
         });
}

}  // namespace

Result<DumpFilter> DumpFilter::parse(std::string_view text) {
  if (std::ranges::count(text, ':') > 2) return refuse_dump(text, "it has more than three parts");
  DumpFilter filter;
  std::string_view rest = text;
  filter.operators = patterns_of(next_part(rest));
  for (const std::string& op : filter.operators) {
    if (!policy::valid_operator_pattern(op)) {
      return refuse_dump(text, base::concat("'", op, "' is not an operator or a pattern"));
    }
  }
  filter.layers = patterns_of(next_part(rest));
  if (rest.empty() || rest == "*") return filter;
  const size_t dash = rest.find('-');
  const bool first = read_number(rest.substr(0, dash), filter.first);
  const bool last = dash == rest.npos || read_number(rest.substr(dash + 1), filter.last);
  if (dash == rest.npos) filter.last = filter.first;
  if (!first || !last || filter.first > filter.last) {
    return refuse_dump(text, base::concat("'", rest, "' is not a step, such as 5 or 5-15"));
  }
  return filter;
}

bool DumpFilter::fits_operator(std::string_view op) const { return any_fits(operators, op); }
bool DumpFilter::fits_layer(std::string_view layer) const { return any_fits(layers, layer); }

}  // namespace opmux::replay
