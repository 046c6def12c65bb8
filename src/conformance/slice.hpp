#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"

namespace opmux::conformance {

/// How many independent rows a case has: those of "...", or of the named dimension `batch`.
int64_t batch_size(const Case& c, std::string_view batch);

/// The case with one of its rows alone: tensors that have the rows keep only that one.
Case alone(const Case& c, std::string_view batch, int64_t row);

/// The bytes of one row of a tensor's packed elements; all of them if it does not have rows.
std::vector<std::byte> row_of(const CaseArgument& argument, const Case& c, std::string_view batch,
                              int64_t row, const std::vector<std::byte>& packed);

}  // namespace opmux::conformance
