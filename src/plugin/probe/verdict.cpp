#include "plugin/probe/verdict.hpp"

#include <algorithm>
#include <utility>

#include "base/line_records.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

constexpr std::string_view kHead = "opmux-verdict 1";

template <class... Fields>
void append_line(std::string& text, const Fields&... fields) {
  text += base::record(fields...) + "\n";
}

using base::RecordFields;

std::string take_text(RecordFields& fields) {
  std::string text = fields.text();
  if (!printable_text(text, Lines::many)) fields.refuse();
  return text;
}

void take_code(RecordFields& fields, ProbeResult& into) {
  into.code = take_text(fields);
  into.text = take_text(fields);
  if (into.code.empty()) fields.refuse();
}

void take_where(RecordFields& fields, ProbeResult& into) {
  into.stage = take_text(fields);
  into.signal = fields.integer<int32_t>();
  into.address = fields.count();
}

void take_plugin(RecordFields& fields, ProbeResult& into) {
  Manifest& manifest = into.manifest;
  manifest.name = take_text(fields);
  manifest.version = take_text(fields);
  manifest.vendor = take_text(fields);
  manifest.build_id = take_text(fields);
  manifest.flags = fields.integer<uint32_t>();
}

template <class Item>
void take_item(RecordFields& fields, std::vector<Item>& items, Item item) {
  items.push_back(std::move(item));
  if (items.size() > kMostItems) fields.refuse();
}

void take_operator(RecordFields& fields, ProbeResult& into) {
  take_item(fields, into.manifest.operators, take_text(fields));
}

void take_point(RecordFields& fields, ProbeResult& into) {
  take_item(fields, into.manifest.points, take_text(fields));
}

void take_backend(RecordFields& fields, ProbeResult& into) {
  Manifest::Backend backend;
  backend.name = take_text(fields);
  backend.vendor = take_text(fields);
  backend.kind = fields.integer<int32_t>();
  backend.device_type = fields.integer<int32_t>();
  backend.flags = fields.integer<uint32_t>();
  take_item(fields, into.manifest.backends, std::move(backend));
}

void take_device_name(RecordFields& fields, ProbeResult& into) {
  if (into.manifest.backends.empty()) return fields.refuse();
  into.manifest.backends.back().device_name = take_text(fields);
}

void take_implementation(RecordFields& fields, ProbeResult& into) {
  if (into.manifest.backends.empty()) return fields.refuse();
  Manifest::Implementation one;
  one.op = take_text(fields);
  one.variant = take_text(fields);
  take_item(fields, into.manifest.backends.back().implementations, std::move(one));
}

void take_missing(RecordFields& fields, ProbeResult& into) {
  take_item(fields, into.missing, take_text(fields));
}

struct Kind {
  std::string_view word;
  size_t fields;
  void (*take)(RecordFields&, ProbeResult&);
};
constexpr Kind kKinds[] = {{"code", 2, take_code},
                           {"where", 3, take_where},
                           {"plugin", 5, take_plugin},
                           {"operator", 1, take_operator},
                           {"point", 1, take_point},
                           {"backend", 5, take_backend},
                           {"impl", 2, take_implementation},
                           {"missing", 1, take_missing},
                           {"device_name", 1, take_device_name}};

bool take(std::string_view line, ProbeResult& into) {
  RecordFields fields(line);
  const auto* kind = std::ranges::find(kKinds, fields.text(), &Kind::word);
  if (kind == std::end(kKinds) || fields.left() != kind->fields) return false;
  kind->take(fields, into);
  return fields.good();
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
    if (!backend.device_name.empty()) append_line(text, "device_name", backend.device_name);
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
    if (!take(line, verdict)) return not_a_verdict("a line is malformed");
  }
  if (!text.empty()) return not_a_verdict("data follows its end");
  if (verdict.ok() && verdict.manifest.name.empty())
    return not_a_verdict("it has neither an error nor a manifest");
  return verdict;
}

}  // namespace opmux::plugin
