#include "tuner/measure/recorded_call.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"

namespace opmux::tuner {
namespace {

using replay::RecordedArgument;

Status wrong(const replay::Recording& recording, const std::string& message) {
  return {Code::unsupported, "tune.cell",
          base::concat("a recorded call of ", recording.op, " ", message)};
}

bool is_row_major(const replay::RecordedTensor& tensor) {
  int64_t step = 1;
  for (size_t i = tensor.shape.size(); i > 0; --i) {
    if (tensor.shape[i - 1] != 1 && tensor.strides[i - 1] != step) return false;
    step *= std::max<int64_t>(tensor.shape[i - 1], 1);
  }
  return true;
}

/// Adds the sizes of the named dimensions of a tensor. False if its rank does not fit.
bool add_dims(const ArgumentInfo& info, const std::vector<int64_t>& shape,
              std::map<std::string, int64_t>& dims) {
  const bool leading = !info.dims.empty() && info.dims[0] == "...";
  const size_t named = info.dims.size() - (leading ? 1 : 0);
  if (shape.size() < named || (!leading && shape.size() != named)) return false;
  const size_t before = shape.size() - named;
  int64_t rows = 1;
  for (size_t i = 0; i < before; ++i) rows *= shape[i];
  if (before > 0) dims["rows"] = rows;
  for (size_t i = 0; i < named; ++i) {
    const std::string& name = info.dims[i + (leading ? 1 : 0)];
    if (name[0] < '0' || name[0] > '9') dims[name] = shape[before + i];
  }
  return true;
}

}  // namespace

Result<CellSpec> spec_of(const replay::Recording& recording, const Operator& op) {
  CellSpec spec;
  spec.op = recording.op;
  std::map<std::string, int64_t> dims;
  const std::vector<ArgumentInfo> infos = op.arguments();
  for (const RecordedArgument& argument : recording.arguments) {
    const auto info = std::ranges::find(infos, argument.name, &ArgumentInfo::name);
    if (info == infos.end()) return wrong(recording, "has another schema");
    if (argument.tag == ArgTag::none) continue;
    if (is_list(argument.tag)) return wrong(recording, "has strings or lists");
    if (argument.tag != ArgTag::tensor) {
      spec.given.push_back({argument.name, argument.i64, argument.f64, {}});
      continue;
    }
    const replay::RecordedTensor& tensor = argument.tensor;
    if (tensor.device.type != OPMUX_DEVICE_CPU) return wrong(recording, "was on a device");
    if (!is_row_major(tensor)) return wrong(recording, "has tensors with gaps between elements");
    if (info->any_shape || !add_dims(*info, tensor.shape, dims))
      return wrong(recording, base::concat("has a tensor ", argument.name, " of any shape"));
    spec.dtypes.push_back(base::concat(argument.name, "=", name_of(tensor.dtype)));
    if (info->optional) spec.with.push_back(argument.name);
    if (!tensor.bytes.empty()) spec.given.push_back({argument.name, 0, 0, tensor.bytes});
  }
  spec.dims.assign(dims.begin(), dims.end());
  return spec;
}

}  // namespace opmux::tuner
