#include "cli/process_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <set>

#include "base/text.hpp"
#include "cli/padded.hpp"

namespace opmux::cli {
namespace {

constexpr size_t kShownDigits = 12;  ///< printed digits of a digest

std::string policy_line(const RuntimeState& runtime) {
  if (runtime.policy_name.empty()) return "no policy file";
  return base::concat(runtime.policy_name, " (", runtime.policy_origin, "), version ",
                      runtime.policy_version, ", ", plural(runtime.policy_rules, "rule"),
                      runtime.policy_digest.empty() ? "" : ", sha256 ",
                      runtime.policy_digest.substr(0, kShownDigits));
}

/// Prints the speeds that the process itself measured; nothing without the policy `tuning: online`.
void print_proposals(const RuntimeState& runtime) {
  for (const TuningProposal& each : runtime.proposals) {
    std::array<char, 64> ratio;
    std::snprintf(ratio.data(), ratio.size(), "%.2fx [%.2f, %.2f]", each.speed, each.low,
                  each.high);
    std::cout << "  measured  " << each.op << " " << each.cell << ": " << each.implementation
              << " is " << ratio.data() << " faster than " << each.baseline
              << (each.applied ? "; calls run it"
                               : base::concat("; not used, because ", each.why_not))
              << "\n";
  }
}

void print_policy(const RuntimeState& runtime) {
  std::cout << "  policy    " << policy_line(runtime) << "\n";
  for (const PolicySourceState& source : runtime.sources) {
    if (source.source == "file") continue;
    std::cout << "            also " << source.source << ": " << source.name;
    if (source.rules != 0) std::cout << ", " << plural(source.rules, "rule");
    std::cout << "\n";
  }
  if (runtime.policies_refused == 0) return;
  std::cout << "            refused " << runtime.policies_refused
            << ", the last one: " << runtime.last_refusal << "\n";
}

void print_backends(const RuntimeState& runtime) {
  std::string healthy;
  for (const BackendPageState& each : runtime.backends) {
    if (each.state == "healthy") healthy += (healthy.empty() ? "" : ", ") + each.name;
  }
  std::cout << "  backends  " << healthy << "\n";
  for (const BackendPageState& each : runtime.backends) {
    if (each.state == "healthy") continue;
    std::cout << "            " << each.name << ": " << each.state
              << (each.reason.empty() ? "" : ", ") << each.reason << "\n";
  }
}

size_t widest_id(const RuntimeState& runtime) {
  size_t width = 0;
  for (const OperatorPageState& op : runtime.operators) {
    for (const ImplementationPageState& each : op.implementations) {
      width = std::max(width, each.id.size());
    }
  }
  return width;
}

std::string right(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string trouble_of(const ImplementationPageState& own) {
  std::string text;
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += base::concat(", ", count, " ", what);
  };
  add(own.stood_in, "as a fallback");
  add(own.declined, "declined");
  add(own.failed, "failed");
  add(own.resource, "out of memory");
  add(own.decided_each_time, "decided each time");
  return text;
}

std::string state_text(const ImplementationPageState& own, bool chosen) {
  return (!own.code.empty() ? refusal_text(own) : chosen ? "chosen" : "ready") + trouble_of(own);
}

/// `all`: also prints implementations without calls that are ready.
void print_operator(const OperatorPageState& op, const std::set<std::string>& chosen, size_t width,
                    bool all) {
  std::cout << padded(op.name, width + 2) << right(std::to_string(op.calls()), 12) << "\n";
  size_t ready = 0;
  for (const ImplementationPageState& each : op.implementations) {
    const std::string state = state_text(each, chosen.contains(each.id));
    if (!all && each.calls == 0 && state == "ready") {
      ++ready;
      continue;
    }
    std::cout << "  " << padded(each.id, width) << right(std::to_string(each.calls), 12) << "  "
              << state << "\n";
    if (!each.instance.empty()) std::cout << "    packed: " << each.instance << "\n";
  }
  if (ready != 0) std::cout << "  " << ready << " more ready\n";
}

bool was_met(const OperatorPageState& op, const std::set<std::string>& chosen) {
  return std::ranges::any_of(op.implementations, [&](const ImplementationPageState& each) {
    return each.calls != 0 || chosen.contains(each.id) || !trouble_of(each).empty();
  });
}

std::set<std::string> chosen_in(const RuntimeState& runtime) {
  std::set<std::string> ids;
  for (const ChoicePageState& choice : runtime.choices) {
    if (!choice.accepted.empty()) ids.insert(choice.accepted.front());
  }
  return ids;
}

}  // namespace

std::string plural(uint64_t count, std::string_view what) {
  return base::concat(count, " ", what, count == 1 ? "" : "s");
}

std::string refusal_text(const ImplementationPageState& own) {
  return base::concat(own.code, own.reason.starts_with("by ") ? " " : ": ", own.reason);
}

std::string moment(int64_t seconds) {
  const time_t time = seconds;
  struct tm parts{};
  char text[64];
  if (::gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

void print_process(const ProcessState& process) {
  std::cout << "process " << process.pid << " (" << process.name << ") since "
            << moment(process.started);
  if (!process.alive) std::cout << ", has ended, or this is a copy of its status file";
  std::cout << "\n";
}

void print_runtime(const RuntimeState& runtime) {
  std::cout << "runtime " << runtime.number << ", opmux " << runtime.version << ", since "
            << moment(runtime.since) << "\n";
  std::cout << "  now       generation " << runtime.generation << ", mode " << runtime.mode
            << (runtime.frozen ? ", frozen" : "")
            << (runtime.disabled ? ", disabled: the reference runs" : "") << ", " << runtime.health
            << "; status file of " << moment(runtime.written / 1000) << "\n";
  print_policy(runtime);
  print_proposals(runtime);
  print_backends(runtime);
  for (const BreakerPageState& each : runtime.breakers) {
    std::cout << "  breaker   " << each.implementation << " " << each.state << " for " << each.what
              << (each.why.empty() ? "" : ": ") << each.why << ", opened "
              << plural(each.openings, "time") << "\n";
  }
  for (const OperatorWithoutCandidates& each : runtime.without_candidates) {
    std::cout << "  nothing   " << each.op << (each.when.empty() ? "" : " where ") << each.when
              << (each.allowed ? ", as the policy allows" : "") << ": " << each.reason << "\n";
  }
  if (runtime.left_out != 0) {
    std::cout << "  left out  " << plural(runtime.left_out, "line")
              << " that did not fit into the status file\n";
  }
}

void print_calls(const ProcessState& process) {
  print_process(process);
  for (const RuntimeState& runtime : process.runtimes) {
    print_runtime(runtime);
    const size_t width = widest_id(runtime);
    const std::set<std::string> chosen = chosen_in(runtime);
    const bool one = runtime.operators.size() == 1;
    size_t silent = 0;
    std::cout << padded("calls of", width + 2) << right("ok", 12) << "\n";
    for (const OperatorPageState& op : runtime.operators) {
      if (one || was_met(op, chosen)) {
        print_operator(op, chosen, width, one);
      } else {
        ++silent;
      }
    }
    if (silent != 0) std::cout << plural(silent, "operator") << " not called\n";
  }
}

}  // namespace opmux::cli
