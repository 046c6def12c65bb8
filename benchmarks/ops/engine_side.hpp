#pragma once

#include <functional>
#include <string>

#include "buffers.hpp"

namespace opmux::bench {

/// The engine behind an implementation, called by hand on a point's buffers.
struct EngineSide {
  std::string name;  ///< empty: there is none
  std::function<void()> run;
};
EngineSide engine_side(const Point& point, const Buffers& buffers,
                       const std::string& implementation);

}  // namespace opmux::bench
