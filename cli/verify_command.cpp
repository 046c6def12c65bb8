#include <iostream>
#include <memory>

#include <opmux/conformance.hpp>

#include "cli/command.hpp"
#include "cli/verify_json.hpp"

namespace opmux::cli {
namespace {

struct VerifyOptions {
  conformance::Options suite;
  std::optional<uint64_t> only;
  bool all = false, json = false;
};

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
      app.add_subcommand("verify", "Compare implementations with the reference on generated calls");
  conformance::Options& suite = options->suite;
  command->add_option("OP", suite.operators, "operators to verify");
  command->add_flag("--all", options->all, "verify every operator");
  command
      ->add_option("--backend", suite.backends,
                   "only implementations of this backend (may be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--impl", suite.implementations, "only this implementation (may be repeated)")
      ->type_name("ID")
      ->allow_extra_args(false);
  CLI::Option* cases =
      command->add_option("--cases", suite.cases, "generated calls per operator, default 1000")
          ->type_name("N");
  command->add_option("--seed", suite.seed, "seed of the generated calls, default 1")
      ->type_name("N");
  command->add_option("--case", options->only, "run only the case with this number")
      ->type_name("N")
      ->excludes(cases);
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/verify.json");
  command->callback([options, &action] { action = [options] { return verify(*options); }; });
}

}  // namespace opmux::cli
