#pragma once

#include <string>
#include <string_view>

#include <opmux/status.hpp>

#include "tune/bundle.hpp"

namespace opmux::tuner {

/// The rows as a text that people can review and compare. `#` starts a comment; a row ends
/// with one that says its result in words.
///
///   opmux-tuning 1 measurement=1
///   machine GenuineIntel 6-85-7 isa=avx2,fma llc=36608K cores=2
///   soft kernel=6.1.0 microcode=0x1
///   operator matmul schema=00f1c2d3e4b5a697
///   cell f32,f32,f32 K=2048 N=2048 threads=1 eager
///   row M=5..95 openblas.gemm@c3d4 vs onednn.dense@a1b2 log=-0.8153 low=-0.8713 high=-0.7561
///       rounds=20 rigor=confirmed date=2026-11-16 tool=0.1.0 host=9f86d081884c7d65
///
/// A row is one line. It belongs to the cell, the operator and the machine before it. `*` in place
/// of a range is a row for all calls of the cell.
std::string text_of(const tune::TuningSet& set);

/// Reads text_of(). Fails with "tune.text", and the message names the line.
Result<tune::TuningSet> read_text(std::string_view text);

/// The result of a row for people: "2.26x [2.13, 2.39] faster than onednn.dense".
std::string describe(const tune::TuningRow& row);

/// "M=5..95", or "*" if no dimension varies.
std::string text_of(const tune::Range& range);
/// "2026-11-16"
std::string date_of(uint32_t day);

}  // namespace opmux::tuner
