#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "tune/bundle.hpp"

namespace opmux::tuner {

/// Joins the rows of several sets. Rows of machines with the same hard part that compare the same
/// builds in the same cell are pooled where their ranges overlap:
///
/// - The pooled log ratio is the mean, weighted by the error of each row and by the variance
///   between the hosts (DerSimonian and Laird), and so is its interval. It is never the best of the
///   hosts.
/// - If one host says `faster` and another `slower`, the pooled interval contains both, which makes
///   it `unclear`.
/// - Rounds add up; rigor and date are those of the least careful and the oldest row.
///
/// Fails with "tune.merge" if the sets were measured by different rules.
Result<tune::TuningSet> merge(const std::vector<tune::TuningSet>& sets);

/// A row that two sets do not have in common.
struct RowChange {
  enum class Kind : uint8_t {
    removed,   ///< only in the first set
    added,     ///< only in the second set
    verdict,   ///< both have it, with different verdicts
    measured,  ///< both have it, with the same verdict and other numbers
  };
  Kind kind = Kind::added;
  std::string machine, op;
  tune::TuningRow before, after;  ///< the one that a set lacks is empty
};

/// Compares the rows of two sets.
std::vector<RowChange> compare(const tune::TuningSet& before, const tune::TuningSet& after);

}  // namespace opmux::tuner
