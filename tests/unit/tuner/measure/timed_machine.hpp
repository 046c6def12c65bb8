#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <opmux/opmux.hpp>

#include "base/system/clock.hpp"
#include "tune/race/noise.hpp"

namespace opmux::tuner {

/// Moved by kernels.
class ManualClock final : public base::Clock {
 public:
  uint64_t now_ns() const override { return now; }
  uint64_t now = 1'000'000'000;
};

class Quiet final : public tune::race::NoiseObserver {
 public:
  void begin_round() override {}
  tune::race::Noise end_round() override { return tune::race::Noise::none; }
};

/// An operator with kernels that take these times for N elements.
class Machine {
 public:
  using Time = std::function<uint64_t(int64_t n)>;

  std::map<std::string, Time> kernels;
  std::string wrong;  ///< gives a wrong result
  ManualClock clock;
  Quiet quiet;
  uint64_t calls = 0;

  Runtime runtime() {
    Runtime made = Runtime::create({.backends = false}).value();
    EXPECT_TRUE(made.define("twice(out Tensor y[N], Tensor x[N])").ok());
    for (const auto& [id, time] : kernels) {
      const bool reference = id == "ref.loop";
      Implementation implementation;
      implementation.id = "twice/" + id;
      implementation.kind = reference ? Kind::reference : Kind::vendor;
      implementation.vendor = reference ? "" : "acme";
      implementation.priority = id == "acme.first" ? 300 : -1;
      implementation.build_id = "b1";
      implementation.run = [this, name = id, takes = time](CallFrame& call) {
        const int64_t n = call.tensor(0).dim(0);
        for (int64_t i = 0; i < n; ++i) {
          call.data<float>(0)[i] = (name == wrong ? 3 : 2) * call.data<const float>(1)[i];
        }
        clock.now += takes(n);
        ++calls;
        return opmux::Outcome::ok;
      };
      auto registered = made.implement(implementation);
      EXPECT_TRUE(registered) << registered.error().message();
      registered->keep();
    }
    return made;
  }
};

}  // namespace opmux::tuner
