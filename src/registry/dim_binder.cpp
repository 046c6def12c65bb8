#include "registry/dim_binder.hpp"

#include <algorithm>

namespace opmux::registry {
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

}  // namespace opmux::registry
