#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/command.hpp"

namespace opmux::cli {
namespace {

struct CheckCommand {
  std::string file, machine;
  bool strict = false, json = false;
};

/// Parses the output of `opmux list --json` from another machine.
std::vector<OperatorInfo> read_machine(const std::string& text) {
  std::vector<OperatorInfo> operators;
  const auto saved = nlohmann::json::parse(text);
  for (const auto& op : saved.at("operators")) {
    OperatorInfo info{op.at("name"), op.at("schema"), "", {}};
    for (const auto& one : op.at("implementations")) {
      ImplementationInfo implementation;
      implementation.id = one.at("id");
      implementation.kind = one.at("kind");
      implementation.vendor = one.at("vendor");
      implementation.priority = one.at("priority");
      implementation.available = one.at("available");
      implementation.reason = one.at("reason");
      for (const auto& hint : one.value("hints", nlohmann::json::array())) {
        const auto& most = hint.at("most");
        implementation.hints.push_back({hint.at("dim"), hint.at("least"),
                                        most.is_null() ? 0 : most.get<int64_t>(),
                                        hint.at("priority")});
      }
      info.implementations.push_back(std::move(implementation));
    }
    operators.push_back(std::move(info));
  }
  return operators;
}

std::string shown(const std::string& id) { return id.empty() ? "nothing" : id; }

void print(const std::string& file, const PolicyCheck& check) {
  for (const PolicyFinding& finding : check.findings) {
    std::cout << finding.where << ": warning: " << finding.text;
    if (!finding.rule.empty()) std::cout << " (rule \"" << finding.rule << "\")";
    std::cout << " [" << finding.code << "]\n";
  }
  for (const DecisionChange& change : check.changes) {
    std::cout << "  " << change.op;
    if (!change.when.empty()) std::cout << " where " << change.when;
    std::cout << ": " << shown(change.before) << " -> " << shown(change.after);
    if (!change.by.empty()) std::cout << ", by " << change.by;
    std::cout << "\n";
  }
  const auto counted = [](size_t count, const char* what) {
    return base::concat(count, " ", what, count == 1 ? "" : "s");
  };
  std::cout << file << " would apply: " << counted(check.rules, "rule") << ", "
            << counted(check.findings.size(), "warning") << ", "
            << counted(check.changes.size(), "decision") << " changed\n";
}

int run_check(const CheckCommand& command) {
  const auto text = contents_of(command.file);
  if (!text) return wrong_use(base::concat("cannot read ", command.file));
  PolicyCheckOptions options{.strict_names = command.strict};
  if (!command.machine.empty()) {
    const auto saved = contents_of(command.machine);
    if (!saved) return wrong_use(base::concat("cannot read ", command.machine));
    try {
      options.machine = read_machine(*saved);
    } catch (const nlohmann::json::exception& error) {
      return wrong_use(base::concat(command.machine, " is not output of `opmux list --json`: ",
                                    std::string_view(error.what())));
    }
  }
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  const Result<PolicyCheck> check = runtime->policy().check(*text, command.file, options);
  if (command.json) {
    std::cout << (check ? to_json(*check) : to_json(check.error())) << "\n";
  } else if (check) {
    print(command.file, *check);
  } else {
    std::cout << check.error().message() << "\n" << command.file << " would not apply\n";
  }
  return check ? kFine : kFound;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckCommand>();
  CLI::App* command = app.add_subcommand(
      "check",
      "Check a policy file: whether it applies, warnings, and the decisions that it changes");
  command->add_option("FILE", options->file, "a policy in YAML or JSON")->required();
  command->add_flag("--strict", options->strict,
                    "refuse names that match nothing, also in deny, and suggest the nearest");
  command->add_option("--machine", options->machine,
                      "check against the output of `opmux list --json` of another machine; names "
                      "that match nothing "
                      "are refused, except in deny");
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/check.json");
  command->callback([options, &action] { action = [options] { return run_check(*options); }; });
}

}  // namespace opmux::cli
