#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/command.hpp"
#include "cli/padded.hpp"
#include "cli/process_option.hpp"
#include "cli/process_report.hpp"

namespace opmux::cli {
namespace {

struct ListOptions {
  std::string op;
  bool json = false;
  ProcessOption process;
};

void print(const OperatorInfo& op, size_t width) {
  std::cout << op.name << (op.summary.empty() ? "" : ": ") << op.summary << "\n";
  for (const ImplementationInfo& info : op.implementations) {
    const std::string vendor = info.vendor.empty() ? "" : " (" + info.vendor + ")";
    std::cout << "  " << padded(info.id, width + 2) << padded(info.kind + vendor + " ", 11)
              << padded(std::to_string(info.priority), 6)
              << (info.available ? "available" : "not available: " + info.reason)
              << (info.breaker == "closed" ? "" : ", " + info.breaker) << "\n";
    for (const Hint& hint : info.hints) {
      std::cout << "    hint: " << hint.priority << " for " << hint.range() << "\n";
    }
    for (const auto& [key, value] : info.instance) {
      std::cout << "    " << key << ": " << value << "\n";
    }
  }
}

int list_process(const ListOptions& options) {
  const std::optional<ProcessState> process = find_process(options.process, options.op);
  if (!process) return kWrongUse;
  if (options.json) {
    std::cout << to_json(*process) << "\n";
  } else {
    print_calls(*process);
  }
  return kFine;
}

int list(const ListOptions& options) {
  if (options.process.given()) {
    return options.process.all() ? print_processes(options.json) : list_process(options);
  }
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  std::vector<OperatorInfo> all = runtime->list();
  if (!options.op.empty()) {
    if (const auto op = runtime->op(options.op); !op) return wrong_use(op.error().message());
    std::erase_if(all, [&](const OperatorInfo& op) { return op.name != options.op; });
  }
  if (options.json) {
    std::cout << to_json(all) << "\n";
    return kFine;
  }
  size_t width = 0;
  for (const OperatorInfo& op : all) {
    for (const ImplementationInfo& info : op.implementations) {
      width = std::max(width, info.id.size());
    }
  }
  for (const OperatorInfo& op : all) print(op, width);
  return kFine;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = app.add_subcommand("list", "List operators and their implementations");
  command->add_option("OP", options->op, "only this operator");
  add_process_option(*command, options->process);
  command->add_flag(
      "--json", options->json,
      "print JSON as described in docs/schemas/list.json, with --pid in process_state.json");
  command->callback([options, &action] { action = [options] { return list(*options); }; });
}

}  // namespace opmux::cli
