// Rows for tests.
#pragma once

#include "tune/bundle.hpp"

namespace opmux::tuner::testing {

inline tune::TuningRow row(double log_ratio = -0.8, double error = 0.02, int64_t first = 5,
                           int64_t last = 95) {
  tune::TuningRow made;
  made.cell = {"f32,f32,f32", {{"K", 2048}, {"N", 2048}}, 1, false};
  made.range = {"M", first, last};
  made.implementation = {"openblas.gemm", "c3d4"};
  made.baseline = {"onednn.dense", "a1b2"};
  made.log_ratio = tune::from_units(tune::to_units(log_ratio));
  made.low = tune::from_units(tune::to_units(log_ratio - 3 * error));
  made.high = tune::from_units(tune::to_units(log_ratio + 3 * error));
  made.rounds = 20;
  made.rigor = tune::Rigor::confirmed;
  made.day = 20773;  // 2026-11-16
  made.tool = "0.1.0";
  made.host = 0x9f86d081884c7d65;
  return made;
}

inline tune::TuningSet set_of(std::vector<tune::TuningRow> rows) {
  tune::TuningSet set;
  set.machines.push_back({"GenuineIntel 6-85-7 isa=avx2,fma states=e7 llc=36608K cores=2",
                          "kernel=6.1.0 microcode=0x1"});
  set.operators.push_back({"matmul", 0xf1c2d3e4b5a697, 0, std::move(rows)});
  return set;
}

}  // namespace opmux::tuner::testing
