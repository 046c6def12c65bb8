#pragma once

#include <map>
#include <string>
#include <vector>

#include "world.hpp"

namespace opmux::property {

/// The expected result of one call.
struct Expected {
  bool valid = false;  ///< the arguments match the schema
  bool empty = false;  ///< all outputs are empty, so no kernel runs
  bool strict = false;
  std::vector<std::string> order;              ///< ids of the accepted candidates, best first
  std::map<std::string, std::string> refused;  ///< id -> reason code
  std::map<std::string, double> scores;

  std::string chosen() const { return order.empty() ? std::string() : order.front(); }
};

/// A second, simple implementation of the selection rules: no compilation, no caches, no library
/// code.
Expected choose(const World& world, const Call& call);

/// Whether policy excludes every candidate for every call, and no rule allows that.
bool leaves_nothing(const World& world, const Policy& code);

}  // namespace opmux::property
