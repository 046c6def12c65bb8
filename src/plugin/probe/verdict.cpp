#include "plugin/probe/verdict.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

constexpr std::string_view kHead = "opmux-verdict 1";
constexpr size_t kMostFields = 8;

void append_escaped(std::string& text, std::string_view field) {
  for (const char c : field) {
    switch (c) {
      case '\\': text += "\\\\"; break;
      case '\t': text += "\\t"; break;
      case '\n': text += "\\n"; break;
      default: text += c;
    }
  }
}

template <class... Fields>
void append_line(std::string& text, std::string_view word, const Fields&... fields) {
  text += word;
  const auto add = [&](const auto& field) {
    text += '\t';
    append_escaped(text, base::concat(field));
  };
  (add(fields), ...);
  text += '\n';
}

/// Removes the escapes of a field; nullopt if it is malformed.
std::optional<std::string> unescaped(std::string_view field) {
  std::string text;
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      text += field[i];
      continue;
    }
    if (++i == field.size()) return std::nullopt;
    switch (field[i]) {
      case '\\': text += '\\'; break;
      case 't': text += '\t'; break;
      case 'n': text += '\n'; break;
      default: return std::nullopt;
    }
  }
  if (!printable_text(text, Lines::many)) return std::nullopt;
  return text;
}

/// One line: its keyword and its fields.
struct Line {
  std::string_view word;
  std::vector<std::string> fields;
};

std::optional<Line> read_line(std::string_view line) {
  Line read;
  read.word = line.substr(0, line.find('\t'));
  line.remove_prefix(read.word.size());
  while (!line.empty()) {
    line.remove_prefix(1);
    const std::string_view field = line.substr(0, line.find('\t'));
    std::optional<std::string> text = unescaped(field);
    if (!text || read.fields.size() == kMostFields) return std::nullopt;
    read.fields.push_back(*std::move(text));
    line.remove_prefix(field.size());
  }
  return read;
}

template <class T>
bool number(const std::string& field, T& into) {
  const char* end = field.data() + field.size();
  const auto [at, failed] = std::from_chars(field.data(), end, into);
  return failed == std::errc() && at == end;
}

using Fields = std::vector<std::string>;

bool take_code(Fields& fields, ProbeResult& into) {
  into.code = std::move(fields[0]);
  into.text = std::move(fields[1]);
  return !into.code.empty();
}

bool take_where(Fields& fields, ProbeResult& into) {
  into.stage = std::move(fields[0]);
  return number(fields[1], into.signal) && number(fields[2], into.address);
}

bool take_plugin(Fields& fields, ProbeResult& into) {
  Manifest& manifest = into.manifest;
  manifest.name = std::move(fields[0]);
  manifest.version = std::move(fields[1]);
  manifest.vendor = std::move(fields[2]);
  manifest.build_id = std::move(fields[3]);
  return number(fields[4], manifest.flags);
}

bool take_operator(Fields& fields, ProbeResult& into) {
  into.manifest.operators.push_back(std::move(fields[0]));
  return into.manifest.operators.size() <= kMostItems;
}

bool take_point(Fields& fields, ProbeResult& into) {
  into.manifest.points.push_back(std::move(fields[0]));
  return into.manifest.points.size() <= kMostItems;
}

bool take_backend(Fields& fields, ProbeResult& into) {
  Manifest::Backend backend;
  backend.name = std::move(fields[0]);
  backend.vendor = std::move(fields[1]);
  const bool numbers = number(fields[2], backend.kind) && number(fields[3], backend.device_type) &&
                       number(fields[4], backend.flags);
  into.manifest.backends.push_back(std::move(backend));
  return numbers && into.manifest.backends.size() <= kMostItems;
}

bool take_implementation(Fields& fields, ProbeResult& into) {
  if (into.manifest.backends.empty()) return false;
  auto& all = into.manifest.backends.back().implementations;
  all.push_back({std::move(fields[0]), std::move(fields[1])});
  return all.size() <= kMostItems;
}

bool take_missing(Fields& fields, ProbeResult& into) {
  into.missing.push_back(std::move(fields[0]));
  return into.missing.size() <= kMostItems;
}

struct Kind {
  std::string_view word;
  size_t fields;
  bool (*take)(Fields&, ProbeResult&);
};
constexpr Kind kKinds[] = {{"code", 2, take_code},           {"where", 3, take_where},
                           {"plugin", 5, take_plugin},       {"operator", 1, take_operator},
                           {"point", 1, take_point},         {"backend", 5, take_backend},
                           {"impl", 2, take_implementation}, {"missing", 1, take_missing}};

bool take(Line line, ProbeResult& into) {
  const auto* kind = std::ranges::find(kKinds, line.word, &Kind::word);
  if (kind == std::end(kKinds) || line.fields.size() != kind->fields) return false;
  return kind->take(line.fields, into);
}

Status not_a_verdict(std::string_view why) {
  return {Code::invalid_argument, "probe.verdict", base::concat("not a valid verdict: ", why)};
}

void append_manifest(std::string& text, const Manifest& manifest) {
  append_line(text, "plugin", manifest.name, manifest.version, manifest.vendor, manifest.build_id,
              manifest.flags);
  for (const std::string& schema : manifest.operators) append_line(text, "operator", schema);
  for (const std::string& point : manifest.points) append_line(text, "point", point);
  for (const Manifest::Backend& backend : manifest.backends) {
    append_line(text, "backend", backend.name, backend.vendor, backend.kind, backend.device_type,
                backend.flags);
    for (const auto& [op, variant] : backend.implementations)
      append_line(text, "impl", op, variant);
  }
}

}  // namespace

std::string to_text(const ProbeResult& verdict) {
  std::string text(kHead);
  text += '\n';
  if (!verdict.ok()) append_line(text, "code", verdict.code, verdict.text);
  if (!verdict.stage.empty()) {
    append_line(text, "where", verdict.stage, verdict.signal, verdict.address);
  }
  for (const std::string& layer : verdict.missing) append_line(text, "missing", layer);
  if (verdict.ok()) append_manifest(text, verdict.manifest);
  text += "end\n";
  return text;
}

Result<ProbeResult> parse_verdict(std::string_view text) {
  if (text.size() > kLongestVerdict) return not_a_verdict("it is too long");
  ProbeResult verdict;
  bool headed = false;
  while (true) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return not_a_verdict("it is truncated");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (!std::exchange(headed, true)) {
      if (line != kHead) return not_a_verdict("its first line is wrong");
      continue;
    }
    if (line == "end") break;
    std::optional<Line> read = read_line(line);
    if (!read || !take(*std::move(read), verdict)) return not_a_verdict("a line is malformed");
  }
  if (!text.empty()) return not_a_verdict("data follows its end");
  if (verdict.ok() && verdict.manifest.name.empty())
    return not_a_verdict("it has neither an error nor a manifest");
  return verdict;
}

}  // namespace opmux::plugin
