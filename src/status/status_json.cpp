#include <opmux/state_page.hpp>

#include "base/json_writer.hpp"

namespace opmux {
namespace {

using base::JsonWriter;

void write_page(JsonWriter& json, const PolicySourceState& source) {
  json.open('{').key("source").text(source.source).key("name").text(source.name);
  json.key("rules").number(source.rules).close('}');
}

void write_page(JsonWriter& json, const BackendPageState& backend) {
  json.open('{').key("name").text(backend.name).key("state").text(backend.state);
  json.key("reason").text(backend.reason).close('}');
}

void write_page(JsonWriter& json, const ImplementationPageState& own) {
  json.open('{').key("id").text(own.id).key("kind").text(own.kind);
  json.key("priority").number(own.priority).key("calls").number(own.calls);
  json.key("stood_in").number(own.stood_in).key("declined").number(own.declined);
  json.key("failed").number(own.failed).key("resource").number(own.resource);
  json.key("code").text(own.code).key("reason").text(own.reason);
  json.key("decided_each_time").number(own.decided_each_time);
  json.key("instance").text(own.instance).close('}');
}

void write_page(JsonWriter& json, const OperatorWithoutCandidates& own) {
  json.open('{').key("op").text(own.op).key("when").text(own.when);
  json.key("reason").text(own.reason).key("allowed").boolean(own.allowed).close('}');
}

void write_page(JsonWriter& json, const OperatorPageState& op);
void write_page(JsonWriter& json, const ChoicePageState& choice);
void write_page(JsonWriter& json, const CellPageState& cell);
void write_page(JsonWriter& json, const TuningProposal& own);
void write_page(JsonWriter& json, const BreakerPageState& breaker);
void write_page(JsonWriter& json, const RuntimeState& own);
void write_page(JsonWriter& json, const ProcessState& process);

template <class T>
void write_pages(JsonWriter& json, std::string_view name, const std::vector<T>& items) {
  json.key(name).open('[');
  for (const T& item : items) write_page(json, item);
  json.close(']');
}

void write_page(JsonWriter& json, const OperatorPageState& op) {
  json.open('{').key("name").text(op.name).key("calls").number(op.calls());
  write_pages(json, "implementations", op.implementations);
  json.close('}');
}

void write_page(JsonWriter& json, const ChoicePageState& choice) {
  json.open('{').key("op").text(choice.op).key("when").text(choice.when);
  json.key("accepted").texts(choice.accepted).key("rests").text(choice.rests);
  json.key("note").text(choice.note).key("generation").number(choice.generation).close('}');
}

void write_page(JsonWriter& json, const CellPageState& cell) {
  json.open('{').key("op").text(cell.op).key("tensors").text(cell.tensors);
  json.key("dims").text(cell.dims).key("threads").number(cell.threads);
  json.key("calls").number(cell.calls).key("time_ns").number(cell.time_ns);
  json.key("error_ns").number(cell.error_ns).close('}');
}

void write_page(JsonWriter& json, const TuningProposal& own) {
  json.open('{').key("op").text(own.op).key("implementation").text(own.implementation);
  json.key("baseline").text(own.baseline).key("cell").text(own.cell);
  json.key("speed").number(own.speed).key("low").number(own.low).key("high").number(own.high);
  json.key("rounds").number(own.rounds).key("time").number(own.time);
  json.key("applied").boolean(own.applied).key("why_not").text(own.why_not).close('}');
}

void write_page(JsonWriter& json, const BreakerPageState& breaker) {
  json.open('{').key("implementation").text(breaker.implementation);
  json.key("what").text(breaker.what).key("state").text(breaker.state);
  json.key("why").text(breaker.why).key("openings").number(breaker.openings).close('}');
}

void write_policy(JsonWriter& json, const RuntimeState& own) {
  json.key("policy").open('{').key("name").text(own.policy_name);
  json.key("digest").text(own.policy_digest).key("origin").text(own.policy_origin);
  json.key("version").number(own.policy_version).key("rules").number(own.policy_rules);
  json.key("refused").number(own.policies_refused);
  json.key("last_refusal").text(own.last_refusal);
  write_pages(json, "sources", own.sources);
  json.close('}');
}

void write_page(JsonWriter& json, const RuntimeState& own) {
  json.open('{').key("number").number(own.number).key("since").number(own.since);
  json.key("written_ms").number(own.written).key("updates").number(own.updates);
  json.key("version").text(own.version).key("mode").text(own.mode);
  json.key("frozen").boolean(own.frozen).key("disabled").boolean(own.disabled);
  json.key("generation").number(own.generation).key("health").text(own.health);
  write_policy(json, own);
  write_pages(json, "backends", own.backends);
  write_pages(json, "operators", own.operators);
  write_pages(json, "choices", own.choices);
  write_pages(json, "cells", own.cells);
  write_pages(json, "proposals", own.proposals);
  write_pages(json, "breakers", own.breakers);
  write_pages(json, "without_candidates", own.without_candidates);
  json.key("left_out").number(own.left_out).close('}');
}

void write_page(JsonWriter& json, const ProcessState& process) {
  json.open('{').key("pid").number(process.pid).key("name").text(process.name);
  json.key("started").number(process.started).key("alive").boolean(process.alive);
  json.key("elsewhere").boolean(process.elsewhere);
  write_pages(json, "runtimes", process.runtimes);
  json.close('}');
}

}  // namespace

std::string to_json(const ProcessState& state) {
  JsonWriter json;
  write_page(json, state);
  return json.take();
}

std::string to_json(const std::vector<TuningProposal>& proposals) {
  JsonWriter json;
  json.open('{');
  write_pages(json, "proposals", proposals);
  json.close('}');
  return json.take();
}

std::string to_json(const std::vector<ProcessState>& states) {
  JsonWriter json;
  json.open('{');
  write_pages(json, "processes", states);
  json.close('}');
  return json.take();
}

}  // namespace opmux
