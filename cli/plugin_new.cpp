#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/text.hpp"
#include "cli/plugin_command.hpp"
#include "cli/templates.hpp"

namespace opmux::cli {
namespace {

namespace fs = std::filesystem;

struct NewOptions {
  std::string name, folder;
  bool c = false, cpp = false, python = false;

  std::string_view project() const { return cpp ? "cpp" : python ? "python" : "c"; }
};

/// Names that CMake, Python or the generated projects already use.
constexpr std::string_view kTaken[] = {"all",    "build",     "clean", "help", "install",
                                       "m",      "numpy",     "opmux", "own",  "package",
                                       "pytest", "reference", "src",   "test", "tests"};

/// The error in a name. Asks the registry, because it will check the name of the plugin's backend.
std::string name_problem(const std::string& name) {
  if (std::ranges::find(kTaken, name) != std::end(kTaken)) {
    return base::concat("'", name, "' is a reserved word; choose another name");
  }
  Result<Runtime> runtime = Runtime::create({.environment = {{}}});
  if (!runtime) return std::string(runtime.error().message());
  for (const PluginInfo& plugin : runtime->plugins().list()) {
    if (std::ranges::find(plugin.backends, name) == plugin.backends.end()) continue;
    return base::concat("opmux already has a backend '", name, "'; choose another name");
  }
  const auto added = runtime->implement({.id = base::concat("rms_norm/", name, ".scalar"),
                                         .vendor = name,
                                         .run = [](const CallFrame&) { return Outcome::ok; }});
  return added ? "" : std::string(added.error().message());
}

std::string replaced(std::string text, std::string_view word, std::string_view by) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + by.size())) {
    text.replace(at, word.size(), by);
  }
  return text;
}

/// Renames a template, which is the project of a plugin named acme.
std::string renamed(std::string_view text, const std::string& name) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return replaced(replaced(std::string(text), "acme", name), "ACME", upper);
}

/// Writes the project to a new or empty folder; prints the names of the files.
void write_project(const NewOptions& options, const fs::path& folder) {
  for (const TemplateFile& file : template_files()) {
    if (file.project != options.project()) continue;
    const fs::path path = folder / renamed(file.path, options.name);
    fs::create_directories(path.parent_path());
    std::ofstream stream(path);
    stream.exceptions(std::ios::failbit | std::ios::badbit);
    stream << renamed(file.text, options.name) << std::flush;
    std::cout << "wrote " << path.string() << "\n";
  }
}

int make_project(const NewOptions& options) {
  if (const std::string problem = name_problem(options.name); !problem.empty()) {
    return wrong_use(problem);
  }
  const fs::path folder = options.folder.empty() ? options.name : options.folder;
  if (fs::exists(folder) && !(fs::is_directory(folder) && fs::is_empty(folder))) {
    return wrong_use(base::concat("'", folder.string(), "' exists and is not an empty folder"));
  }
  try {
    write_project(options, folder);
  } catch (const std::exception& error) {
    return wrong_use(base::concat("cannot write the project: ", error.what()));
  }
  std::cout << "Read " << (folder / "README.md").string() << " next.\n";
  return kFine;
}

}  // namespace

void add_plugin_new(CLI::App& group, Action& action) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* command = group.add_subcommand(
      "new", "Create a standalone project with one working operator, its verifier and tests");
  command->add_option("NAME", options->name, "name of the plugin and its backend: [a-z][a-z0-9_]*")
      ->required();
  CLI::Option_group* language = command->add_option_group("language");
  language->add_flag("--c", options->c, "in C (default)");
  language->add_flag("--cpp", options->cpp, "in C++");
  language->add_flag("--python", options->python, "in Python, a package with an entry point");
  language->require_option(0, 1);
  command->add_option("--folder", options->folder, "folder of the project, default NAME");
  command->callback([options, &action] { action = [options] { return make_project(*options); }; });
}

}  // namespace opmux::cli
