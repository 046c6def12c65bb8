#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include <opmux/conformance.hpp>

#include "conformance/placed.hpp"
#include "conformance/trial.hpp"

namespace opmux::conformance {
namespace {

constexpr uint64_t kBatch = 32;          ///< cases that are drawn and kept at a time
constexpr uint64_t kSmallestShare = 10;  ///< the reference must accept at least 1 in 10 cases
constexpr uint64_t kPatience = 256;  ///< extra cases for implementations that accepted none so far

/// A case with its expected result.
struct DrawnCase {
  Case c;
  Expected expected;
  std::string chosen;  ///< implementation that a call without a policy chooses; empty if not asked
};

bool chosen(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::ranges::find(list, name) != list.end();
}

/// Verifies one operator.
class OperatorRun {
 public:
  OperatorRun(Runtime& runtime, const Options& options, const OperatorInfo& info, Operator op)
      : runtime_(&runtime), options_(&options), info_(&info), op_(op), infos_(op.arguments()) {
    report_.name = info.name;
    for (const ImplementationInfo& implementation : info.implementations) {
      if (reference_.empty() && implementation.kind == name_of(Kind::reference)) {
        reference_ = implementation.id;
        reference_needs_instance_ = implementation.needs_instance;
      }
      if (!chosen(options.backends, implementation.backend) ||
          !chosen(options.implementations, implementation.id)) {
        continue;
      }
      ImplementationReport& report = report_.implementations.emplace_back();
      report.id = implementation.id;
      report.available = implementation.available;
      report.reason = implementation.reason;
    }
  }

  OperatorReport run() {
    shaper_ = &find_shaper(info_->name);
    if (reference_.empty()) {
      report_.note = "it has no reference to compare with";
    } else {
      run_cases(0, options_->cases, [this](const auto& report) { return goes_on(report); });
      // A run of a single case reproduces a finding, so it gets no extra cases.
      const uint64_t patience = options_->cases > 1 ? kPatience : 0;
      run_cases(options_->cases, patience, [this](const auto& report) { return idle(report); });
      finish();
    }
    return std::move(report_);
  }

 private:
  bool goes_on(const ImplementationReport& report) const {
    return report.available && (options_->count_wrong || report.findings.empty());
  }
  bool idle(const ImplementationReport& report) const {
    return report.available && report.findings.empty() && !busy_.contains(report.id);
  }

  /// Runs the cases from `at` to `end` in batches, for the implementations for which `wants` is
  /// true.
  template <class Wants>
  void run_cases(uint64_t at, uint64_t end, Wants&& wants) {
    for (; at < end && std::ranges::any_of(report_.implementations, wants); at += kBatch) {
      draw(options_->first_case + at, std::min(kBatch, end - at));
      for (ImplementationReport& report : report_.implementations) {
        if (wants(report)) try_all(report);
      }
    }
  }

  /// Draws cases and runs the reference. Uses a new thread, so that scopes of the caller do not
  /// apply.
  void draw(uint64_t first, uint64_t count) {
    drawn_.clear();
    std::thread([&] {
      Policy reference;
      reference.require = {"impl:" + reference_};
      const PolicyScope scope(*runtime_, reference);
      for (uint64_t number = first; number < first + count; ++number) draw_one(number);
    }).join();
    if (options_->count_chosen) std::thread([this] { ask_who_is_chosen(); }).join();
  }

  void ask_who_is_chosen() {
    for (DrawnCase& drawn : drawn_) {
      if (drawn.c.invalid) continue;
      const Placed placed(arenas_, drawn.c, std::byte{0});
      drawn.chosen = op_.explain_arguments(placed.arguments()).chosen;
    }
  }

  /// Counts which implementation a call without a policy would have run for this case.
  void count_chosen(const DrawnCase& drawn, ImplementationReport& report) {
    if (drawn.chosen.empty()) return;
    if (drawn.chosen == report.id) {
      ++report.chosen;
      return;
    }
    auto& others = instead_[report.id];
    if (++others[drawn.chosen] > others[report.instead]) report.instead = drawn.chosen;
  }

  void draw_one(uint64_t number) {
    Case c = draw_case(*shaper_, info_->name, infos_, options_->seed, number);
    auto expected = expect(op_, c, arenas_, reference_needs_instance_);
    if (!expected && !c.invalid) {
      ++report_.dropped;
      if (report_.note.empty()) report_.note = c.text() + ": " + expected.error().to_string();
      return;
    }
    ++report_.cases;
    Expected wanted = c.invalid ? Expected() : std::move(*expected);
    drawn_.push_back({std::move(c), std::move(wanted), {}});
  }

  const ImplementationInfo& info_of(const ImplementationReport& report) const {
    return *std::ranges::find(info_->implementations, report.id, &ImplementationInfo::id);
  }

  /// A crash leaves the thread's dispatch state as it was inside of the call, so a new thread runs
  /// the remaining cases.
  void try_all(ImplementationReport& report) {
    size_t next = 0;
    while (next < drawn_.size() && goes_on(report)) {
      std::thread([&] {
        Trial trial(*runtime_, op_, *shaper_, info_of(report));
        const PolicyScope scope(*runtime_, trial.policy());
        bool crashed = false;
        while (next < drawn_.size() && !crashed) crashed = try_one(trial, drawn_[next++], report);
      }).join();
    }
  }

