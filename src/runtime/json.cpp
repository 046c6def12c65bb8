#include <cmath>

#include <opmux/instance.hpp>
#include <opmux/runtime.hpp>

#include "base/json_writer.hpp"

namespace opmux {
namespace {

using base::JsonWriter;

void write(JsonWriter& json, const Hint& hint) {
  json.open('{').key("dim").text(hint.dim).key("least").number(hint.least).key("most");
  hint.most == 0 ? json.null() : json.number(hint.most);
  json.key("priority").number(int64_t{hint.priority}).close('}');
}

void write(JsonWriter& json, const Measurement& row) {
  json.open('{').key("verdict").text(row.verdict).key("baseline").text(row.baseline);
  json.key("speed").number(row.speed).key("low").number(row.low).key("high").number(row.high);
  json.key("rounds").number(row.rounds).key("rigor").text(row.rigor).key("date").text(row.date);
  json.key("cell").text(row.cell).key("range").text(row.range).key("bundle").text(row.bundle);
  json.key("digest").text(row.digest).key("found_in").text(row.found_in);
  json.key("machine").text(row.machine).key("aged").boolean(row.aged).close('}');
}

void write_counts(JsonWriter& json, const TuningCounts& counts) {
  json.key("used").number(counts.used).key("aged").number(counts.aged);
  json.key("foreign").number(counts.foreign).key("stale").number(counts.stale);
  json.key("damaged").number(counts.damaged);
}

void write(JsonWriter& json, const Candidate& candidate) {
  json.open('{').key("id").text(candidate.id).key("verdict").text(candidate.verdict);
  json.key("code").text(candidate.code).key("reason").text(candidate.reason);
  json.key("priority").number(int64_t{candidate.priority}).key("score").number(candidate.score);
  json.key("transforms").text(candidate.transforms).key("hint");
  candidate.hint ? write(json, *candidate.hint) : static_cast<void>(json.null());
  if (candidate.measured) write(json.key("measured"), *candidate.measured);
  json.close('}');
}

void write(JsonWriter& json, const ImplementationInfo& info) {
  json.open('{').key("id").text(info.id).key("available").boolean(info.available);
  json.key("reason").text(info.reason).key("backend").text(info.backend);
  json.key("kind").text(info.kind).key("vendor").text(info.vendor);
  json.key("priority").number(int64_t{info.priority}).key("calls").number(info.calls);
  json.key("breaker").text(info.breaker).key("instance").open('{');
  for (const auto& [key, value] : info.instance) json.key(key).text(value);
  json.close('}').key("hints").open('[');
  for (const Hint& hint : info.hints) write(json, hint);
  json.close(']').close('}');
}

void write(JsonWriter& json, const OperatorInfo& info) {
  json.open('{').key("name").text(info.name).key("schema").text(info.schema);
  json.key("summary").text(info.summary).key("implementations").open('[');
  for (const ImplementationInfo& implementation : info.implementations) {
    write(json, implementation);
  }
  json.close(']').close('}');
}

void write(JsonWriter& json, const PluginInfo& info) {
  json.open('{').key("path").text(info.path).key("name").text(info.name);
  json.key("loaded").boolean(info.loaded).key("code").text(info.code);
  json.key("reason").text(info.reason).key("backends").texts(info.backends);
  json.key("implementations").texts(info.implementations);
  json.key("found_in").text(info.found_in).key("version").text(info.version);
  json.key("vendor").text(info.vendor).key("digest").text(info.digest);
  json.key("signer").text(info.signer).key("warnings").texts(info.warnings).close('}');
}

void write(JsonWriter& json, const InstanceState& state) {
  json.open('{').key("implementation").text(state.implementation);
  json.key("bytes").number(state.bytes).key("attributes").open('{');
  for (const auto& [key, value] : state.attributes) json.key(key).text(value);
  json.close('}').close('}');
}

void write(JsonWriter& json, const TuningBundle& bundle) {
  json.open('{').key("path").text(bundle.path).key("found_in").text(bundle.found_in);
  json.key("digest").text(bundle.digest).key("problem").text(bundle.problem);
  json.key("signer").text(bundle.signer).key("rows").number(bundle.rows);
  write_counts(json, bundle.counts);
  json.close('}');
}

void write(JsonWriter& json, const SettingInfo& info) {
  json.open('{').key("key").text(info.key).key("value").text(info.value);
  json.key("origin").text(info.origin).close('}');
}

void write(JsonWriter& json, const BackendHealth& backend) {
  json.open('{').key("name").text(backend.name).key("health").text(name_of(backend.health));
  json.key("reason").text(backend.reason).close('}');
}

void write(JsonWriter& json, const DeviceState& device) {
  json.open('{').key("device").text(name_of(device.device));
  json.key("health").text(name_of(device.health)).key("reason").text(device.reason).close('}');
}

void write(JsonWriter& json, const BreakerInfo& info) {
  json.open('{').key("implementation").text(info.implementation).key("op").text(info.op);
  json.key("what").text(info.what).key("state").text(name_of(info.state));
  json.key("failures_in_a_row").number(uint64_t{info.failures_in_a_row});
  json.key("openings").number(uint64_t{info.openings});
  json.key("change").number(info.change);
  json.key("next_probe_ms").number(info.next_probe_ms).key("why").text(info.why).close('}');
}

void write(JsonWriter& json, const OperatorWithoutCandidates& own) {
  json.open('{').key("op").text(own.op).key("when").text(own.when);
  json.key("reason").text(own.reason).key("allowed").boolean(own.allowed).close('}');
}

void write_number(JsonWriter& json, double value) {
  if (std::isfinite(value)) {
    json.number(value);
  } else {
    json.text(std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
  }
}

void write(JsonWriter& json, const ShadowMismatch& mismatch) {
  json.open('{').key("what").text(mismatch.what).key("element").text(mismatch.element);
  write_number(json.key("got"), mismatch.got);
  write_number(json.key("expected"), mismatch.expected);
  write_number(json.key("tolerance"), mismatch.tolerance);
  json.key("text").text(mismatch.text).close('}');
}

void write(JsonWriter& json, const ShadowInfo& info) {
  json.open('{').key("implementation").text(info.implementation);
  json.key("compared").number(info.compared).key("mismatches").number(info.mismatches);
  json.key("not_finite").number(info.not_finite).key("skipped").open('{');
  for (const ShadowInfo::Skipped& skipped : info.skipped)
    json.key(skipped.reason).number(skipped.calls);
  json.close('}');
  if (info.last) write(json.key("last"), *info.last);
  json.close('}');
}

template <class T>
void write_list(JsonWriter& json, std::string_view name, const std::vector<T>& items) {
  json.key(name).open('[');
  for (const T& item : items) write(json, item);
  json.close(']');
}

template <class T>
std::string list_of(std::string_view name, const std::vector<T>& items) {
  JsonWriter json;
  json.open('{');
  write_list(json, name, items);
  json.close('}');
  return json.take();
}

}  // namespace

std::string to_json(const Explanation& explanation) {
  JsonWriter json;
  json.open('{').key("op").text(explanation.op).key("arguments").text(explanation.arguments);
  json.key("device").text(explanation.device).key("generation").number(explanation.generation);
  json.key("chosen").text(explanation.chosen).key("strict").boolean(explanation.strict);
  json.key("candidates").open('[');
  for (const Candidate& candidate : explanation.candidates) write(json, candidate);
  json.close(']').key("depends_on").texts(explanation.depends_on);
  json.key("independent").texts(explanation.independent).key("note").text(explanation.note);
  if (explanation.tuning) {
    json.key("tuning").open('{');
    write_counts(json, *explanation.tuning);
    json.close('}');
  }
  json.close('}');
  return json.take();
}

std::string to_json(const PolicyState& state) {
  JsonWriter json;
  json.open('{').key("name").text(state.name).key("digest").text(state.digest);
  json.key("origin").text(state.origin).key("version").number(state.version);
  json.key("generation").number(state.generation).key("rules").number(state.rules);
  json.key("expired").number(state.expired).key("unmatched").number(state.unmatched);
  json.key("unmatched_rules").texts(state.unmatched_rules);
  json.key("previous_version").number(state.previous_version);
  json.key("loaded").number(state.loaded).key("refused").number(state.refused);
  json.key("rolled_back").number(state.rolled_back).key("lapsed").number(state.lapsed);
  json.key("last_refusal").text(state.last_refusal.message()).close('}');
  return json.take();
}

std::string to_json(const std::vector<OperatorInfo>& operators) {
  return list_of("operators", operators);
}
std::string to_json(const std::vector<PluginInfo>& plugins) { return list_of("plugins", plugins); }
std::string to_json(const std::vector<TuningBundle>& bundles) {
  return list_of("bundles", bundles);
}
std::string to_json(const std::vector<SettingInfo>& settings) {
  return list_of("settings", settings);
}

std::string to_json(const std::vector<InstanceState>& states) {
  return list_of("instances", states);
}

std::string to_json(const PolicyCheck& check) {
  JsonWriter json;
  json.open('{').key("applies").boolean(true).key("rules").number(check.rules);
  json.key("findings").open('[');
  for (const PolicyFinding& finding : check.findings) {
    json.open('{').key("code").text(finding.code).key("where").text(finding.where);
    json.key("rule").text(finding.rule).key("text").text(finding.text).close('}');
  }
  json.close(']').key("changes").open('[');
  for (const DecisionChange& change : check.changes) {
    json.open('{').key("op").text(change.op).key("when").text(change.when);
    json.key("before").text(change.before).key("after").text(change.after);
    json.key("by").text(change.by).close('}');
  }
  json.close(']').close('}');
  return json.take();
}

std::string to_json(const Status& refusal) {
  JsonWriter json;
  json.open('{').key("applies").boolean(refusal.ok());
  json.key("code").text(refusal.reason()).key("message").text(refusal.message()).close('}');
  return json.take();
}

std::string to_json(const HealthReport& report) {
  JsonWriter json;
  json.open('{').key("verdict").text(name_of(report.verdict));
  json.key("reasons").texts(report.reasons);
  write_list(json, "backends", report.backends);
  write_list(json, "devices", report.devices);
  write_list(json, "breakers", report.breakers);
  json.key("shadow").open('{').key("every").number(uint64_t{report.shadow.every});
  json.key("waiting").number(report.shadow.waiting);
  write_list(json, "implementations", report.shadow.implementations);
  json.close('}');
  write_list(json, "without_candidates", report.without_candidates);
  json.key("policy").open('{').key("refused").number(report.refused_policies);
  json.key("code").text(report.last_refusal.reason());
  json.key("last_refusal").text(report.last_refusal.message()).close('}');
  json.close('}');
  return json.take();
}

std::string to_json(const Quarantine& quarantine) {
  base::JsonWriter json;
  json.open('{').key("quarantined").open('[');
  for (const QuarantineEntry& entry : quarantine.entries) {
    json.open('{').key("implementation").text(entry.implementation);
    json.key("build").text(entry.build).key("how").text(entry.how);
    json.key("since").number(entry.since).key("expires").number(entry.expires);
    json.key("here").boolean(entry.here).key("phase").text(entry.phase);
    json.key("deferred").boolean(entry.deferred).close('}');
  }
  json.close(']').key("suspected").open('[');
  for (const SuspectedEnd& end : quarantine.suspected) {
    json.open('{').key("found").number(end.found).key("process").number(uint64_t{end.process});
    json.key("implementations").texts(end.implementations).close('}');
  }
  json.close(']').close('}');
  return json.take();
}

std::string to_json(const CrashJournalState& state) {
  base::JsonWriter json;
  json.open('{').key("on").boolean(state.on).key("handler").boolean(state.handler);
  json.key("path").text(state.path).key("problem").text(state.problem);
  json.key("ends").number(state.ends).key("damaged").number(state.damaged);
  json.key("other_version").number(state.other_version).key("unnoted").number(state.unnoted);
  json.key("threads_left_out").number(state.threads_left_out).close('}');
  return json.take();
}

}  // namespace opmux
