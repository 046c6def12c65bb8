#include "runtime/replay.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>
#include <thread>

#include <opmux/policy.hpp>
#include <opmux/replay.hpp>
#include <opmux/runtime.hpp>

#include "base/json_writer.hpp"
#include "base/memory.hpp"
#include "base/system/cpu_features.hpp"
#include "base/text.hpp"
#include "replay/capture.hpp"
#include "replay/minimize.hpp"
#include "replay/placed_call.hpp"
#include "replay/recording.hpp"
#include "runtime/core.hpp"
#include "schema/facts.hpp"
#include "verify/bounds.hpp"

namespace opmux::replay {
namespace {

Ambient ambient_of(uint32_t bits) {
  return {.grad = (bits & schema::kGrad) != 0,
          .capturing = false,  // replays do not capture
          .deterministic = (bits & schema::kDeterministic) != 0,
          .training = (bits & schema::kTraining) != 0,
          .inference = (bits & schema::kInference) != 0,
          .autocast = (bits & schema::kAutocast) != 0};
}

Policy only(const std::string& id) {
  Policy policy;
  policy.require = {"impl:" + id};
  policy.strict = true;
  return policy;
}

std::vector<std::byte> as_f32(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) {
    verify::write_element(&bytes[i * sizeof(float)], f32, verify::rounded(values[i], f32));
  }
  return bytes;
}

std::string short_number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

bool refused(const Status& status) {
  return status.code() == Code::no_candidate || status.code() == Code::declined;
}

}  // namespace

bool ReplayStage::written(const replay::Recording& call, size_t argument) const {
  return call.arguments[argument].tag == ArgTag::tensor && schema_->args[argument].written();
}

/// Runs on a new thread, so that scopes of the calling thread do not apply.
ReplayStage::Run ReplayStage::run(const replay::Recording& call,
                                  const std::vector<replay::RecordedArgument>& arguments,
                                  const std::string& id) const {
  Run run;
  auto placed = replay::PlacedCall::place(arguments);
  if (!placed) {
    run.status = placed.error();
    return run;
  }
  const auto call_once = [&] {
    run.status = base::or_out_of_memory([&]() -> Status {
      const PolicyScope scope(*core_, only(id));
      if (!scope.status().ok()) return scope.status();
      const AmbientScope ambient(ambient_of(call.ambient));
      CallReport report;
      Status status = op_.call_arguments(placed->arguments(),
                                         {.max_threads = std::max(call.max_threads, 0)}, &report);
      run.ran = report.implementation;
      return status;
    });
  };
  try {
    std::thread(call_once).join();
  } catch (const std::system_error& refused) {
    run.status = {Code::resource, "resource.thread",
                  base::concat("no thread can be started for the replayed call: ", refused.what())};
    return run;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (written(call, i)) run.outputs.push_back(placed->elements(i));
  }
  return run;
}

void ReplayStage::view_of(const replay::Recording& call, ReplayTarget& target) const {
  target.tensors.resize(call.arguments.size());
  target.view.op = call.op;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const replay::RecordedArgument& from = call.arguments[i];
    verify::ArgumentView& to = target.view.arguments.emplace_back();
    to.name = from.name;
    to.present = from.tag != ArgTag::none;
    to.i64 = from.i64;
    to.f64 = from.f64;
    if (from.tag != ArgTag::tensor) continue;
    target.tensors[i] = {from.tensor.dtype, from.tensor.shape,
                         verify::values_of(from.tensor.bytes, from.tensor.dtype)};
    to.tensor = &target.tensors[i];
    to.written = schema_->args[i].written();
    to.tied = schema_->args[i].dtype_variable >= 0;
  }
}

std::vector<replay::RecordedArgument> ReplayStage::for_reference(const replay::Recording& call,
                                                                 const ReplayTarget& target) const {
  std::vector<replay::RecordedArgument> plain = call.arguments;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (plain[i].tag != ArgTag::tensor) continue;
    replay::RecordedTensor& tensor = plain[i].tensor;
    tensor.same_as.clear();
    tensor.strides = replay::packed_strides(tensor.shape);
    if (!verify::widens(target.view, target.view.arguments[i])) continue;
    if (!tensor.bytes.empty()) tensor.bytes = as_f32(target.tensors[i].values);
    tensor.dtype = f32;
  }
  return plain;
}

