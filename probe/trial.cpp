#include "probe/trial.hpp"

#include <algorithm>
#include <exception>

#include "base/status.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/host.hpp"
#include "plugin/read/descriptor_reader.hpp"
#include "probe/crash_report.hpp"

namespace opmux::probe {
namespace {

/// Calls a function of the plugin; an exception becomes a refusal.
template <class Function>
Status guarded(std::string_view what, Function&& function) {
  const auto threw = [&](std::string_view text) {
    return Status(Code::invalid_argument, "plugin.threw",
                  base::concat("its ", what, " threw", text));
  };
  try {
    return function();
  } catch (const std::exception& thrown) {
    return threw(base::concat(": ", thrown.what()));
  } catch (...) {
    return threw(" an object that is not a std::exception");
  }
}

Status outcome_of(std::string_view what, std::string_view code, int32_t outcome,
                  const base::ErrorSink& error) {
  if (outcome == OPMUX_OK) return {};
  const std::string text = error.text();
  return {
      Code::unavailable, std::string(code),
      base::concat("its ", what, " returned outcome ", outcome, text.empty() ? "" : ": ", text)};
}

}  // namespace

Trial::Trial(plugin::LibraryFile file) : file_(std::move(file)), before_(look()) {}

void Trial::begin(std::string_view stage) {
  stage_ = stage;
  enter(stage);
}

Status Trial::left_behind() {
  for (Difference& difference : differences(before_, look())) {
    if (threads_allowed_ && difference.code == "probe.threads") continue;
    return {Code::invalid_argument, std::string(difference.code),
            base::concat(difference.text, " in ", stage_)};
  }
  return {};
}

Status Trial::ask_backends(const plugin::PluginContents& contents) {
  for (const registry::Batch& batch : contents.batches) {
    const auto& is_available = batch.backend.probe;
    if (!is_available) continue;
    begin("is_available");
    Status bad = guarded("is_available", [&] { return (void)is_available(), Status(); });
    if (!bad.ok()) return bad;
  }
  // Drivers that start set variables, install handlers and start threads.
  before_ = look();
  return {};
}

Status Trial::start_and_test(const plugin::PluginContents& contents) {
  const opmux_plugin& functions = contents.functions;
  base::ErrorSink error;
  if (functions.init != nullptr) {
    begin("init");
    Status bad = guarded("init", [&] {
      const int32_t outcome =
          functions.init(functions.user_data, &plugin::process_host(), error.c());
      return outcome_of("init", "plugin.init", outcome, error);
    });
    if (bad.ok()) bad = left_behind();
    if (!bad.ok()) return bad;
  }
  if (Status bad = ask_backends(contents); !bad.ok()) return bad;
  if (functions.self_test != nullptr) {
    begin("self_test");
    Status bad = guarded("self test", [&] {
      const int32_t outcome = functions.self_test(functions.user_data, error.c());
      return outcome_of("self test", "probe.self_test", outcome, error);
    });
    if (bad.ok()) bad = left_behind();
    if (!bad.ok()) return bad;
  }
  if (functions.shutdown == nullptr) return {};
  begin("shutdown");
  Status bad =
      guarded("shutdown", [&] { return functions.shutdown(functions.user_data), Status(); });
  return bad.ok() ? left_behind() : bad;
}

Status Trial::steps() {
  begin("open");
  const Result<plugin::Library> library = plugin::open_library(file_);
  if (!library) return library.error();
  if (Status bad = left_behind(); !bad.ok()) return bad;
  begin("query");
  const Result<opmux_plugin> described =
      plugin::query_plugin(library->query, plugin::process_host());
  if (!described) return described.error();
  const Result<plugin::PluginContents> contents = plugin::read_plugin(*described, nullptr, {});
  if (!contents) return contents.error();
  if (Status bad = left_behind(); !bad.ok()) return bad;
  if (contents->batches.empty() && !contents->refused.empty()) {
    const registry::Refusal& first = contents->refused.front();
    return {first.why.code(), std::string(first.why.reason()),
            base::concat(first.what, ": ", first.why.message())};
  }
  manifest_ = plugin::manifest_of(*contents);
  // A thread pool may outlive the plugin's shutdown if the plugin cannot be unloaded.
  threads_allowed_ = (contents->functions.flags & OPMUX_PLUGIN_UNLOADABLE) == 0;
  return start_and_test(*contents);
}

plugin::ProbeResult Trial::run() {
  const Status bad = steps();
  plugin::ProbeResult verdict;
  if (bad.ok()) {
    verdict.manifest = std::move(manifest_);
    return verdict;
  }
  verdict.code = bad.reason();
  verdict.text = bad.message();
  verdict.stage = stage_;
  return verdict;
}

}  // namespace opmux::probe
