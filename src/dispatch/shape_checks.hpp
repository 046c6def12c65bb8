#pragma once

#include <cstdint>
#include <vector>

#include <opmux/call_site.hpp>

#include "registry/arguments.hpp"
#include "registry/facts.hpp"

namespace opmux::dispatch {

/// A dimension of a tensor argument.
struct DimPlace {
  uint8_t arg = 255;  ///< 255 = none
  uint8_t dim = 0;

  int64_t in(const ArgValue* values) const { return values[arg].tensor->dim(dim); }
};

/// What the schema asks of dimensions, for arguments with certain ranks: the places that must be
/// equal. Compiled once for each combination of ranks.
struct ShapeChecks {
  struct Equal {
    DimPlace a, b;
  };
  struct Constant {
    DimPlace place;
    int64_t value;
  };
  std::vector<Equal> equal;
  std::vector<Constant> constant;
  struct Tensor {
    uint8_t arg, rank;
  };
  std::vector<Tensor> tensors;    ///< that are present
  std::vector<DimPlace> named;    ///< where each name of the schema is read
  std::vector<DimPlace> leading;  ///< whose product is `rows`
  bool has_leading = false;

  ShapeChecks(const registry::Schema& schema, const registry::Arguments& example);

  /// Equalities and numbers hold, and no size is zero, negative or close to overflow: those are for
  /// the full check to judge.
  bool hold(const ArgValue* values) const;

  /// A named dimension; -1 if it is not bound.
  int64_t dim(size_t name, const ArgValue* values) const {
    return named[name].arg == 255 ? -1 : named[name].in(values);
  }
  int64_t rows(const ArgValue* values) const;
};

/// The checks of a plan for another shape as a short program without lists: equal places,
/// dimensions that must stay as they are, and bounds that rule out empty, negative and overflowing
/// sizes.
struct ShapeProgram {
  static constexpr size_t kMostSteps = 8;
  struct Step {
    DimPlace a, b;
  };
  bool usable = false;
  uint8_t equal_count = 0, fixed_count = 0, single_count = 0;
  uint8_t size_bits = 0;  ///< every dimension must be below 2^size_bits
  Step equal[kMostSteps] = {};
  DimPlace fixed[kMostSteps] = {};   ///< must equal the guard values, in order
  DimPlace single[kMostSteps] = {};  ///< every dimension equals one of these

  /// Not usable if a guard needs more than dimensions by name, or ranks are above 4.
  static ShapeProgram compile(const registry::Schema& schema, const ShapeChecks& checks,
                              const registry::Arguments& example,
                              const std::vector<registry::Fact>& guard_facts);

  /// What the schema asks, and sizes that are plain.
  bool holds(const ArgValue* values) const {
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < equal_count; ++i) {
      wrong |= static_cast<uint64_t>(equal[i].a.in(values) ^ equal[i].b.in(values));
    }
    for (uint32_t i = 0; i < single_count; ++i) {
      wrong |= static_cast<uint64_t>(single[i].in(values)-1) >> size_bits;
    }
    return wrong == 0;
  }
  /// Every dimension that the choice depends on is as it was.
  bool same_class(const ArgValue* values, const int64_t* guard_values) const {
    int64_t differs = 0;
    for (uint32_t i = 0; i < fixed_count; ++i) differs |= fixed[i].in(values) ^ guard_values[i];
    return differs == 0;
  }
  /// Keeps them for same_class().
  void keep(const ArgValue* values, int64_t* guard_values) const {
    for (uint32_t i = 0; i < fixed_count; ++i) guard_values[i] = fixed[i].in(values);
  }
};

}  // namespace opmux::dispatch
