#include <opmux/replay.hpp>

#include <algorithm>
#include <array>

#include "base/cpu_features.hpp"
#include "base/text.hpp"
#include "record/drawn_elements.hpp"
#include "record/minimize.hpp"
#include "record/placed_call.hpp"
#include "runtime/core.hpp"
#include "runtime/replay_stage.hpp"
#include "verify/element.hpp"

namespace opmux {
namespace {

constexpr size_t kMostTries = 1000;
constexpr std::array<std::string_view, 4> kVerdicts{"agrees", "differs", "fails", "cannot"};

/// The replay of one file in one runtime.
class Replay {
 public:
  Replay(Runtime& runtime, record::Recording call, const registry::OperatorRecord& op)
      : runtime_(runtime), call_(std::move(call)), op_(op) {}

  Result<ReplayReport> run(const Operator& handle, const ReplayOptions& options) {
    if (Status status = fit_schema(); !status.ok()) return status;
    describe();
    const auto drawn = record::draw_missing_elements(call_);
    if (!drawn) return drawn.error();
    note_surroundings(*drawn);
    const runtime::ReplayStage stage(runtime_, handle, *op_.schema, report_.reference);
    std::vector<std::string> ids = options.implementations;
    if (ids.empty()) ids.push_back(call_.implementation);
    for (const std::string& id : ids) report_.implementations.push_back(judge(stage, id));
    if (options.minimize) make_smaller(stage, report_.implementations.front());
    return std::move(report_);
  }

 private:
  /// Checks that the recorded arguments are the first ones of the operator in this runtime.
  Status fit_schema() {
    const auto& args = op_.schema->args;
    const bool fits =
        call_.arguments.size() <= args.size() &&
        std::ranges::equal(call_.arguments, std::span(args).first(call_.arguments.size()), {},
                           &record::RecordedArgument::name, &registry::ArgSpec::name);
    registry::BoundDims dims{};
    Status status = fits ? record::check_recorded(*op_.schema, call_.arguments, dims)
                         : Status(Code::invalid_argument, "", "it has different arguments");
    if (status.ok()) return {};
    return {Code::unsupported, "replay.schema",
            base::concat("the recorded call does not match the operator ", call_.op,
                         " of this runtime: ", status.message())};
  }

  void describe() {
    report_.op = call_.op;
    report_.recorded = call_.implementation;
    report_.cause = record::name_of(call_.cause);
    report_.reason = call_.reason;
    report_.says = call_.says;
    report_.arguments = call_.arguments_text();
    const auto reference =
        std::ranges::find(op_.implementations, Kind::reference,
                          [](const registry::ImplementationPtr& one) { return one->kind; });
    if (reference != op_.implementations.end()) report_.reference = (*reference)->id;
  }

  const registry::ImplementationRecord* find(const std::string& id) const {
    const auto found = std::ranges::find(
        op_.implementations, id, [](const registry::ImplementationPtr& one) { return one->id; });
    return found == op_.implementations.end() ? nullptr : found->get();
  }

  void note_surroundings(const std::vector<std::string>& drawn) {
    if (!drawn.empty()) {
      report_.other_values = true;
      report_.notes.push_back(base::concat("the file does not have the elements of ",
                                           base::join(drawn, ", "),
                                           ": generated values are used instead"));
    }
    const registry::ImplementationRecord* const here = find(call_.implementation);
    if (here != nullptr && here->build_id != call_.build_id) {
      report_.notes.push_back(
          base::concat(call_.implementation, " comes from another build in this runtime"));
    }
    const std::string missing = base::missing_features(call_.cpu, base::cpu_features());
    if (!missing.empty()) {
      report_.notes.push_back(base::concat("this machine's CPU lacks ", missing));
    }
  }

