#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include <opmux/replay.hpp>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"

namespace opmux::cli {
namespace {

struct ReplayCommand {
  std::string file, out;
  ReplayOptions options;
  bool json = false;
};

int exit_code(ReplayVerdict verdict) {
  if (verdict == ReplayVerdict::cannot) return kWrongUse;
  return verdict == ReplayVerdict::agrees ? kFine : kFound;
}

/// The file is readable by this user only, as the recording is, because it may contain elements of
/// tensors.
bool write_smaller(const std::string& path, const std::string& bytes) {
  if (bytes.empty() || path.empty()) return true;
  if (base::replace_file(path, bytes, 0600)) return true;
  wrong_use(base::concat("cannot write ", path, ": ", std::strerror(errno)));
  return false;
}

int replay(const ReplayCommand& command) {
  if (!command.out.empty() && !command.options.minimize) {
    return wrong_use("--out names the file that --minimize writes; give both");
  }
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  const Result<ReplayReport> report = runtime->replay().run(command.file, command.options);
  if (!report) return wrong_use(report.error().message());
  std::cout << (command.json ? to_json(*report) + "\n" : report->to_string());
  if (!write_smaller(command.out, report->smaller)) return kWrongUse;
  return exit_code(report->verdict());
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReplayCommand>();
  CLI::App* command =
      app.add_subcommand("replay", "Run a recorded call again and compare it with the reference");
  command->add_option("FILE", options->file, "a .opmux-replay file")->required();
  command
      ->add_option("--impl", options->options.implementations,
                   "run this implementation instead of the recorded one (may be repeated)")
      ->type_name("ID")
      ->allow_extra_args(false);
  command->add_flag("--minimize", options->options.minimize,
                    "find the smallest dimensions with which the call still fails");
  command->add_option("--out", options->out, "file for the smaller call")->type_name("FILE");
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/replay.json");
  command->callback([options, &action] { action = [options] { return replay(*options); }; });
}

}  // namespace opmux::cli
