#pragma once

#include "tune/bundle.hpp"

namespace opmux::tuner {

/// The rows of `before` with those that were measured now. Where a new row has the machine, the
/// operator, the cell and values of an old one, the old one is dropped, or cut to its other values.
/// Rows of the same operator with another schema are dropped, because nothing can use them.
tune::TuningSet overlay(tune::TuningSet before, const tune::TuningSet& now);

}  // namespace opmux::tuner