  /// Returns true if the thread must not run more cases.
  bool try_one(Trial& trial, const DrawnCase& drawn, ImplementationReport& report) {
    const CaseResult verdict = trial.run(drawn.c, drawn.expected);
    ++(verdict.refused ? report.refused : report.cases);
    if (!verdict.refused) count_chosen(drawn, report);
    if (!verdict.refused && !drawn.c.empty() && !drawn.c.invalid) busy_.insert(report.id);
    if (!verdict.problem) return false;
    ++report.wrong;
    const auto known = std::ranges::find(report.findings, verdict.problem->kind, &Finding::kind);
    if (known == report.findings.end()) {
      report.findings.push_back({report.id, verdict.problem->kind, drawn.c.seed, drawn.c.number,
                                 drawn.c.text(), verdict.problem->detail});
    }
    return verdict.crashed || !options_->count_wrong;
  }

  void finish() {
    if (report_.cases * kSmallestShare >= report_.dropped) report_.note.clear();
    for (ImplementationReport& report : report_.implementations) {
      if (!idle(report)) continue;
      report.findings.push_back({report.id, "all_refused", options_->seed, 0, "",
                                 "it refused all " + std::to_string(report.refused) + " cases"});
    }
  }

  Runtime* runtime_;
  const Options* options_;
  const OperatorInfo* info_;
  Operator op_;
  std::vector<ArgumentInfo> infos_;
  const Shaper* shaper_ = nullptr;
  Arenas arenas_;
  std::vector<DrawnCase> drawn_;
  OperatorReport report_;
  std::string reference_;  ///< id of the reference
  bool reference_needs_instance_ = false;
  std::map<std::string, std::map<std::string, uint64_t>>
      instead_;                 ///< per implementation: how often others were chosen
  std::set<std::string> busy_;  ///< ids that ran a valid case with output elements
};

template <class Has>
Status check_names(const char* what, const std::vector<std::string>& names, Has&& has) {
  for (const std::string& name : names) {
    if (has(name)) continue;
    return Status(Code::not_found, "conformance.unknown",
                  std::string("there is no ") + what + " '" + name + "'");
  }
  return {};
}

Status check_options(const Runtime& runtime, const std::vector<OperatorInfo>& all,
                     const Options& options) {
  for (const std::string& name : options.operators) {
    if (auto op = runtime.op(name); !op) return op.error();
  }
  const auto any = [&](auto&& fits) {
    return std::ranges::any_of(
        all, [&](const OperatorInfo& op) { return std::ranges::any_of(op.implementations, fits); });
  };
  Status status = check_names("backend", options.backends, [&](const std::string& name) {
    return any([&](const ImplementationInfo& info) { return info.backend == name; });
  });
  if (!status.ok()) return status;
  return check_names("implementation", options.implementations, [&](const std::string& id) {
    return any([&](const ImplementationInfo& info) { return info.id == id; });
  });
}

}  // namespace

Result<Report> verify(Runtime& runtime, const Options& options) {
  const std::vector<OperatorInfo> all = runtime.list();
  if (Status status = check_options(runtime, all, options); !status.ok()) return status;
  const CrashGuard guard;
  Report report;
  for (const OperatorInfo& info : all) {
    if (!chosen(options.operators, info.name)) continue;
    auto op = runtime.op(info.name);
    if (!op) return op.error();
    OperatorRun run(runtime, options, info, *op);
    OperatorReport done = run.run();
    if (!done.implementations.empty()) report.operators.push_back(std::move(done));
  }
  return report;
}

namespace {

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string number(uint64_t value, size_t width) {
  const std::string text = std::to_string(value);
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string line(const ImplementationReport& report, size_t width) {
  std::string text = "  " + padded(report.id, width + 2);
  if (!report.available) return text + "not available: " + report.reason + "\n";
  text += number(report.cases, 7) + " cases" + number(report.refused, 7) + " refused  ";
  if (report.passed()) return text + "passed\n";
  return text + "wrong: " + report.findings.front().kind + "\n";
}

}  // namespace

std::string Finding::to_string() const {
  const std::string op = implementation.substr(0, implementation.find('/'));
  std::string text = implementation + " is wrong: " + kind + "\n  " + detail + "\n";
  if (arguments.empty()) return text;
  text += "  call: " + op + " " + arguments + "\n";
  return text + "  reproduce with: opmux verify " + op + " --impl " + implementation + " --seed " +
         std::to_string(seed) + " --case " + std::to_string(number) + "\n";
}

bool Report::passed() const {
  bool any = false;
  for (const OperatorReport& op : operators) {
    for (const ImplementationReport& report : op.implementations) {
      if (!report.available || !op.note.empty()) continue;
      if (!report.passed()) return false;
      any = true;
    }
  }
  return any;
}

uint64_t Report::cases() const {
  uint64_t all = 0;
  for (const OperatorReport& op : operators) {
    for (const ImplementationReport& report : op.implementations) all += report.cases;
  }
  return all;
}

std::string Report::to_string() const {
  size_t width = 0, implementations = 0, verified = 0;
  for (const OperatorReport& op : operators) {
    verified += op.note.empty() ? 1 : 0;
    for (const ImplementationReport& report : op.implementations) {
      width = std::max(width, report.id.size());
      implementations += report.available && op.note.empty() ? 1 : 0;
    }
  }
  std::string table, findings;
  for (const OperatorReport& op : operators) {
    table += op.name + ": ";
    table += op.note.empty() ? std::to_string(op.cases) + " cases drawn\n"
                             : "not verified: " + op.note + "\n";
    if (!op.note.empty()) continue;
    for (const ImplementationReport& report : op.implementations) {
      table += line(report, width);
      for (const Finding& finding : report.findings) findings += finding.to_string();
    }
  }
  return table + findings + std::to_string(verified) + " operators, " +
         std::to_string(implementations) + " implementations, " + std::to_string(cases()) +
         " cases: " + (passed() ? "passed" : "not passed") + "\n";
}

}  // namespace opmux::conformance
