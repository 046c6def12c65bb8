#include "schema/dims.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "schema/arguments.hpp"

namespace opmux::schema {
namespace {

using Op = WhereExpression::Op;

/// Whether a condition reads a dimension or argument that is absent in this call.
bool concerns_absent(const WhereExpression& condition, const BoundDims& dims,
                     const Arguments& arguments) {
  return std::any_of(condition.steps.begin(), condition.steps.end(), [&](const auto& step) {
    return (step.op == Op::dim && dims.values[step.index] < 0) ||
           (step.op == Op::scalar && arguments.tags[step.index] == ArgTag::none);
  });
}

// Numbers of DLDeviceType.
constexpr int32_t kPinnedForCuda = 3, kPinnedForRocm = 11;
constexpr int32_t kManagedByCuda = 13;  ///< the CPU and the device can both access it

/// The device whose kernels can access this memory. Pinned memory is memory of the CPU.
Device memory_of(Device device) {
  return device.type == kPinnedForCuda || device.type == kPinnedForRocm ? Device{} : device;
}

}  // namespace

void read_scalars(const Arguments& arguments, Scalars& scalars) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const ArgTag tag = arguments.tags[i];
    const bool scalar =
        tag == ArgTag::integer || tag == ArgTag::logical || tag == ArgTag::enumeration;
    scalars[i] = scalar ? arguments.values[i].i64 : 0;
  }
}

DimBinder::DimBinder(const Schema& schema, const Arguments& arguments, BoundDims& dims)
    : schema_(schema), arguments_(arguments), dims_(dims) {
  std::fill_n(dims.values.begin(), schema.dims.size(), -1);
  std::fill_n(dtypes_.begin(), schema.dtype_variables.size(), 0);
  dims.leading_rank = -1;
  dims.rows = 1;
}

Status DimBinder::bind(size_t index) {
  const ArgSpec& arg = schema_.args[index];
  if (arguments_.tags[index] == ArgTag::none) {
    return arg.optional ? Status() : fail_missing(schema_, index);
  }
  if (arg.type == ArgType::tensor) return bind_tensor(index, *arguments_.values[index].tensor);
  return arg.type == ArgType::tensor_list ? bind_list(index) : Status();
}

