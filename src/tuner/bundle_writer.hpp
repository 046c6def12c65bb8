#pragma once

#include <string>

#include <opmux/status.hpp>

#include "tune/bundle.hpp"

namespace opmux::tuner {

/// Returns the bytes of a bundle with these rows, which are sorted first. Two operators of one name
/// and machine are joined. Fails with "tune.bundle" if the header would exceed its limit, or if two
/// rows have the same cell, range, implementation and baseline; with "tune.section" or
/// "tune.bundle" if a text could not be part of the text form; and with "tune.unsupported" without
/// libsodium.
Result<std::string> write_bundle(tune::TuningSet set);

/// Computes the digests of the sections and of the header of a bundle. Leaves alone what is outside
/// of the bytes, so that it is safe for untrusted bytes.
void seal_bundle(std::string& bytes);

}  // namespace opmux::tuner
