#include "registry/point.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "schema/schema.hpp"

namespace opmux::registry {
namespace {

constexpr std::array<std::string_view, 5> kTypeNames{"int", "float", "bool", "str", "Device"};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string_view name_of(PointType type) { return kTypeNames[static_cast<size_t>(type)]; }

Status syntax(std::string_view text) {
  return {Code::invalid_argument, "point.syntax",
          base::concat("'", text, "' is not the signature of a specialization point: the form is ",
                       "\"gemm.tile_n(Device, int) -> int\"")};
}

Result<PointType> parse_type(std::string_view word) {
  for (size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == word) return static_cast<PointType>(i);
  }
  return Status(
      Code::invalid_argument, "point.type",
      base::concat("'", word, "' is not a type of specialization points (",
                   base::join(kTypeNames, ", "), ")", base::suggestion(word, kTypeNames)));
}

Status parse_parameters(std::string_view list, std::vector<PointType>& into) {
  if (trimmed(list).empty()) return {};
  while (true) {
    const size_t comma = list.find(',');
    const Result<PointType> type = parse_type(trimmed(list.substr(0, comma)));
    if (!type) return type.error();
    into.push_back(*type);
    if (comma == list.npos) break;
    list.remove_prefix(comma + 1);
  }
  if (into.size() <= OPMUX_MAX_ARGS) return {};
  return {Code::invalid_argument, "point.syntax",
          base::concat("a specialization point takes at most ", OPMUX_MAX_ARGS, " arguments")};
}

}  // namespace

std::string PointSignature::canonical() const {
  std::vector<std::string_view> words;
  words.reserve(parameters.size());
  for (const PointType type : parameters) words.push_back(name_of(type));
  return base::concat(name, "(", base::join(words, ", "), ") -> ", name_of(answer));
}

bool PointRecord::insert(PointAnswer answer) {
  const auto before = [](const PointAnswer& a, const PointAnswer& b) {
    if (a.backend->priority() != b.backend->priority()) {
      return a.backend->priority() > b.backend->priority();
    }
    return a.backend->name() < b.backend->name();
  };
  const auto at = std::lower_bound(answers.begin(), answers.end(), answer, before);
  if (at != answers.end() && !before(answer, *at)) return false;
  answers.insert(at, std::move(answer));
  return true;
}

Result<PointSignature> parse_point_signature(std::string_view text) {
  const size_t open = text.find('('), close = text.find(')');
  if (open == text.npos || close == text.npos || close < open) return syntax(text);
  const std::string_view tail = trimmed(text.substr(close + 1));
  PointSignature signature;
  signature.name = trimmed(text.substr(0, open));
  if (!schema::valid_dotted_name(signature.name) || !tail.starts_with("->")) return syntax(text);
  if (Status bad = parse_parameters(text.substr(open + 1, close - open - 1), signature.parameters);
      !bad.ok()) {
    return bad;
  }
  const Result<PointType> answer = parse_type(trimmed(tail.substr(2)));
  if (!answer) return answer.error();
  signature.answer = *answer;
  return signature;
}

}  // namespace opmux::registry