Status DimBinder::check_size(size_t index, const TensorView& tensor) const {
  int64_t bytes = std::max<int64_t>(tensor.dtype().size_bytes(), 1);
  bool fits = true;
  for (int i = 0; i < tensor.rank(); ++i) {
    const int64_t size = tensor.dim(i);
    fits &= size >= 0 && !__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  return fits ? Status() : fail_size(schema_, index, tensor);
}

Status DimBinder::bind_tensor(size_t index, const TensorView& tensor) {
  const ArgSpec& arg = schema_.args[index];
  if (!tensor.present()) return arg.optional ? Status() : fail_missing(schema_, index);
  if (Status status = check_size(index, tensor); !status.ok()) return status;
  if (Status status = bind_device(index, tensor); !status.ok()) return status;
  if (arg.dtype_variable >= 0) {
    if (Status status = bind_dtype(index, tensor); !status.ok()) return status;
  }
  if (arg.any_shape) return {};
  const int leading_rank = tensor.rank() - static_cast<int>(arg.dims.size());
  if (leading_rank < 0 || (leading_rank > 0 && !arg.leading)) {
    return fail_rank(schema_, index, tensor);
  }
  if (arg.leading) {
    if (Status status = bind_leading(tensor, leading_rank); !status.ok()) return status;
  }
  for (size_t i = 0; i < arg.dims.size(); ++i) {
    const DimSpec& spec = arg.dims[i];
    const int64_t size = tensor.dim(leading_rank + static_cast<int>(i));
    if (spec.name < 0) {
      if (size != spec.constant) return fail_constant(schema_, index, i, size, spec.constant);
      continue;
    }
    int64_t& bound = dims_.values[spec.name];
    if (bound < 0) bound = size;
    if (bound != size) return fail_dim(schema_, arguments_, spec.name);
  }
  return {};
}

Status DimBinder::bind_list(size_t index) {
  const opmux_list& list = *arguments_.values[index].list;
  const auto* tensors = static_cast<const TensorView* const*>(list.data);
  for (uint64_t i = 0; i < list.size; ++i) {
    if (tensors[i] == nullptr || !tensors[i]->present()) return fail_missing(schema_, index);
    if (Status status = check_size(index, *tensors[i]); !status.ok()) return status;
    if (Status status = bind_device(index, *tensors[i]); !status.ok()) return status;
    if (schema_.args[index].dtype_variable < 0) continue;
    if (Status status = bind_dtype(index, *tensors[i]); !status.ok()) return status;
  }
  return {};
}

Status DimBinder::bind_leading(const TensorView& tensor, int leading_rank) {
  if (dims_.leading_rank < 0) {
    dims_.leading_rank = leading_rank;
    for (int i = 0; i < leading_rank; ++i) {
      dims_.leading[i] = tensor.dim(i);
      dims_.rows *= tensor.dim(i);  // cannot overflow: check_size() multiplied these sizes too
    }
    return {};
  }
  bool same = dims_.leading_rank == leading_rank;
  for (int i = 0; same && i < leading_rank; ++i) same = dims_.leading[i] == tensor.dim(i);
  return same ? Status() : fail_leading(schema_, arguments_);
}

Status DimBinder::bind_dtype(size_t index, const TensorView& tensor) {
  const int variable = schema_.args[index].dtype_variable;
  uint32_t& bound = dtypes_[variable];
  const uint32_t dtype = tensor.dtype().packed();
  if (bound == 0) bound = dtype;
  return bound == dtype ? Status() : fail_dtype(schema_, arguments_, variable);
}

Status DimBinder::bind_device(size_t index, const TensorView& tensor) {
  if (schema_.mixed_devices) return {};
  const Device device = memory_of(tensor.device());
  if (device.type == kManagedByCuda) return {};
  if (device_arg_ < 0) {
    device_arg_ = static_cast<int>(index);
    device_ = device;
  }
  if (device == device_) [[likely]]
    return {};
  return fail_device(schema_, static_cast<size_t>(device_arg_), device_, index, tensor.device());
}

Status DimBinder::check_where() const {
  if (schema_.where.empty()) return {};
  Scalars scalars;
  read_scalars(arguments_, scalars);
  const std::span<const int64_t> dims(dims_.values.data(), schema_.dims.size());
  for (const WhereExpression& condition : schema_.where) {
    if (condition.holds(dims, std::span(scalars).first(arguments_.count))) continue;
    if (concerns_absent(condition, dims_, arguments_)) continue;
    return fail_where(schema_, condition, dims_, scalars);
  }
  return {};
}

Status check_arguments(const Schema& schema, const Arguments& arguments, BoundDims& dims) {
  DimBinder binder(schema, arguments, dims);
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (Status status = binder.bind(i); !status.ok()) return status;
  }
  return binder.check_where();
}

namespace {

constexpr uint8_t kNowhere = 255;

/// The argument and dimension where a value was first seen. Each later occurrence adds an equality.
struct Source {
  uint8_t arg = kNowhere;
  uint8_t dim = 0;

  void meet(uint8_t other_arg, uint8_t other_dim, std::vector<DimEquality>& equalities) {
    if (arg != kNowhere) {
      equalities.push_back({arg, dim, other_arg, other_dim});
      return;
    }
    arg = other_arg;
    dim = other_dim;
  }
};

bool is_shaped(const ArgSpec& arg, const Arguments& example, size_t index) {
  return arg.is_tensor() && !arg.any_shape && example.tags[index] == ArgTag::tensor &&
         example.values[index].tensor->present();
}

}  // namespace

