#include <opmux/json.hpp>
#include <opmux/record.hpp>
#include <opmux/replay.hpp>

#include "base/json_writer.hpp"

namespace opmux {
namespace {

void write_difference(base::JsonWriter& json, const ReplayDifference& difference) {
  json.open('{').key("argument").text(difference.argument).key("index").open('[');
  for (const int64_t i : difference.index) json.number(i);
  json.close(']').key("got").number(difference.got);
  json.key("expected").number(difference.expected).key("allowed").number(difference.allowed);
  json.close('}');
}

}  // namespace

std::string to_json(const ReplayReport& report) {
  base::JsonWriter json;
  json.open('{').key("op").text(report.op).key("verdict").text(name_of(report.verdict()));
  json.key("recorded").open('{').key("implementation").text(report.recorded);
  json.key("cause").text(report.cause).key("reason").text(report.reason);
  json.key("says").text(report.says).close('}');
  json.key("arguments").text(report.arguments).key("reference").text(report.reference);
  json.key("other_values").boolean(report.other_values).key("notes").texts(report.notes);
  json.key("implementations").open('[');
  for (const ReplayedImplementation& one : report.implementations) {
    json.open('{').key("id").text(one.id).key("verdict").text(name_of(one.verdict));
    json.key("text").text(one.text);
    if (one.difference) write_difference(json.key("difference"), *one.difference);
    json.close('}');
  }
  json.close(']');
  if (!report.smaller.empty()) {
    json.key("smaller").open('{').key("arguments").text(report.smaller_arguments);
    json.key("tried").number(report.tried).close('}');
  }
  json.close('}');
  return json.take();
}

std::string to_json(const RecordState& state) {
  base::JsonWriter json;
  json.open('{').key("folder").text(state.folder).key("inputs").boolean(state.inputs);
  json.key("written").number(state.written).key("known").number(state.known);
  json.key("left_out").number(state.left_out).key("failed").number(state.failed);
  json.key("problem").text(state.problem).close('}');
  return json.take();
}

}  // namespace opmux
