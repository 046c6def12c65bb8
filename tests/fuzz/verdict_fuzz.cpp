// Cached probe results and probe reports on arbitrary bytes: accepted input must round-trip.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plugin/probe/probe_report.hpp"
#include "plugin/probe/verdict_cache.hpp"

namespace {

namespace plugin = opmux::plugin;

void insist(bool holds) {
  if (!holds) std::abort();
}

void read_as_verdict(std::string_view text) {
  const auto verdict = plugin::parse_verdict(text);
  if (!verdict) return insist(verdict.error().reason() == "probe.verdict");
  const auto again = plugin::parse_verdict(plugin::to_text(*verdict));
  insist(again && again->code == verdict->code && again->stage == verdict->stage);
  if (verdict->ok()) insist(again->manifest == verdict->manifest);
}

void read_as_report(std::string_view text) {
  using How = plugin::Ending::How;
  for (const plugin::Ending& ending :
       {plugin::Ending{How::exited, 90, false}, plugin::Ending{How::exited, 0, false},
        plugin::Ending{How::signalled, 11, false}, plugin::Ending{How::hung, 0, true}}) {
    const plugin::ProbeResult verdict = plugin::judge(text, ending, "5eed");
    insist(ending.number == 90 || !verdict.ok());
    insist(!verdict.ok() || text.find("nonce\t5eed\n") != std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_verdict(text);
  read_as_report(text);
  insist(!plugin::parse_entry(text, "d", "c", 0) || text.starts_with("opmux-verdict-entry 1\n"));
  return 0;
}
