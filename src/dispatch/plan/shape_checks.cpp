#include "dispatch/plan/shape_checks.hpp"

#include <algorithm>

#include "schema/facts.hpp"

namespace opmux::dispatch {
ShapeChecks::ShapeChecks(const schema::Schema& schema, const schema::Arguments& example) {
  const schema::DimChecks checks = resolve_dim_checks(schema, example);
  for (const schema::DimEquality& e : checks.equalities) {
    equal.push_back({{e.arg_a, e.dim_a}, {e.arg_b, e.dim_b}});
  }
  for (const schema::DimConstant& c : checks.constants) {
    constant.push_back({{c.arg, c.dim}, c.value});
  }
  for (size_t name = 0; name < schema.dims.size(); ++name) {
    named.push_back({checks.source_arg[name], checks.source_dim[name]});
  }
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (example.tags[i] != ArgTag::tensor) continue;
    const int rank = example.values[i].tensor->rank();
    const auto arg = static_cast<uint8_t>(i);
    tensors.push_back({arg, static_cast<uint8_t>(rank)});
    if (!schema.args[i].leading || has_leading) continue;
    has_leading = true;
    const int count = rank - static_cast<int>(schema.args[i].dims.size());
    for (int d = 0; d < count; ++d) leading.push_back({arg, static_cast<uint8_t>(d)});
  }
}

namespace {

bool is_second(const ShapeProgram& program, DimPlace place) {
  for (uint32_t i = 0; i < program.equal_count; ++i) {
    if (program.equal[i].b.arg == place.arg && program.equal[i].b.dim == place.dim) return true;
  }
  return false;
}

}  // namespace

ShapeProgram ShapeProgram::compile(const schema::Schema& schema, const ShapeChecks& checks,
                                   const schema::Arguments& example,
                                   const std::vector<schema::Fact>& guard_facts) {
  ShapeProgram program;
  uint8_t rank = 0;
  int64_t element = 1;
  for (const ShapeChecks::Tensor& tensor : checks.tensors) {
    rank = std::max(rank, tensor.rank);
    element = std::max(element, example.values[tensor.arg].tensor->dtype().size_bytes());
  }
  if (element > 16 || !schema.where.empty() || !checks.constant.empty() || rank > 4) return program;
  if (checks.equal.size() > kMostSteps || guard_facts.size() > kMostSteps) return program;
  // The size in bytes cannot overflow: two dimensions below 2^28, or four below 2^14, times 16
  // bytes per element are below 2^63.
  program.size_bits = rank <= 2 ? 28 : 14;
  for (const ShapeChecks::Equal& equal : checks.equal) {
    program.equal[program.equal_count++] = {equal.a, equal.b};
  }
  for (const schema::Fact& fact : guard_facts) {
    const bool by_name = fact.kind == schema::FactKind::dim && fact.index != schema::kRowsDim &&
                         checks.named[fact.index].arg != 255;
    if (!by_name) return program;
    program.fixed[program.fixed_count++] = checks.named[fact.index];
  }
  for (const ShapeChecks::Tensor& tensor : checks.tensors) {
    for (uint8_t d = 0; d < tensor.rank; ++d) {
      if (is_second(program, {tensor.arg, d})) continue;
      if (program.single_count == kMostSteps) return program;
      program.single[program.single_count++] = {tensor.arg, d};
    }
  }
  program.usable = true;
  return program;
}

bool ShapeChecks::hold(const ArgValue* values) const {
  int64_t differs = 0;
  for (const Equal& pair : equal) differs |= pair.a.in(values) ^ pair.b.in(values);
  for (const Constant& fixed : constant) differs |= fixed.place.in(values) ^ fixed.value;
  int64_t signs = 0;
  bool plausible = true;
  for (const Tensor& tensor : tensors) {
    const TensorView& view = *values[tensor.arg].tensor;
    int64_t bytes = view.dtype().size_bytes();
    for (uint32_t d = 0; d < tensor.rank; ++d) {
      signs |= view.dim(static_cast<int>(d));
      plausible &= !__builtin_mul_overflow(bytes, view.dim(static_cast<int>(d)), &bytes);
    }
    plausible &= bytes > 0;
  }
  return differs == 0 && signs >= 0 && plausible;
}

int64_t ShapeChecks::rows(const ArgValue* values) const {
  if (!has_leading) return schema::kAbsent;
  int64_t product = 1;
  for (const DimPlace& place : leading) product *= place.in(values);
  return product;
}

}  // namespace opmux::dispatch
