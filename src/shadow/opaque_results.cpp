#include "shadow/opaque_results.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace opmux::shadow {
namespace {

std::string shape_of(const TensorView& tensor) {
  std::string text = name_of(tensor.dtype()) + "[";
  for (int d = 0; d < tensor.rank(); ++d) {
    text += (d == 0 ? "" : ",") + std::to_string(tensor.dim(d));
  }
  return text + "]";
}

verify::CallCopy copy_of(const std::vector<TensorView>& tensors) {
  const ReturnedTensors returned(tensors);
  verify::CallCopy copy(returned.call());
  copy.take_outputs(returned.call());
  return copy;
}

}  // namespace

ReturnedTensors::ReturnedTensors(const std::vector<TensorView>& tensors) {
  arguments_.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    arguments_[i].tag = OPMUX_ARG_TENSOR;
    arguments_[i].flags = OPMUX_ACCESS_OUT;
    arguments_[i].value.tensor = &tensors[i].c();
  }
  call_.struct_size = sizeof(opmux_call);
  call_.args = arguments_.data();
  call_.arg_count = static_cast<uint32_t>(arguments_.size());
  call_.arg_stride = sizeof(opmux_arg);
}

ComparedResults::ComparedResults(std::string_view op, const std::vector<TensorView>& got,
                                 const std::vector<TensorView>& expected) {
  if (got.size() != expected.size()) {
    differs_ =
        base::concat("it returned ", got.size(), " tensors, the reference ", expected.size());
    return;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    names_.push_back(got.size() == 1 ? "result" : base::concat("result", i));
    tensors_.push_back({got[i].dtype(), {got[i].shape().begin(), got[i].shape().end()}, {}});
    const std::string own = shape_of(got[i]), wanted = shape_of(expected[i]);
    if (own == wanted) continue;
    differs_ = base::concat(names_.back(), " is ", own, ", the reference returned ", wanted);
    return;
  }
  view_.op = op;
  for (size_t i = 0; i < got.size(); ++i) {
    view_.arguments.push_back({names_[i], true, &tensors_[i], true, true});
  }
  std::vector<std::vector<double>> values;
  for (const std::vector<std::byte>& packed : copy_of(expected).outputs()) {
    values.push_back(verify::values_of(packed, tensors_[values.size()].dtype));
  }
  mismatch_ =
      verify::judge(view_, verify::bounded(view_, std::move(values)), copy_of(got).outputs());
}

}  // namespace opmux::shadow