Status ReplayStage::expect(const replay::Recording& call, ReplayTarget& target) const {
  view_of(call, target);
  const std::vector<replay::RecordedArgument> plain = for_reference(call, target);
  Run reference = run(call, plain, reference_);
  if (!reference.status.ok()) return reference.status;
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (!written(call, i)) continue;
    values.push_back(verify::values_of(reference.outputs[values.size()], plain[i].tensor.dtype));
  }
  target.expected = verify::bounded(target.view, std::move(values));
  return {};
}

ReplayedImplementation ReplayStage::judge(const replay::Recording& call,
                                          const std::string& id) const {
  ReplayedImplementation judged;
  judged.id = id;
  ReplayTarget target;
  if (const Status status = expect(call, target); !status.ok()) {
    judged.text = base::concat("no reference result to compare ", id, " with: ", status.message());
    return judged;
  }
  const Run made = run(call, call.arguments, id);
  if (!made.status.ok()) {
    const bool asked = made.ran == id && !refused(made.status);
    judged.verdict = asked ? ReplayVerdict::fails : ReplayVerdict::cannot;
    judged.text = base::concat(asked ? "it returned " : "it does not accept the call: ",
                               made.status.to_string());
    return judged;
  }
  const auto mismatch = verify::judge(target.view, target.expected, made.outputs);
  if (!mismatch) {
    judged.verdict = ReplayVerdict::agrees;
    judged.text = base::concat(id, " agrees with ", reference_);
    return judged;
  }
  judged.verdict = ReplayVerdict::differs;
  judged.difference = {
      call.arguments[mismatch->argument].name,
      verify::index_of(call.arguments[mismatch->argument].tensor.shape, mismatch->element),
      mismatch->got, mismatch->expected, mismatch->tolerance};
  judged.text =
      base::concat(id, " differs from the reference at ", mismatch->place(target.view), ": ",
                   short_number(mismatch->got), " instead of ", short_number(mismatch->expected),
                   " (tolerance ", short_number(mismatch->tolerance), ")");
  return judged;
}

}  // namespace opmux::replay

namespace opmux {
namespace {

constexpr size_t kMostTries = 1000;
constexpr std::array<std::string_view, 4> kVerdicts{"agrees", "differs", "fails", "cannot"};

/// The replay of one file in one runtime.
class Replay {
 public:
  Replay(runtime::Core& core, replay::Recording call, const registry::OperatorRecord& op)
      : core_(core), call_(std::move(call)), op_(op) {}

  Result<ReplayReport> run(const Operator& handle, const ReplayOptions& options) {
    if (Status status = fit_schema(); !status.ok()) return status;
    describe();
    const auto drawn = replay::draw_missing_elements(call_);
    if (!drawn) return drawn.error();
    note_surroundings(*drawn);
    const replay::ReplayStage stage(core_, handle, *op_.schema, report_.reference);
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
                           &replay::RecordedArgument::name, &schema::ArgSpec::name);
    schema::BoundDims dims{};
    Status status = fits ? replay::check_recorded(*op_.schema, call_.arguments, dims)
                         : Status(Code::invalid_argument, "", "it has different arguments");
    if (status.ok()) return {};
    return {Code::unsupported, "replay.schema",
            base::concat("the recorded call does not match the operator ", call_.op,
                         " of this runtime: ", status.message())};
  }

  void describe() {
    report_.op = call_.op;
    report_.recorded = call_.implementation;
    report_.cause = replay::name_of(call_.cause);
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
    const bool pinned = !call_.build_id.empty();
    if (here != nullptr && pinned && here->build_id != call_.build_id) {
      report_.notes.push_back(
          base::concat(call_.implementation, " comes from another build in this runtime"));
    }
    const std::string missing = base::missing_features(call_.cpu, base::cpu_features());
    if (!missing.empty()) {
      report_.notes.push_back(base::concat("this machine's CPU lacks ", missing));
    }
  }

  ReplayedImplementation judge(const replay::ReplayStage& stage, const std::string& id) const {
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
    if (const replay::RecordedArgument* odd = not_comparable()) {
      return {id, ReplayVerdict::cannot,
              base::concat(odd->name, " has dtype ", name_of(odd->tensor.dtype),
                           ", whose results cannot be compared")};
    }
    return stage.judge(call_, id);
  }

