#include "cli/verify_json.hpp"

namespace opmux::cli {

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

}  // namespace opmux::cli