DimChecks resolve_dim_checks(const Schema& schema, const Arguments& example) {
  DimChecks checks;
  std::array<Source, OPMUX_MAX_RANK> leading;
  std::array<Source, kMaxDims> names;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const ArgSpec& arg = schema.args[i];
    if (!is_shaped(arg, example, i)) continue;
    const auto place = static_cast<uint8_t>(i);
    const auto leading_rank =
        static_cast<uint8_t>(example.values[i].tensor->rank() - static_cast<int>(arg.dims.size()));
    uint8_t dim = 0;
    for (; dim < leading_rank; ++dim) leading[dim].meet(place, dim, checks.equalities);
    for (const DimSpec& spec : arg.dims) {
      if (spec.name < 0) {
        checks.constants.push_back({place, dim, spec.constant});
      } else {
        names[spec.name].meet(place, dim, checks.equalities);
      }
      ++dim;
    }
  }
  for (size_t i = 0; i < kMaxDims; ++i) {
    checks.source_arg[i] = names[i].arg;
    checks.source_dim[i] = names[i].dim;
  }
  return checks;
}

namespace {

using base::concat;
using Op = WhereExpression::Op;

class Inference {
 public:
  Inference(const Schema& schema, const Arguments& arguments)
      : schema_(schema), arguments_(arguments), binder_(schema, arguments_, dims_) {
    read_scalars(arguments, scalars_);
  }

  Result<std::vector<InferredTensor>> run() {
    for (size_t i = 0; i < schema_.args.size(); ++i) {
      if (!schema_.args[i].read()) continue;
      if (Status status = binder_.bind(i); !status.ok()) return status;
    }
    solve_conditions();
    learn_from_outputs();
    if (Status status = binder_.check_where(); !status.ok()) return status;
    std::vector<InferredTensor> outputs;
    for (size_t i = 0; i < schema_.args.size(); ++i) {
      const ArgSpec& arg = schema_.args[i];
      if (arg.read()) continue;
      InferredTensor output{static_cast<int>(i), dtype_of(arg), {}};
      Status status = infer_shape(arg, output);
      if (status.ok()) {
        outputs.push_back(std::move(output));
      } else if (!arg.optional) {
        return status;
      }
    }
    return outputs;
  }

 private:
  const TensorView* tensor(size_t index) const {
    return arguments_.tags[index] == ArgTag::tensor ? arguments_.values[index].tensor : nullptr;
  }

  /// Binds dimensions that inputs do not determine from outputs that the caller did pass.
  void learn_from_outputs() {
    for (size_t i = 0; i < schema_.args.size(); ++i) {
      const ArgSpec& arg = schema_.args[i];
      if (arg.read() || !arg.is_tensor() || arg.any_shape) continue;
      if (tensor(i) == nullptr || !tensor(i)->present()) continue;
      const int leading = tensor(i)->rank() - static_cast<int>(arg.dims.size());
      for (size_t k = 0; leading >= 0 && k < arg.dims.size(); ++k) {
        const int name = arg.dims[k].name;
        if (name < 0 || dims_.values[name] >= 0) continue;
        dims_.values[name] = tensor(i)->dim(leading + static_cast<int>(k));
      }
    }
    solve_conditions();
  }

  /// Repeats, because each solved dimension may make another condition solvable.
  void solve_conditions() {
    for (size_t round = 0; round < schema_.dims.size(); ++round) {
      bool progress = false;
      for (const WhereExpression& condition : schema_.where) progress |= solve(condition);
      if (!progress) return;
    }
  }

  /// Solves an equality that is linear in its only unbound dimension: if its sides differ by c at 0
  /// and by c + k at 1, they are equal at -c / k. holds() then checks the solution.
  bool solve(const WhereExpression& condition) {
    const int unknown = only_unknown(condition);
    if (unknown < 0 || condition.steps.back().op != Op::equal) return false;
    std::vector<WhereExpression::Step> difference = condition.steps;
    difference.back().op = Op::subtract;
    const auto at = [&](int64_t value) {
      dims_.values[unknown] = value;
      return evaluate(difference, dims(), scalars_);
    };
    const std::optional<int64_t> zero = at(0), one = at(1);
    int64_t slope = 0;
    const bool linear = zero && one && !__builtin_sub_overflow(*one, *zero, &slope) && slope != 0;
    const bool whole = linear && *zero != INT64_MIN && *zero % slope == 0;
    dims_.values[unknown] = whole ? -(*zero / slope) : -1;
    if (whole && dims_.values[unknown] >= 0 && condition.holds(dims(), scalars_)) return true;
    dims_.values[unknown] = -1;
    return false;
  }