  const replay::RecordedArgument* not_comparable() const {
    const auto odd = [](const replay::RecordedArgument& argument) {
      return argument.tag == ArgTag::tensor && !verify::comparable(argument.tensor.dtype);
    };
    const auto found = std::ranges::find_if(call_.arguments, odd);
    return found == call_.arguments.end() ? nullptr : &*found;
  }

  void make_smaller(const replay::ReplayStage& stage, ReplayedImplementation first) {
    if (first.verdict != ReplayVerdict::differs && first.verdict != ReplayVerdict::fails) return;
    size_t tried = 0;
    const auto wrong = [&](const replay::Recording& smaller) {
      ReplayedImplementation judged = stage.judge(smaller, first.id);
      if (judged.verdict != first.verdict) return false;
      report_.implementations.front() = std::move(judged);
      return true;
    };
    replay::Recording smallest = replay::minimize(*op_.schema, call_, wrong, kMostTries, tried);
    const ReplayedImplementation& last = report_.implementations.front();
    smallest.implementation = last.id;
    if (const auto& difference = last.difference) {
      smallest.element =
          replay::RecordedElement{difference->argument, difference->index, difference->got,
                                  difference->expected, difference->allowed};
    }
    report_.smaller_arguments = smallest.arguments_text();
    report_.smaller = replay::to_file(smallest);
    report_.tried = tried;
  }

  runtime::Core& core_;
  replay::Recording call_;
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

Result<ReplayReport> ReplayControl::run(const std::string& path, const ReplayOptions& options) {
  return base::or_out_of_memory([&]() -> Result<ReplayReport> {
    auto recording = replay::read_file(path);
    if (!recording) return recording.error();
    recording->forget_results();
    const Result<Operator> handle = core_->op(recording->op);
    if (!handle) return handle.error();
    core_->plugins().warm_up();
    const registry::RegistrySnapshotPtr snapshot = core_->registry().snapshot();
    const registry::OperatorRecord* const found = snapshot->find(recording->op);
    return Replay(*core_, std::move(*recording), *found).run(*handle, options);
  });
}

RecordState ReplayControl::recordings() const { return core_->recorder().state(); }

}  // namespace opmux

namespace opmux {
namespace {

void write_difference(base::JsonWriter& json, const ReplayDifference& difference) {
  json.open('{').key("argument").text(difference.argument).key("index").open('[');
  for (const int64_t i : difference.index) json.number(i);
  json.close(']').key("got").number(difference.got);
  json.key("expected").number(difference.expected).key("allowed").number(difference.allowed);
  json.close('}');
}

}  // namespace

std::string to_json(const ReplayReport& report) {
  base::JsonWriter json;
  json.open('{').key("op").text(report.op).key("verdict").text(name_of(report.verdict()));
  json.key("recorded").open('{').key("implementation").text(report.recorded);
  json.key("cause").text(report.cause).key("reason").text(report.reason);
  json.key("says").text(report.says).close('}');
  json.key("arguments").text(report.arguments).key("reference").text(report.reference);
  json.key("other_values").boolean(report.other_values).key("notes").texts(report.notes);
  json.key("implementations").open('[');
  for (const ReplayedImplementation& one : report.implementations) {
    json.open('{').key("id").text(one.id).key("verdict").text(name_of(one.verdict));
    json.key("text").text(one.text);
    if (one.difference) write_difference(json.key("difference"), *one.difference);
    json.close('}');
  }
  json.close(']');
  if (!report.smaller.empty()) {
    json.key("smaller").open('{').key("arguments").text(report.smaller_arguments);
    json.key("tried").number(report.tried).close('}');
  }
  json.close('}');
  return json.take();
}

std::string to_json(const RecordState& state) {
  base::JsonWriter json;
  json.open('{').key("folder").text(state.folder).key("inputs").boolean(state.inputs);
  json.key("written").number(state.written).key("known").number(state.known);
  json.key("left_out").number(state.left_out).key("failed").number(state.failed);
  json.key("problem").text(state.problem).close('}');
  return json.take();
}

}  // namespace opmux
