#include "schema/argument_errors.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace opmux::schema {
namespace {

using base::concat;

std::string shape_text(std::span<const int64_t> shape) {
  return concat('[', base::join(shape, ", "), ']');
}

/// The value that one argument gives to a property on which several arguments must agree.
struct Statement {
  std::string arg;
  std::string value;
  bool input;
};

/// "4096 in x but 4095 in weight": compares the first input with the first argument that differs.
std::string disagreement(const std::vector<Statement>& statements) {
  auto believed = std::find_if(statements.begin(), statements.end(),
                               [](const Statement& s) { return s.input; });
  if (believed == statements.end()) believed = statements.begin();
  const auto differs = std::find_if(statements.begin(), statements.end(),
                                    [&](const Statement& s) { return s.value != believed->value; });
  if (differs == statements.end()) return "not the same in all arguments";
  return concat(believed->value, " in ", believed->arg, " but ", differs->value, " in ",
                differs->arg);
}

/// Calls visit(spec, tensor) for every tensor that is present, elements of lists included.
template <class Visit>
void for_each_tensor(const Schema& schema, const Arguments& arguments, Visit visit) {
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const ArgSpec& arg = schema.args[i];
    if (arguments.tags[i] == ArgTag::tensor) {
      if (arguments.values[i].tensor->present()) visit(arg, *arguments.values[i].tensor);
    } else if (arguments.tags[i] == ArgTag::tensor_list) {
      const opmux_list& list = *arguments.values[i].list;
      const auto* tensors = static_cast<const TensorView* const*>(list.data);
      for (uint64_t k = 0; k < list.size; ++k) {
        if (tensors[k] != nullptr) visit(arg, *tensors[k]);
      }
    }
  }
}

int leading_rank_of(const ArgSpec& arg, const TensorView& tensor) {
  return tensor.rank() - static_cast<int>(arg.dims.size());
}

bool has_schema_rank(const ArgSpec& arg, const TensorView& tensor) {
  const int leading_rank = leading_rank_of(arg, tensor);
  return arg.is_tensor() && !arg.any_shape && (arg.leading ? leading_rank >= 0 : leading_rank == 0);
}

}  // namespace

Status fail(const Schema& schema, std::string_view reason, std::string_view message) {
  return {Code::invalid_argument, std::string(reason), concat(schema.name, ": ", message)};
}

Status fail_missing(const Schema& schema, size_t index) {
  return fail(schema, "schema.argument_missing",
              concat("argument ", index + 1, " '", schema.argument_text(index), "' is missing"));
}

Status fail_size(const Schema& schema, size_t index, const TensorView& tensor) {
  const std::string& name = schema.args[index].name;
  if (tensor.rank() > 0 && tensor.dim(0) == TensorView::kUnrepresentable) {
    return fail(schema, "schema.rank",
                concat("'", name, "' has more than ", OPMUX_MAX_RANK,
                       " dimensions, or its strides do not match its rank"));
  }
  const auto shape = tensor.shape();
  const auto negative =
      std::find_if(shape.begin(), shape.end(), [](int64_t size) { return size < 0; });
  if (negative != shape.end()) {
    return fail(schema, "schema.dim_negative",
                concat("dimension ", negative - shape.begin(), " of '", name, "' is ", *negative));
  }
  return fail(schema, "schema.size_overflow",
              concat("the size of '", name, "' ", shape_text(shape), " of ",
                     name_of(tensor.dtype()), " does not fit in 63 bits"));
}

Status fail_rank(const Schema& schema, size_t index, const TensorView& tensor) {
  const ArgSpec& arg = schema.args[index];
  return fail(schema, "schema.rank",
              concat("'", schema.argument_text(index), "' has ", arg.leading ? "at least " : "",
                     arg.dims.size(), arg.dims.size() == 1 ? " dimension, " : " dimensions, ",
                     shape_text(tensor.shape()), " has ", tensor.rank()));
}

