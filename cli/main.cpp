#include <iostream>
#include <optional>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/plain_output.hpp"

namespace opmux::cli {

int wrong_use(std::string_view message) {
  std::cerr << "opmux: " << message << "\n";
  return kWrongUse;
}

std::optional<Runtime> make_runtime(const Options& options) {
  Result<Runtime> runtime = Runtime::create(options);
  if (runtime) return std::move(*runtime);
  wrong_use(runtime.error().message());
  return {};
}

std::optional<std::string> contents_of(const std::string& path) {
  constexpr size_t kMostBytes = size_t{64} << 20;  // Much more than a policy or lockfile may have.
  Result<std::string> text = base::read_given(path, kMostBytes);
  if (!text) return std::nullopt;
  return std::move(*text);
}

std::optional<std::string> read_text(const std::string& path) {
  std::optional<std::string> text = contents_of(path);
  if (!text) wrong_use("cannot read " + path);
  return text;
}

namespace {

/// The error message if the first unparsed word should be a command; otherwise empty.
std::string unknown_command(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::App* command : at->get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string> words = at->remaining();
  if (names.empty() || words.empty() || words.front().starts_with('-')) return {};
  const std::string hint = base::suggestion(words.front(), names);
  return base::concat("there is no command '", words.front(), "'",
                      hint.empty() ? "; the commands are " + base::join(names, ", ") : hint);
}

/// The version, the optional features of the library, and the backends that were built with it.
std::string version_text() {
  return base::concat("opmux ", OPMUX_VERSION, "\nfeatures: ", features(),
                      "\nbackends: ", OPMUX_BUILT_BACKENDS);
}

int run(int argc, char** argv) {
  CLI::App app{"Shows what opmux would run here, and why."};
  app.name("opmux");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("Exit codes: 0 success, 1 findings, 2 usage error.");
  Action action;
  add_list(app, action);
  add_explain(app, action);
  add_config(app, action);
  add_diff(app, action);
  add_check(app, action);
  add_lock(app, action);
  add_verify(app, action);
  add_health(app, action);
  add_plugin(app, action);
  add_quarantine(app, action);
  add_replay(app, action);
  add_migrate(app, action);
  add_points(app, action);
  add_tune(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help or --version
    const std::string unknown = asked ? "" : unknown_command(app);
    if (!unknown.empty()) return wrong_use(unknown);
    return app.exit(error) == 0 ? kFine : kWrongUse;
  }
  return action();
}

}  // namespace
}  // namespace opmux::cli

int main(int argc, char** argv) {
  const opmux::cli::PlainOutput out(std::cout), err(std::cerr);
  try {
    return opmux::cli::run(argc, argv);
  } catch (const std::exception& error) {
    return opmux::cli::wrong_use(error.what());
  }
}
