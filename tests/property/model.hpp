#pragma once

#include <map>
#include <string>
#include <vector>

#include "world.hpp"

namespace opmux::property {

/// What the rules of choosing say about one call.
struct Expected {
  bool valid = false;  ///< the arguments fit the schema
  bool empty = false;  ///< every output has no element: nothing runs
  bool strict = false;
  std::vector<std::string> order;              ///< ids of the accepted, best first
  std::map<std::string, std::string> refused;  ///< id -> reason code
  std::map<std::string, double> scores;

  std::string chosen() const { return order.empty() ? std::string() : order.front(); }
};

/// The rules of choosing once more, plainly: no compilation, no caches, nothing of the library.
Expected choose(const World& world, const Call& call);

/// Whether every candidate is dropped by policy whatever the call, and no rule allows that.
bool leaves_nothing(const World& world, const Policy& code);

}  // namespace opmux::property
