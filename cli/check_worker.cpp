#include "cli/check_worker.hpp"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <opmux/opmux.hpp>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "plugin/probe/child.hpp"
#include "plugin/probe/probe.hpp"

namespace opmux::cli {
namespace {

namespace fs = std::filesystem;

/// The runtime's report about the plugin in the folder.
PluginInfo plugin_in(const Runtime& runtime, const fs::path& folder) {
  const fs::path file = fs::directory_iterator(folder)->path();
  for (const PluginInfo& plugin : runtime.plugins().list()) {
    std::error_code unknown;
    if (fs::equivalent(plugin.path, file, unknown)) return plugin;
  }
  PluginInfo none;
  none.reason = "the plugin was not found in the plugin path";
  return none;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

Json describe(const Runtime& runtime, const fs::path& folder) {
  const PluginInfo plugin = plugin_in(runtime, folder);
  Json implementations = Json::array();
  for (const OperatorInfo& op : runtime.list()) {
    for (const ImplementationInfo& one : op.implementations) {
      if (!contains(plugin.implementations, one.id)) continue;
      implementations.push_back({{"id", one.id},
                                 {"op", op.name},
                                 {"priority", one.priority},
                                 {"available", one.available},
                                 {"reason", one.reason}});
    }
  }
  return {{"loaded", plugin.loaded},     {"name", plugin.name},
          {"code", plugin.code},         {"reason", plugin.reason},
          {"backends", plugin.backends}, {"implementations", implementations}};
}

Json verify(Runtime& runtime, const WorkerOrder& order) {
  const auto report = conformance::verify(runtime, {.implementations = {order.id},
                                                    .cases = order.cases,
                                                    .seed = order.seed,
                                                    .count_chosen = true});
  if (!report) return {{"note", report.error().message()}};
  const conformance::OperatorReport& op = report->operators.at(0);
  Json made = to_json(op.implementations.at(0));
  made["note"] = op.note;
  made["chosen"] = op.implementations[0].chosen;
  made["instead"] = op.implementations[0].instead;
  return made;
}

/// Returns false if the descriptor was closed.
bool write_report(const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t done =
        write(plugin::protocol::kReportDescriptor, text.data() + at, text.size() - at);
    if (done <= 0) return false;
    at += static_cast<size_t>(done);
  }
  return true;
}

std::vector<std::string> environment() {
  std::vector<std::string> kept;
  for (char** at = environ; *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with("OPMUX_")) kept.emplace_back(*at);
  }
  return kept;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? base::concat("signal ", number) : base::concat("SIG", name);
}

WorkerAnswer ended(const plugin::Ending& ending, std::chrono::seconds deadline) {
  using How = plugin::Ending::How;
  if (ending.how == How::hung) {
    return {{}, "hang", base::concat("it did not end within ", deadline.count(), " s")};
  }
  if (ending.how == How::signalled) {
    return {{}, "crash", signal_name(ending.number) + " ended the process"};
  }
  return {{}, "exit", base::concat("the process exited with status ", ending.number)};
}

}  // namespace

int work(const WorkerOrder& order) {
  Result<Runtime> runtime =
      Runtime::create({.environment = {{{"OPMUX_PLUGIN_PATH", order.folder}}}});
  if (!runtime) return wrong_use(runtime.error().message());
  const Json found = order.id.empty() ? describe(*runtime, order.folder) : verify(*runtime, order);
  return write_report(found.dump(-1, ' ', false, Json::error_handler_t::replace)) ? kFine : kFound;
}

WorkerAnswer ask_worker(const WorkerOrder& order, std::chrono::seconds deadline) {
  plugin::ChildCommand command;
  command.program = "/proc/self/exe";
  command.arguments = {"plugin",   "check",
                       "--worker", order.folder,
                       "--cases",  std::to_string(order.cases),
                       "--seed",   std::to_string(order.seed)};
  if (!order.id.empty()) command.arguments.insert(command.arguments.end(), {"--impl", order.id});
  command.environment = environment();
  const Result<plugin::ChildReport> child = plugin::run_child(command, deadline);
  if (!child) return {{}, "spawn", std::string(child.error().message())};
  Json found = Json::parse(child->text, nullptr, false);
  const bool well = child->ending.how == plugin::Ending::How::exited && child->ending.number == 0;
  if (well && found.is_object()) return {std::move(found), "", ""};
  return ended(child->ending, deadline);
}

}  // namespace opmux::cli
