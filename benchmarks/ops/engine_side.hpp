#pragma once

#include <functional>
#include <string>

#include "buffers.hpp"

namespace opmux::bench {

/// A direct call of the engine that an implementation uses, on a point's buffers.
struct EngineSide {
  std::string name;  ///< "bare onednn"; empty if the implementation uses no engine here
  std::function<void()> run;
};
EngineSide engine_side(const Point& point, const Buffers& buffers,
                       const std::string& implementation);

}  // namespace opmux::bench
