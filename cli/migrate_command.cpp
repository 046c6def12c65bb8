#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/migrate/systems.hpp"
#include "policy/files/yaml_reader.hpp"

namespace opmux::cli {
namespace {

using migrate::Migration;
using policy::TextNode;

struct MigrateCommand {
  std::vector<std::string> files, kernels;
  std::string out;
  bool environment = false, json = false;
};

migrate::Settings process_environment() {
  migrate::Settings found;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text = *one;
    const size_t sign = text.find('=');
    if (sign == text.npos) continue;
    found.push_back({std::string(text.substr(0, sign)), std::string(text.substr(sign + 1))});
  }
  return found;
}

/// Whether a file has a key that only LayerZero's files have; vllm-plugin-FL's have none of them.
bool is_layerzero(const TextNode& file) {
  for (const std::string_view key :
       {"locks", "boosts", "deny", "allow", "dispatch_rules", "kernel_locks", "kernel_denies",
        "kernel_allows", "fallback_chains", "kernels", "dispatch", "version"}) {
    if (migrate::value_of(file, key) != nullptr) return true;
  }
  return false;
}

/// The system whose settings a text has, after they were taken; empty and an error printed if the
/// text has none.
std::string_view take_text(const std::string& path, const std::string& text, Migration& migration) {
  if (const auto fields = migrate::read_mllm_descriptor(text); !fields.empty()) {
    migrate::take_mllm_descriptor(fields, migration);
    return "mllm";
  }
  if (const auto attributes = migrate::read_fla_backend(text); !attributes.empty()) {
    migrate::take_fla_backend(attributes, migration);
    return "flash-linear-attention";
  }
  if (const auto names = migrate::read_flagtree_spec(text); !names.empty()) {
    migrate::take_flagtree_spec(names, migration);
    return "FlagTree";
  }
  if (const auto variables = migrate::read_variables(text); !variables.empty()) {
    if (migrate::take_environment(variables, migration) != 0) return "environment variables";
    wrong_use(base::concat(path, " sets no variable of a system that opmux migrates from"));
    return {};
  }
  policy::Problems problems;
  const std::optional<TextNode> file = policy::read_yaml(text, problems);
  if (!file || !file->is(TextNode::Kind::map)) {
    wrong_use(file ? base::concat(path, " is neither a map nor settings that opmux knows")
                   : std::string(problems.status(path, text).message()));
    return {};
  }
  const bool layerzero = is_layerzero(*file);
  (layerzero ? migrate::take_layerzero : migrate::take_vllm_fl)(*file, migration);
  return layerzero ? "LayerZero" : "vllm-plugin-FL";
}

bool take_kernels(const MigrateCommand& command, Migration& migration) {
  for (const std::string& one : command.kernels) {
    const size_t sign = one.find('=');
    if (sign == one.npos || sign == 0) {
      wrong_use(base::concat("--kernel ", one, ": write ID=TOKEN"));
      return false;
    }
    migration.kernels[one.substr(0, sign)] = one.substr(sign + 1);
  }
  return true;
}

int report(const MigrateCommand& command, const std::string& sources, const Migration& migration) {
  if (!command.out.empty()) {
    if (!base::replace_file(command.out, migration.policy(sources), 0644)) {
      return wrong_use(base::concat("cannot write ", command.out, ": ", std::strerror(errno)));
    }
  }
  if (command.json) {
    std::cout << migration.to_json(sources).dump() << "\n";
  } else if (command.out.empty()) {
    std::cout << migration.policy(sources);
  }
  const std::string refused = migration.refusal();
  if (!refused.empty()) std::cerr << "opmux: the policy would not apply here: " << refused << "\n";
  return migration.incomplete() || !refused.empty() ? kFound : kFine;
}

int run_migrate(const MigrateCommand& command) {
  if (command.files.empty() && !command.environment) {
    return wrong_use("give a FILE, or --env for the variables of this environment");
  }
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  Migration migration(*runtime);
  if (!take_kernels(command, migration)) return kWrongUse;
  std::vector<std::string> sources;
  for (const std::string& path : command.files) {
    const std::optional<std::string> text = read_text(path);
    const std::string_view system = text ? take_text(path, *text, migration) : "";
    if (system.empty()) return kWrongUse;
    sources.push_back(base::concat(path, " (", system, ")"));
  }
  if (command.environment) {
    const size_t count = migrate::take_environment(process_environment(), migration);
    sources.push_back(base::concat(count, " environment variables"));
  }
  return report(command, base::join(sources, ", "), migration);
}

}  // namespace

void add_migrate(CLI::App& app, Action& action) {
  auto options = std::make_shared<MigrateCommand>();
  CLI::App* command = app.add_subcommand(
      "migrate", "Write a policy from the settings of another system, with notes on each of them");
  command->add_option("FILE", options->files,
                      "a configuration of vllm-plugin-FL or LayerZero, a file of variables, or the "
                      "registration of a backend of FLA, FlagTree or mllm");
  command->add_flag("--env", options->environment, "read the variables of this environment too");
  command
      ->add_option("--kernel", options->kernels,
                   "the opmux token for a kernel of LayerZero (may be repeated)")
      ->type_name("ID=TOKEN")
      ->allow_extra_args(false);
  command->add_option("--out", options->out, "file for the policy instead of standard output")
      ->type_name("FILE");
  command->add_flag("--json", options->json,
                    "print JSON as described in docs/schemas/migrate.json");
  command->callback([options, &action] { action = [options] { return run_migrate(*options); }; });
}

}  // namespace opmux::cli
