#include "runtime/replay_stage.hpp"

#include <cstdio>
#include <thread>

#include <opmux/scope.hpp>

#include "base/text.hpp"
#include "record/elements.hpp"
#include "record/placed_call.hpp"
#include "registry/facts.hpp"
#include "verify/element.hpp"
#include "verify/element_index.hpp"

namespace opmux::runtime {
namespace {

Ambient ambient_of(uint32_t bits) {
  return {.grad = (bits & registry::kGrad) != 0,
          .capturing = false,  // replays do not capture
          .deterministic = (bits & registry::kDeterministic) != 0,
          .training = (bits & registry::kTraining) != 0};
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

bool ReplayStage::written(const record::Recording& call, size_t argument) const {
  return call.arguments[argument].tag == ArgTag::tensor && schema_->args[argument].written();
}

/// Runs on a new thread, so that scopes of the calling thread do not apply.
ReplayStage::Run ReplayStage::run(const record::Recording& call,
                                  const std::vector<record::RecordedArgument>& arguments,
                                  const std::string& id) const {
  Run run;
  auto placed = record::PlacedCall::place(arguments);
  if (!placed) {
    run.status = placed.error();
    return run;
  }
  std::thread([&] {
    const PolicyScope scope(*runtime_, only(id));
    const AmbientScope ambient(ambient_of(call.ambient));
    CallReport report;
    run.status = scope.status().ok()
                     ? op_.call_arguments(placed->arguments(),
                                          {.max_threads = std::max(call.max_threads, 0)}, &report)
                     : scope.status();
    run.ran = report.implementation;
  }).join();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (written(call, i)) run.outputs.push_back(placed->elements(i));
  }
  return run;
}

void ReplayStage::view_of(const record::Recording& call, ReplayTarget& target) const {
  target.tensors.resize(call.arguments.size());
  target.view.op = call.op;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const record::RecordedArgument& from = call.arguments[i];
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

std::vector<record::RecordedArgument> ReplayStage::for_reference(const record::Recording& call,
                                                                 const ReplayTarget& target) const {
  std::vector<record::RecordedArgument> plain = call.arguments;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (plain[i].tag != ArgTag::tensor) continue;
    record::RecordedTensor& tensor = plain[i].tensor;
    tensor.same_as.clear();
    tensor.strides = record::packed_strides(tensor.shape);
    if (!verify::widens(target.view, target.view.arguments[i])) continue;
    if (!tensor.bytes.empty()) tensor.bytes = as_f32(target.tensors[i].values);
    tensor.dtype = f32;
  }
  return plain;
}

Status ReplayStage::expect(const record::Recording& call, ReplayTarget& target) const {
  view_of(call, target);
  const std::vector<record::RecordedArgument> plain = for_reference(call, target);
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

ReplayedImplementation ReplayStage::judge(const record::Recording& call,
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

}  // namespace opmux::runtime
