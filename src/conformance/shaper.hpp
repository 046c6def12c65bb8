#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/draft.hpp"

namespace opmux::conformance {

/// Knowledge about an operator that its schema does not express. operators/NAME/cases.cpp defines
/// the shaper of a standard operator.
struct Shaper {
  std::string_view op;
  /// Sets sizes, dtypes, presence and scalars that depend on each other.
  void (*shape)(Draft& draft) = nullptr;
  /// Sets values with a meaning: positions, indices, masks. May be null.
  void (*fill)(Draft& draft) = nullptr;
  /// Named dimension whose rows are independent, for operators without "...".
  std::string_view batch = {};
};

/// Returns the shaper of a standard operator. For operators without a cases.cpp, such as those of
/// plugins, returns a generic shaper, which draws from the schema alone.
const Shaper& find_shaper(std::string_view op);

/// Draws the case with this seed and number. `infos` must outlive the case.
Case draw_case(const Shaper& shaper, const std::string& op, const std::vector<ArgumentInfo>& infos,
               uint64_t seed, uint64_t number);

namespace operators {

/// The shapers of every folder of operators/ with a cases.cpp; the build generates this table.
std::vector<Shaper> standard_shapers();

}  // namespace operators

}  // namespace opmux::conformance
