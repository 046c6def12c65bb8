#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <opmux/instance.hpp>

#include "cli/argument_text.hpp"
#include "cli/command.hpp"
#include "cli/process_option.hpp"
#include "cli/process_report.hpp"

namespace opmux::cli {
namespace {

struct ExplainOptions {
  std::string op;
  std::vector<std::string> arguments;
  std::string policy_file;
  Policy policy;
  std::vector<std::string> facts;
  std::optional<int> rank, tp_size;
  bool strict = false, json = false, instance = false;
  std::string of_a_call;  ///< a given option that applies to a call, not to a running process
  ProcessOption process;
};

using Facts = std::map<std::string, bool Ambient::*>;

const Facts& all_facts() {
  static const Facts all{{"grad", &Ambient::grad},
                         {"capturing", &Ambient::capturing},
                         {"deterministic", &Ambient::deterministic},
                         {"training", &Ambient::training},
                         {"inference", &Ambient::inference},
                         {"autocast", &Ambient::autocast}};
  return all;
}

Ambient ambient_of(const std::vector<std::string>& facts) {
  Ambient ambient;
  for (const std::string& name : facts) ambient.*all_facts().at(name) = true;
  return ambient;
}

int explain_process(const ExplainOptions& options) {
  if (!options.arguments.empty() || !options.of_a_call.empty()) {
    return wrong_use(
        "--pid and --page show the decisions that a process has made, not those for other "
        "arguments; leave out '" +
        (options.arguments.empty() ? options.of_a_call : options.arguments.front()) + "'");
  }
  if (options.process.all()) return print_processes(options.json);
  const std::optional<ProcessState> process = find_process(options.process, options.op);
  if (!process) return kWrongUse;
  if (options.json) {
    std::cout << to_json(*process) << "\n";
  } else {
    print_choices(*process);
  }
  return kFine;
}

/// With `through_instance`, the scalars and const tensors given are those of an Instance.
Result<Explanation> explain_call(const Operator& op, std::span<const opmux_arg> arguments,
                                 bool through_instance) {
  if (!through_instance) return op.explain_arguments(arguments);
  std::vector<opmux_arg> passed;
  const Result<Instance> instance = instance_for(op, arguments, passed);
  if (!instance) return instance.error();
  return instance->explain_arguments(passed);
}

int explain(const ExplainOptions& options) {
  if (options.process.given()) return explain_process(options);
  if (options.op.empty()) return wrong_use("OP is required");
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  if (!options.policy_file.empty()) {
    const auto text = read_text(options.policy_file);
    if (!text) return kWrongUse;
    const Status loaded = runtime->policy().load(*text, options.policy_file);
    if (!loaded.ok()) return wrong_use(loaded.message());
  }
  if (options.rank || options.tp_size) {
    const Status stated = runtime->set_rank(options.rank, options.tp_size);
    if (!stated.ok()) return wrong_use(stated.message());
  }
  const auto op = runtime->op(options.op);
  if (!op) return wrong_use(op.error().message());
  ArgumentTexts texts(*op);
  for (const std::string& argument : options.arguments) {
    if (const Status bad = texts.read(argument); !bad.ok()) return wrong_use(bad.message());
  }
  Policy policy = options.policy;
  if (options.strict) policy.strict = true;
  const PolicyScope scope(*runtime, policy);
  if (!scope.status().ok()) return wrong_use(scope.status().message());
  const AmbientScope ambient(ambient_of(options.facts));
  const auto explained = explain_call(*op, texts.arguments(), options.instance);
  if (!explained) return wrong_use(explained.error().message());
  const Explanation& explanation = *explained;
  // Without a device, the schema refused the arguments and no decision was made.
  if (explanation.device.empty()) return wrong_use(explanation.note);
  std::cout << (options.json ? to_json(explanation) + "\n" : explanation.to_string());
  return explanation.chosen.empty() ? kFound : kFine;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Show which implementation would run for a call, and why");
  command->add_option("OP", options->op, "operator; optional with --pid");
  command->add_option("ARG", options->arguments,
                      "arguments such as x=bf16[32,4096] eps=1e-6; outputs are optional");
  const auto tokens = [&](const char* flag, std::vector<std::string>& list, const char* what) {
    command->add_option(flag, list, what)->type_name("TOKEN")->allow_extra_args(false);
  };
  tokens("--require", options->policy.require,
         "run only implementations that match (may be repeated)");
  tokens("--prefer", options->policy.prefer,
         "try implementations that match first (may be repeated)");
  tokens("--deny", options->policy.deny, "never run implementations that match (may be repeated)");
  command
      ->add_option("--policy", options->policy_file,
                   "use this policy file instead of the one in force")
      ->type_name("FILE");
  command
      ->add_option("--fact", options->facts,
                   "explain a call with this ambient fact, such as grad (may be repeated)")
      ->type_name("FACT")
      ->allow_extra_args(false)
      ->check(CLI::IsMember(&all_facts()));
  command->add_flag("--instance", options->instance,
                    "explain a call through an instance, which has the options and const tensors");
  command->add_option("--rank", options->rank, "explain a call of the process with this rank")
      ->type_name("N");
  command
      ->add_option("--tp-size", options->tp_size,
                   "explain a call of one of N processes that share the tensors of a model")
      ->type_name("N");
  add_process_option(*command, options->process);
  command->add_flag("--strict", options->strict,
                    "no fallback to implementations that are not preferred");
  command->add_flag("--json", options->json,
                    "print JSON as described in docs/schemas/explain.json");
  command->callback([options, command, &action] {
    for (const char* flag : {"--require", "--prefer", "--deny", "--policy", "--fact", "--instance",
                             "--rank", "--tp-size", "--strict"}) {
      if (command->count(flag) > 0) options->of_a_call = flag;
    }
    action = [options] { return explain(*options); };
  });
}

}  // namespace opmux::cli