  /// The unbound dimension of a condition; -1 if there is none or more than one.
  int only_unknown(const WhereExpression& condition) const {
    int unknown = -1;
    for (const WhereExpression::Step& step : condition.steps) {
      if (step.op == Op::scalar && arguments_.tags[step.index] == ArgTag::none) return -1;
      if (step.op != Op::dim || dims_.values[step.index] >= 0 || step.index == unknown) continue;
      if (unknown >= 0) return -1;
      unknown = step.index;
    }
    return unknown;
  }

  std::span<const int64_t> dims() const { return {dims_.values.data(), schema_.dims.size()}; }

  DType dtype_of(const ArgSpec& output) const {
    if (output.integer) return i64;
    const TensorView* first = nullptr;
    for (size_t i = 0; i < schema_.args.size(); ++i) {
      const ArgSpec& arg = schema_.args[i];
      if (!arg.read() || tensor(i) == nullptr) continue;
      const bool tied = arg.dtype_variable >= 0 && arg.dtype_variable == output.dtype_variable;
      if (tied) return tensor(i)->dtype();
      if (first == nullptr) first = tensor(i);
    }
    return first == nullptr ? DType{} : first->dtype();
  }

  Status infer_shape(const ArgSpec& arg, InferredTensor& output) const {
    if (output.dtype.bits == 0)
      return not_inferable(arg, "its dtype, because there is no input tensor");
    if (!arg.is_tensor()) return not_inferable(arg, "the length of the list");
    if (arg.any_shape) return shape_of_alias(arg, output);
    if (arg.leading) {
      if (dims_.leading_rank < 0) return not_inferable(arg, "the leading dimensions '...'");
      output.shape.assign(dims_.leading.begin(), dims_.leading.begin() + dims_.leading_rank);
    }
    for (const DimSpec& spec : arg.dims) {
      const int64_t size = spec.name < 0 ? spec.constant : dims_.values[spec.name];
      if (size < 0) return not_inferable(arg, unknown_dim(spec.name));
      output.shape.push_back(size);
    }
    if (output.shape.size() <= OPMUX_MAX_RANK) return {};
    return not_inferable(arg, concat("a shape of ", output.shape.size(), " dimensions"));
  }

  Status shape_of_alias(const ArgSpec& arg, InferredTensor& output) const {
    const TensorView* same = arg.alias_of < 0 ? nullptr : tensor(static_cast<size_t>(arg.alias_of));
    if (same == nullptr) return not_inferable(arg, "its shape, which the schema leaves open");
    output.shape.assign(same->shape().begin(), same->shape().end());
    return {};
  }

  /// The dimension and the conditions that did not determine it, as text.
  std::string unknown_dim(int name) const {
    std::string text = concat("dimension ", schema_.dims[name]);
    for (const WhereExpression& condition : schema_.where) {
      if (condition.mentions(Op::dim, name)) text += concat(" (", condition.text, ")");
    }
    return text;
  }

  Status not_inferable(const ArgSpec& arg, std::string_view what) const {
    return {Code::invalid_argument, "schema.not_inferable",
            concat(schema_.name, ": cannot infer '", arg.name, "': the inputs do not determine ",
                   what)};
  }

  const Schema& schema_;
  const Arguments& arguments_;
  BoundDims dims_;
  Scalars scalars_{};
  DimBinder binder_;
};

}  // namespace

Result<std::vector<InferredTensor>> infer_outputs(const Schema& schema,
                                                  const Arguments& arguments) {
  return Inference(schema, arguments).run();
}

}  // namespace opmux::schema
