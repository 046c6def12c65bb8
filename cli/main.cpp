#include <iostream>
#include <optional>

#include "cli/command.hpp"

namespace opmux::cli {

int wrong_use(std::string_view message) {
  std::cerr << "opmux: " << message << "\n";
  return kWrongUse;
}

std::optional<Runtime> make_runtime() {
  Result<Runtime> runtime = Runtime::create();
  if (runtime) return std::move(*runtime);
  wrong_use(runtime.error().message());
  return {};
}

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Shows what opmux would run here, and why."};
  app.name("opmux");
  app.set_version_flag("--version", "opmux " OPMUX_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 fine, 1 found something, 2 wrong use.");
  Action action;
  add_list(app, action);
  add_explain(app, action);
  add_config(app, action);
  add_verify(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kWrongUse;
  }
  return action();
}

}  // namespace
}  // namespace opmux::cli

int main(int argc, char** argv) {
  try {
    return opmux::cli::run(argc, argv);
  } catch (const std::exception& error) {
    return opmux::cli::wrong_use(error.what());
  }
}
