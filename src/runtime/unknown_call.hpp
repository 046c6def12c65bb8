#pragma once

#include "registry/facts.hpp"

namespace opmux::runtime {

/// A call about which no fact is known, so that no condition holds.
struct UnknownCall {
  explicit UnknownCall(const registry::Schema& schema)
      : signature{&schema, &arguments, &dims, 0, 0} {
    arguments.count = static_cast<uint32_t>(schema.args.size());
    dims.values.fill(-1);
  }
  registry::Arguments arguments;
  registry::BoundDims dims;
  registry::Signature signature;
};

}  // namespace opmux::runtime