  ReplayedImplementation judge(const runtime::ReplayStage& stage, const std::string& id) const {
    if (find(id) == nullptr) {
      std::vector<std::string> ids;
      for (const registry::ImplementationPtr& one : op_.implementations) ids.push_back(one->id);
      return {
          id, ReplayVerdict::cannot,
          base::concat("there is no implementation '", id, "' here", base::suggestion(id, ids))};
    }
    if (report_.reference.empty()) {
      return {id, ReplayVerdict::cannot,
              base::concat(call_.op, " has no reference to compare with")};
    }
    if (const record::RecordedArgument* odd = not_comparable()) {
      return {id, ReplayVerdict::cannot,
              base::concat(odd->name, " has dtype ", name_of(odd->tensor.dtype),
                           ", whose results cannot be compared")};
    }
    return stage.judge(call_, id);
  }

  const record::RecordedArgument* not_comparable() const {
    const auto odd = [](const record::RecordedArgument& argument) {
      return argument.tag == ArgTag::tensor && !verify::comparable(argument.tensor.dtype);
    };
    const auto found = std::ranges::find_if(call_.arguments, odd);
    return found == call_.arguments.end() ? nullptr : &*found;
  }

  void make_smaller(const runtime::ReplayStage& stage, ReplayedImplementation first) {
    if (first.verdict != ReplayVerdict::differs && first.verdict != ReplayVerdict::fails) return;
    size_t tried = 0;
    const auto wrong = [&](const record::Recording& smaller) {
      ReplayedImplementation judged = stage.judge(smaller, first.id);
      if (judged.verdict != first.verdict) return false;
      report_.implementations.front() = std::move(judged);
      return true;
    };
    record::Recording smallest = record::minimize(*op_.schema, call_, wrong, kMostTries, tried);
    const ReplayedImplementation& last = report_.implementations.front();
    smallest.implementation = last.id;
    if (const auto& difference = last.difference) {
      smallest.element =
          record::RecordedElement{difference->argument, difference->index, difference->got,
                                  difference->expected, difference->allowed};
    }
    report_.smaller_arguments = smallest.arguments_text();
    report_.smaller = record::to_file(smallest);
    report_.tried = tried;
  }

  Runtime& runtime_;
  record::Recording call_;
  const registry::OperatorRecord& op_;
  ReplayReport report_;
};

}  // namespace

std::string_view name_of(ReplayVerdict verdict) noexcept {
  return kVerdicts[static_cast<size_t>(verdict)];
}

ReplayVerdict ReplayReport::verdict() const noexcept {
  using enum ReplayVerdict;
  for (const ReplayVerdict one : {fails, differs, cannot}) {
    const bool found = std::ranges::any_of(
        implementations, [one](const ReplayedImplementation& i) { return i.verdict == one; });
    if (found) return one;
  }
  return implementations.empty() ? cannot : agrees;
}

std::string ReplayReport::to_string() const {
  std::string text = base::concat(op, "  ", arguments, "\n  ", cause, " in ", recorded, " (",
                                  reason, ")", says.empty() ? "" : ": " + says, "\n");
  for (const std::string& note : notes) text += base::concat("  note: ", note, "\n");
  for (const ReplayedImplementation& one : implementations) {
    text += base::concat(name_of(one.verdict), "  ", one.text, "\n");
  }
  if (!smaller.empty()) {
    text +=
        base::concat("smallest failing call after ", tried, " tries  ", smaller_arguments, "\n");
  }
  return text;
}

Result<ReplayReport> Runtime::replay(const std::string& path, const ReplayOptions& options) {
  auto recording = record::read_file(path);
  if (!recording) return recording.error();
  const Result<Operator> handle = op(recording->op);
  if (!handle) return handle.error();
  core_->plugins().warm_up();
  const registry::RegistrySnapshotPtr snapshot = core_->registry().snapshot();
  const auto found = snapshot->operators.find(recording->op);
  return Replay(*this, std::move(*recording), *found->second).run(*handle, options);
}

}  // namespace opmux
