#include <algorithm>
#include <iostream>

#include "base/text.hpp"
#include "cli/padded.hpp"
#include "cli/process_report.hpp"

namespace opmux::cli {
namespace {

constexpr std::string_view kAnd = " && ";
constexpr size_t kColumns = 100;

using Facts = std::vector<std::string>;

Facts facts_of(std::string_view when) {
  Facts facts;
  for (size_t at = when.find(kAnd); at != when.npos; at = when.find(kAnd)) {
    facts.emplace_back(when.substr(0, at));
    when.remove_prefix(at + kAnd.size());
  }
  facts.emplace_back(when);
  return facts;
}

/// The facts that all classes of an operator share; none if there is only one class.
Facts common_facts(const std::vector<const ChoicePageState*>& choices) {
  if (choices.size() < 2) return {};
  Facts common = facts_of(choices.front()->when);
  for (const ChoicePageState* choice : choices) {
    const Facts own = facts_of(choice->when);
    std::erase_if(
        common, [&](const std::string& fact) { return std::ranges::find(own, fact) == own.end(); });
  }
  return common;
}

/// The facts joined with "&&", wrapped to kColumns columns.
std::string wrapped(const Facts& facts, std::string_view indent) {
  std::string text, line;
  for (const std::string& fact : facts) {
    if (!line.empty() && indent.size() + line.size() + kAnd.size() + fact.size() > kColumns) {
      text += line + " &&\n" + std::string(indent);
      line.clear();
    }
    line += (line.empty() ? "" : std::string(kAnd)) + fact;
  }
  return text + line;
}

void print_choice(const ChoicePageState& choice, const Facts& common) {
  Facts facts = facts_of(choice.when);
  std::erase_if(facts, [&](const std::string& fact) {
    return std::ranges::find(common, fact) != common.end();
  });
  std::cout << "  when      " << wrapped(facts, "            ") << "\n";
  const std::string first = choice.accepted.empty() ? "nothing" : choice.accepted.front();
  std::cout << "    runs    " << first << "  (first of " << choice.accepted.size()
            << " accepted, decided in generation " << choice.generation << ")\n";
  if (choice.accepted.size() > 1) {
    const Facts others(choice.accepted.begin() + 1, choice.accepted.end());
    std::cout << "    then    " << base::join(others, ", ") << "\n";
  }
  if (!choice.rests.empty()) {
    std::cout << "    open    " << choice.rests << ", whose circuit breaker is open\n";
  }
  if (!choice.note.empty()) std::cout << "    note    " << choice.note << "\n";
}

void print_refused(const OperatorPageState& op) {
  size_t width = 0;
  for (const ImplementationPageState& each : op.implementations) {
    if (!each.code.empty()) width = std::max(width, each.id.size());
  }
  if (width != 0) std::cout << "  for all arguments\n";
  for (const ImplementationPageState& each : op.implementations) {
    if (each.code.empty()) continue;
    std::cout << "    refused " << padded(each.id, width + 2) << refusal_text(each) << "\n";
  }
}

void print_operator_choices(const OperatorPageState& op,
                            const std::vector<const ChoicePageState*>& choices) {
  std::cout << op.name << "  " << plural(op.calls(), "call") << ", "
            << (choices.size() == 1 ? "1 class" : base::concat(choices.size(), " classes")) << "\n";
  const Facts common = common_facts(choices);
  if (!common.empty()) std::cout << "  always    " << wrapped(common, "            ") << "\n";
  for (const ChoicePageState* choice : choices) print_choice(*choice, common);
  print_refused(op);
}

}  // namespace

void print_choices(const ProcessState& process) {
  print_process(process);
  for (const RuntimeState& runtime : process.runtimes) {
    print_runtime(runtime);
    const bool one = runtime.operators.size() == 1;
    for (const OperatorPageState& op : runtime.operators) {
      std::vector<const ChoicePageState*> choices;
      for (const ChoicePageState& choice : runtime.choices) {
        if (choice.op == op.name) choices.push_back(&choice);
      }
      if (one || !choices.empty()) print_operator_choices(op, choices);
    }
  }
}

}  // namespace opmux::cli
