#include "runtime/recorded_divergence.hpp"

#include "verify/element_index.hpp"

namespace opmux::runtime {
namespace {

constexpr uint32_t kPage = 4096;

int64_t alignment_of_copied(uint32_t misalignment) {
  return misalignment % kPage == 0 ? kPage : misalignment & (~misalignment + 1);
}

record::RecordedTensor recorded_tensor(const verify::CopiedArgument& from, size_t& left,
                                       bool inputs) {
  record::RecordedTensor tensor;
  tensor.dtype = from.dtype;
  tensor.device = from.device;
  tensor.shape.assign(from.shape.begin(), from.shape.begin() + from.rank);
  tensor.strides.assign(from.strides.begin(), from.strides.begin() + from.rank);
  tensor.alignment = alignment_of_copied(from.misalignment);
  if (!from.read) return tensor;
  if (from.before.size() > left) {
    tensor.contents = record::Contents::large;
    return tensor;
  }
  left -= from.before.size();
  record::keep_elements(tensor, {from.before.begin(), from.before.end()}, inputs);
  return tensor;
}

}  // namespace

void describe_divergence(const verify::Divergence& divergence, const record::CaptureRules& rules,
                         record::Recording& recording) {
  const std::vector<verify::CopiedArgument>& copied = divergence.call.arguments();
  const verify::Mismatch& mismatch = divergence.mismatch;
  recording.cause = record::Cause::diverged;
  recording.reason = "shadow.mismatch";
  recording.says = divergence.text;
  recording.element =
      record::RecordedElement{divergence.schema.args[mismatch.argument].name,
                              verify::index_of(copied[mismatch.argument].dims(), mismatch.element),
                              mismatch.got, mismatch.expected, mismatch.tolerance};
  size_t left = rules.most;
  for (size_t i = 0; i < copied.size(); ++i) {
    record::RecordedArgument& argument = recording.arguments.emplace_back();
    argument.name = divergence.schema.args[i].name;
    argument.tag = static_cast<ArgTag>(copied[i].tag);
    argument.i64 = copied[i].i64;
    argument.f64 = copied[i].f64;
    if (copied[i].is_tensor()) argument.tensor = recorded_tensor(copied[i], left, rules.inputs);
  }
}

}  // namespace opmux::runtime
