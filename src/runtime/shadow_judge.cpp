#include "runtime/shadow_judge.hpp"

#include <algorithm>
#include <cmath>

#include "dispatch/run_apart.hpp"
#include "verify/element.hpp"

namespace opmux::runtime {
namespace {

std::vector<std::byte> as_f32(std::span<const std::byte> packed, DType dtype) {
  const std::vector<double> values = verify::values_of(packed, dtype);
  std::vector<std::byte> wide(values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i)
    verify::write_element(&wide[i * sizeof(float)], f32, values[i]);
  return wide;
}

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

}  // namespace

CallAgain::CallAgain(const verify::CallCopy& copy, const verify::CallView& view)
    : copy_(copy), tensors_(copy.arguments().size()), memory_(copy.arguments().size()) {
  arguments_.count = static_cast<uint32_t>(copy.arguments().size());
  for (size_t i = 0; i < copy.arguments().size(); ++i) {
    const verify::CopiedArgument& from = copy.arguments()[i];
    arguments_.tags[i] = static_cast<ArgTag>(from.tag);
    if (from.is_tensor()) {
      place(i, from, verify::widens(view, view.arguments[i]));
    } else if (from.tag == OPMUX_ARG_F64) {
      arguments_.values[i].f64 = from.f64;
    } else if (from.tag == OPMUX_ARG_NONE) {
      arguments_.values[i].tensor = &tensors_[i];
    } else {
      arguments_.values[i].i64 = from.i64;
    }
  }
}

void CallAgain::place(size_t i, const verify::CopiedArgument& from, bool wide) {
  const DType dtype = wide ? f32 : from.dtype;
  widened_ |= wide && from.dtype != f32;
  std::byte* data = from.before.data();
  if (from.written) {
    if (from.read) {
      memory_[i] = wide ? as_f32(from.before, from.dtype)
                        : std::vector<std::byte>(from.before.begin(), from.before.end());
    } else {
      const size_t elements = from.after.size() / static_cast<size_t>(from.dtype.size_bytes());
      memory_[i].assign(elements * static_cast<size_t>(dtype.size_bytes()), std::byte{0xff});
    }
    data = memory_[i].data();
  }
  tensors_[i] = TensorView(data, dtype, from.dims(), {}, from.device);
  arguments_.values[i].tensor = &tensors_[i];
}

std::vector<std::vector<double>> CallAgain::results() const {
  std::vector<std::vector<double>> all;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!copy_.arguments()[i].written) continue;
    all.push_back(verify::values_of(memory_[i], tensors_[i].dtype()));
  }
  return all;
}

ShadowVerdict compare_with_reference(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
                                     verify::JudgedCall& judged) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const CallAgain again(copy, judged.view());
    Status status = dispatch::run_reference(slot, again.arguments(), copy.tag());
    if (!status.ok() && attempt == 0 && again.widened()) {
      judged.tie_outputs();  // the reference does not write f32
      continue;
    }
    if (!status.ok()) return {std::move(status)};
    const verify::Expected expected = verify::bounded(judged.view(), again.results());
    return {{}, verify::judge(judged.view(), expected, copy.outputs())};
  }
  return {};
}

std::optional<verify::Mismatch> not_finite(const verify::CallCopy& copy,
                                           const verify::CallView& view) {
  for (const verify::ArgumentView& argument : view.arguments) {
    if (argument.tensor != nullptr && !all_finite(argument.tensor->values)) return {};
    if (!std::isfinite(argument.f64)) return {};
  }
  for (size_t i = 0; i < copy.arguments().size(); ++i) {
    const verify::CopiedArgument& written = copy.arguments()[i];
    if (!written.written || !verify::is_float(written.dtype)) continue;
    const std::vector<double> values = verify::values_of(written.after, written.dtype);
    for (size_t element = 0; element < values.size(); ++element) {
      if (!std::isfinite(values[element]))
        return verify::Mismatch{i, element, values[element], 0, 0};
    }
  }
  return {};
}

}  // namespace opmux::runtime
