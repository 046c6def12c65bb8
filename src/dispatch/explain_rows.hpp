#pragma once

#include <string>

#include <opmux/explanation.hpp>

#include "dispatch/decide/evaluation.hpp"

namespace opmux::dispatch {

/// A row of `input.tuning` as programs see it.
Measurement measurement_of(const EvaluationInput& input, const tune::HeldRow& row);

/// "measured 2.26x [2.13, 2.39] faster than onednn.dense, 20 rounds, confirmed".
std::string describe_row(const EvaluationInput& input, const tune::HeldRow& row);

/// The row about a refused candidate, compared with the chosen one; null if there is none. A
/// decision does not read it; it says how much time the refusal costs.
const tune::HeldRow* row_of_refused(const EvaluationInput& input, const Evaluation& decision,
                                    const CandidateVerdict& refused,
                                    const schema::Signature& signature);

/// Adds the counts of the rows of the operator, and notes about rows that could not decide.
void add_tuning(const EvaluationInput& input, const Evaluation& decision,
                const schema::Signature& signature, Explanation& explanation);

}  // namespace opmux::dispatch
