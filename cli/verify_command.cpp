#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include <opmux/conformance.hpp>

#include "cli/command.hpp"

namespace opmux::cli {
namespace {

struct VerifyOptions {
  conformance::Options suite;
  std::optional<uint64_t> only;
  bool all = false, json = false;
};

using Json = nlohmann::ordered_json;

Json to_json(const conformance::Finding& finding) {
  return {{"kind", finding.kind},
          {"seed", finding.seed},
          {"case", finding.number},
          {"arguments", finding.arguments},
          {"detail", finding.detail}};
}

Json to_json(const conformance::ImplementationReport& report) {
  Json findings = Json::array();
  for (const conformance::Finding& finding : report.findings) findings.push_back(to_json(finding));
  return {{"id", report.id},           {"available", report.available}, {"reason", report.reason},
          {"cases", report.cases},     {"refused", report.refused},     {"wrong", report.wrong},
          {"passed", report.passed()}, {"findings", findings}};
}

Json to_json(const conformance::Report& report) {
  Json operators = Json::array();
  for (const conformance::OperatorReport& op : report.operators) {
    Json implementations = Json::array();
    for (const auto& implementation : op.implementations) {
      implementations.push_back(to_json(implementation));
    }
    operators.push_back({{"name", op.name},
                         {"cases", op.cases},
                         {"dropped", op.dropped},
                         {"note", op.note},
                         {"implementations", implementations}});
  }
  return {{"passed", report.passed()}, {"cases", report.cases()}, {"operators", operators}};
}

int verify(VerifyOptions& options) {
  const conformance::Options& suite = options.suite;
  if (options.all && !suite.operators.empty())
    return wrong_use("give --all or operators, not both");
  if (!options.all && suite.operators.empty() && suite.backends.empty() &&
      suite.implementations.empty()) {
    return wrong_use("give operators to verify, --backend, --impl, or --all");
  }
  if (options.only) {
    options.suite.first_case = *options.only;
    options.suite.cases = 1;
  }
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  const auto report = conformance::verify(*runtime, options.suite);
  if (!report) return wrong_use(report.error().message());
  std::cout << (options.json ? to_json(*report).dump() + "\n" : report->to_string());
  return report->passed() ? kFine : kFound;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Implementations against the reference, on generated calls");
  conformance::Options& suite = options->suite;
  command->add_option("OP", suite.operators, "operators");
  command->add_flag("--all", options->all, "every operator");
  command->add_option("--backend", suite.backends, "only of this backend (may be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--impl", suite.implementations, "only this one (may be repeated)")
      ->type_name("ID")
      ->allow_extra_args(false);
  command->add_option("--cases", suite.cases, "calls drawn per operator, 1000 if not given")
      ->type_name("N");
  command->add_option("--seed", suite.seed, "other calls for other seeds, 1 if not given")
      ->type_name("N");
  command->add_option("--case", options->only, "only the call of this number")->type_name("N");
  command->add_flag("--json", options->json, "as docs/schemas/verify.json describes it");
  command->callback([options, &action] { action = [options] { return verify(*options); }; });
}

}  // namespace opmux::cli
