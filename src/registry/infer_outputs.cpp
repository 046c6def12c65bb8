#include <algorithm>

#include "base/text.hpp"
#include "registry/dim_binder.hpp"

namespace opmux::registry {
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

}  // namespace opmux::registry
