#include "cli/migrate/migration.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace opmux::cli::migrate {
namespace {

constexpr std::string_view kRuleFile = "rule";

/// A value in the flow style of YAML: keys as they are, strings in quotes.
std::string flow(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += base::concat(key, ": ");
    text += flow(item);
  }
  return value.is_object() ? base::concat("{", text, "}") : base::concat("[", text, "]");
}

/// The first line of a refusal, without the location in the text of one rule.
std::string first_line(std::string message) {
  message.resize(std::min(message.find('\n'), message.size()));
  if (!message.starts_with(base::concat(kRuleFile, ":"))) return message;
  const size_t text = message.find(": ");
  return text == message.npos ? message : message.substr(text + 2);
}

struct Chapter {
  Place place;
  std::string_view name, title;
};

constexpr Chapter kChapters[] = {
    {Place::policy, "policy", "In this policy"},
    {Place::environment, "environment", "In the environment"},
    {Place::code, "code", "In code, when implementations are registered"},
    {Place::none, "none", "Without an equal"},
    {Place::unknown, "unknown", "Not a setting of that system"},
};

std::string_view name_of(Place place) {
  return std::ranges::find(kChapters, place, &Chapter::place)->name;
}

/// One line of a comment; a value of several lines would end the comment.
std::string line_of(const Note& note) {
  std::string line = base::concat("#   ", note.setting, " = ", note.value, ": ", note.text);
  std::ranges::replace(line, '\n', ' ');
  return base::without_controls(line) + "\n";
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lowered(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

Words split(std::string_view text, char separator) {
  Words words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    const std::string_view word = trimmed(text.substr(at, end - at));
    if (!word.empty()) words.emplace_back(word);
    at = end + 1;
  }
  return words;
}

Migration::Migration(Runtime& runtime) : runtime_(&runtime), operators_(runtime.list()) {}

void Migration::note(const Setting& setting, Place place, std::string text) {
  notes_.push_back({setting.name, setting.value, place, std::move(text)});
}

void Migration::set_variable(const Setting& setting, std::string name, std::string value,
                             std::string_view why) {
  note(setting, Place::environment, base::concat(name, "=", value, why.empty() ? "" : "; ", why));
  std::erase_if(variables_, [&](const auto& one) { return one.first == name; });
  variables_.emplace_back(std::move(name), std::move(value));
}

void Migration::set_dump(const Setting& setting, DumpPart part, std::string value,
                         std::string_view why) {
  dump_[static_cast<size_t>(part)] = std::move(value);
  set_variable(setting, "OPMUX_DUMP", base::join(dump_, ":"), why);
}

void Migration::set_default(const Setting& setting, const std::string& key, Json value,
                            std::string_view why) {
  defaults_[key] = std::move(value);
  note(setting, Place::policy, base::concat("defaults.", key, why.empty() ? "" : "; ", why));
}

void Migration::set_breaker(const Setting& setting, const std::string& key, Json value) {
  breaker_[key] = std::move(value);
  note(setting, Place::policy, base::concat("breaker.", key));
}

std::string Migration::check(const std::string& text) const {
  const Result<PolicyCheck> found = runtime_->policy().check(text, kRuleFile);
  return found ? "" : first_line(std::string(found.error().message()));
}

bool Migration::applies(const Json& rule, std::string* why) const {
  const std::string refused = check(Json{{"opmux", 1}, {"rules", Json::array({rule})}}.dump());
  if (why != nullptr) *why = refused;
  return refused.empty();
}

bool Migration::add_rule(const Setting& setting, Json rule, std::string_view why) {
  std::string refused;
  if (!applies(rule, &refused)) {
    note(setting, Place::none, refused);
    return false;
  }
  const std::string name = rule.value("name", "");
  note(setting, Place::policy, base::concat("rule \"", name, "\"", why.empty() ? "" : "; ", why));
  const auto same = [&](Json one) {
    if (one.value("name", "") == name) return true;
    Json other = rule;
    one.erase("name");
    other.erase("name");
    return one == other;
  };
  std::erase_if(rules_, same);
  rules_.push_back(std::move(rule));
  return true;
}

bool Migration::has_operator(std::string_view name) const {
  return std::ranges::any_of(operators_, [&](const OperatorInfo& op) { return op.name == name; });
}

std::string Migration::body() const {
  std::string text = "opmux: 1\n";
  if (!defaults_.empty()) text += base::concat("defaults: ", flow(defaults_), "\n");
  if (!rules_.empty()) text += "rules:\n";
  for (const Json& rule : rules_) text += base::concat("  - ", flow(rule), "\n");
  if (!breaker_.empty()) text += base::concat("breaker: ", flow(breaker_), "\n");
  return text;
}

std::string Migration::policy(std::string_view sources) const {
  std::string text = base::concat("# Made by `opmux migrate` from ",
                                  base::without_controls(sources), ".\n", body());
  for (const Chapter& chapter : kChapters) {
    std::string lines;
    for (const Note& one : notes_) {
      if (one.place == chapter.place) lines += line_of(one);
    }
    if (!lines.empty()) text += base::concat("\n# ", chapter.title, ":\n", lines);
  }
  return text;
}

Json Migration::to_json(std::string_view sources) const {
  Json notes = Json::array(), variables = Json::object();
  for (const Note& one : notes_) {
    notes.push_back({{"setting", one.setting},
                     {"value", one.value},
                     {"place", name_of(one.place)},
                     {"text", one.text}});
  }
  for (const auto& [name, value] : variables_) variables[name] = value;
  return {{"source", sources},
          {"policy", body()},
          {"environment", std::move(variables)},
          {"settings", std::move(notes)},
          {"refusal", refusal()}};
}

bool Migration::incomplete() const {
  return std::ranges::any_of(notes_, [](const Note& one) {
    return one.place == Place::none || one.place == Place::unknown;
  });
}

std::string Migration::refusal() const { return check(body()); }

}  // namespace opmux::cli::migrate
