#include <opmux/json.hpp>

#include "base/json_writer.hpp"

namespace opmux {

std::string to_json(const Quarantine& quarantine) {
  base::JsonWriter json;
  json.open('{').key("quarantined").open('[');
  for (const QuarantineEntry& entry : quarantine.entries) {
    json.open('{').key("implementation").text(entry.implementation);
    json.key("build").text(entry.build).key("how").text(entry.how);
    json.key("since").number(entry.since).key("expires").number(entry.expires);
    json.key("here").boolean(entry.here).close('}');
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
