#include "conformance/shaper.hpp"

#include <algorithm>
#include <cmath>

#include "verify/bounds.hpp"

namespace opmux::conformance {
namespace {

/// Draws small sizes. In 60% of the calls they are multiples of one number, because `where`
/// conditions often relate dimensions.
void draw_dims(Draft& draft, const ArgumentInfo& info) {
  const int64_t base = draft.random().pick<int64_t>({1, 2, 3, 4});
  const bool related = draft.random().chance(60);
  for (const std::string& name : info.dims) {
    if (name == "..." || (name[0] >= '0' && name[0] <= '9')) continue;
    draft.dim(name, [&] {
      return related ? base * draft.random().pick<int64_t>({1, 1, 2, 4, 8}) : draft.size(12);
    });
  }
}

void draw_number(Draft& draft, const ArgumentInfo& info) {
  if (info.type == ArgTag::integer && (!info.optional || draft.random().chance(40))) {
    draft.set_integer(info.name, draft.random().pick<int64_t>({0, 1, 2, 3, 7}));
  } else if (info.type == ArgTag::floating && !info.optional) {
    draft.set(info.name, draft.random().pick({1.0, 0.5}));
  }
}

void shape_generic(Draft& draft) {
  const bool all_f32 = draft.random().chance(60);
  for (const CaseArgument& argument : draft.arguments()) {
    const ArgumentInfo& info = *argument.info;
    draw_dims(draft, info);
    draw_number(draft, info);
    if (all_f32 && argument.is_tensor()) draft.dtype(info.name, f32);
    if (info.any_shape) draft.shape(info.name, {draft.size(64)});
  }
}

/// Draws normally distributed values, because the operator's handling of large and tiny values is
/// unknown.
void fill_generic(Draft& draft) {
  for (const CaseArgument& argument : draft.arguments()) {
    if (!argument.read() || !verify::is_float(argument.tensor.dtype)) continue;
    for (double& value : draft.tensor(argument.info->name).values) value = draft.random().normal();
  }
}

}  // namespace

const Shaper& find_shaper(std::string_view op) {
  static const std::vector<Shaper> standard = operators::standard_shapers();
  /// For operators of plugins and programs, of which only the schema is known.
  static const Shaper generic = {.op = "", .shape = shape_generic, .fill = fill_generic};
  const auto found = std::ranges::find(standard, op, &Shaper::op);
  return found == standard.end() ? generic : *found;
}

Case draw_case(const Shaper& shaper, const std::string& op, const std::vector<ArgumentInfo>& infos,
               uint64_t seed, uint64_t number) {
  Draft draft(op, infos, seed, number);
  if (shaper.shape != nullptr) shaper.shape(draft);
  draft.make_tensors();
  if (shaper.fill != nullptr) shaper.fill(draft);
  return draft.finish();
}

}  // namespace opmux::conformance
