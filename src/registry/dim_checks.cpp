#include "registry/arguments.hpp"

namespace opmux::registry {
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

}  // namespace opmux::registry
