#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"

namespace opmux::conformance {

/// The number of independent rows of a case: those of "...", or of the dimension `batch`.
int64_t batch_size(const Case& c, std::string_view batch);

/// A copy of the case with only one row in each tensor that has rows.
Case alone(const Case& c, std::string_view batch, int64_t row);

/// The bytes of one row of a tensor's packed elements; all bytes if the tensor has no rows.
std::vector<std::byte> row_of(const CaseArgument& argument, const Case& c, std::string_view batch,
                              int64_t row, const std::vector<std::byte>& packed);

}  // namespace opmux::conformance