Status fail_constant(const Schema& schema, size_t index, size_t dim, int64_t found,
                     int64_t wanted) {
  const ArgSpec& arg = schema.args[index];
  return fail(
      schema, "schema.dim_mismatch",
      concat("dimension ", static_cast<int64_t>(dim) - static_cast<int64_t>(arg.dims.size()),
             " of '", arg.name, "' must be ", wanted, ", is ", found));
}

Status fail_dim(const Schema& schema, const Arguments& arguments, int name) {
  std::vector<Statement> statements;
  for_each_tensor(schema, arguments, [&](const ArgSpec& arg, const TensorView& tensor) {
    if (!has_schema_rank(arg, tensor)) return;
    for (size_t i = 0; i < arg.dims.size(); ++i) {
      const int place = leading_rank_of(arg, tensor) + static_cast<int>(i);
      if (arg.dims[i].name != name) continue;
      statements.push_back({arg.name, std::to_string(tensor.dim(place)), arg.access == Access::in});
    }
  });
  return fail(schema, "schema.dim_mismatch",
              concat(schema.dims[name], " is ", disagreement(statements)));
}

Status fail_leading(const Schema& schema, const Arguments& arguments) {
  std::vector<Statement> statements;
  for_each_tensor(schema, arguments, [&](const ArgSpec& arg, const TensorView& tensor) {
    if (!arg.leading || !has_schema_rank(arg, tensor)) return;
    const auto leading = tensor.shape().first(static_cast<size_t>(leading_rank_of(arg, tensor)));
    statements.push_back({arg.name, shape_text(leading), arg.access == Access::in});
  });
  return fail(schema, "schema.leading_mismatch", concat("'...' is ", disagreement(statements)));
}

Status fail_dtype(const Schema& schema, const Arguments& arguments, int variable) {
  std::vector<Statement> statements;
  for_each_tensor(schema, arguments, [&](const ArgSpec& arg, const TensorView& tensor) {
    if (arg.dtype_variable != variable) return;
    statements.push_back({arg.name, name_of(tensor.dtype()), arg.access == Access::in});
  });
  return fail(schema, "schema.dtype_tie",
              concat("dtype ", schema.dtype_variables[variable], " is ", disagreement(statements)));
}

Status fail_device(const Schema& schema, size_t index, Device device, size_t other,
                   Device other_device) {
  return fail(schema, "schema.device_mismatch",
              concat("'", schema.args[index].name, "' is on ", name_of(device), " and '",
                     schema.args[other].name, "' on ", name_of(other_device),
                     "; all tensors of a call must be on one device"));
}

Status fail_data(const Schema& schema, size_t index, const TensorView& tensor) {
  return fail(schema, "schema.null_data",
              concat("'", schema.args[index].name, "' ", shape_text(tensor.shape()),
                     " has elements, but its data pointer is null"));
}

Status fail_where(const Schema& schema, const WhereExpression& condition, const BoundDims& dims,
                  const Scalars& scalars) {
  std::vector<std::string> facts;
  for (const WhereExpression::Step& step : condition.steps) {
    std::string fact;
    if (step.op == WhereExpression::Op::dim) {
      fact = concat(schema.dims[step.index], " is ", dims.values[step.index]);
    } else if (step.op == WhereExpression::Op::scalar) {
      const ArgSpec& arg = schema.args[step.index];
      fact = concat(arg.name, " is ");
      if (arg.type == ArgType::enumeration) fact += arg.words[scalars[step.index]];
      if (arg.type == ArgType::boolean) fact += scalars[step.index] != 0 ? "true" : "false";
      if (arg.type == ArgType::integer) fact += std::to_string(scalars[step.index]);
    }
    const bool fresh = std::find(facts.begin(), facts.end(), fact) == facts.end();
    if (!fact.empty() && fresh) facts.push_back(fact);
  }
  return fail(schema, "schema.where",
              concat(condition.text, " does not hold: ", base::join(facts, ", ")));
}

}  // namespace opmux::schema
