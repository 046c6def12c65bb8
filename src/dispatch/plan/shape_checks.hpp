#pragma once

#include <cstdint>
#include <vector>

#include <opmux/detail/call_site.hpp>

#include "schema/arguments.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

/// The position of a dimension: tensor argument and index.
struct DimPlace {
  uint8_t arg = 255;  ///< 255 = none
  uint8_t dim = 0;

  int64_t in(const ArgValue* values) const { return values[arg].tensor->dim(dim); }
  bool operator==(const DimPlace&) const = default;
};

/// The schema's conditions on dimensions for one combination of argument ranks: dimensions that
/// must be equal and dimensions with a constant size.
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
  std::vector<Tensor> tensors;    ///< tensor arguments that are present
  std::vector<DimPlace> named;    ///< per dimension name of the schema: where its size is read
  std::vector<DimPlace> leading;  ///< leading dimensions, whose product is `rows`
  bool has_leading = false;

  ShapeChecks(const schema::Schema& schema, const schema::Arguments& example);

  /// True if all conditions hold and no size is zero, negative or overflows. Such sizes are left to
  /// the full check of the slow path.
  bool hold(const ArgValue* values) const;

  /// The size of a named dimension; -1 if the name is not bound.
  int64_t dim(size_t name, const ArgValue* values) const {
    return named[name].arg == 255 ? -1 : named[name].in(values);
  }
  int64_t rows(const ArgValue* values) const;
};

/// The guard of a plan for new shapes, compiled into fixed arrays: dimensions that must be equal,
/// dimensions that must not change, and bounds that exclude empty, negative and overflowing sizes.
struct ShapeProgram {
  static constexpr size_t kMostSteps = 8;
  struct Step {
    DimPlace a, b;
    bool operator==(const Step&) const = default;
  };
  bool operator==(const ShapeProgram&) const = default;

  bool usable = false;
  uint8_t equal_count = 0, fixed_count = 0, single_count = 0;
  uint8_t size_bits = 0;  ///< every dimension must be in [1, 2^size_bits]
  Step equal[kMostSteps] = {};
  DimPlace fixed[kMostSteps] = {};   ///< dimensions that must equal the guard values, in order
  DimPlace single[kMostSteps] = {};  ///< one dimension of each group of equal ones

  /// The result is not `usable` if the guard needs more than named dimensions, a rank is above 4,
  /// or the checks do not fit into the arrays.
  static ShapeProgram compile(const schema::Schema& schema, const ShapeChecks& checks,
                              const schema::Arguments& example,
                              const std::vector<schema::Fact>& guard_facts);

  /// True if the schema's conditions hold and all sizes are within the bounds.
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
  /// True if every dimension that the choice depends on is unchanged.
  bool same_class(const ArgValue* values, const int64_t* guard_values) const {
    int64_t differs = 0;
    for (uint32_t i = 0; i < fixed_count; ++i) differs |= fixed[i].in(values) ^ guard_values[i];
    return differs == 0;
  }
  /// Stores the dimensions that same_class() compares.
  void keep(const ArgValue* values, int64_t* guard_values) const {
    for (uint32_t i = 0; i < fixed_count; ++i) guard_values[i] = fixed[i].in(values);
  }
};

}  // namespace opmux::dispatch
