// Registers wrong and correct kernels, which modify the reference, as implementations.
#pragma once

#include <string>
#include <vector>

#include <opmux/opmux.hpp>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {

/// The bugs of all operator families.
std::vector<Bug> all_bugs();

/// A bug together with the reference implementation that it modifies.
struct Seeded {
  explicit Seeded(const Bug& bug);

  static int32_t run(void* self, const opmux_call* call);
  std::string id() const { return std::string(bug.op) + "/seeded." + std::string(bug.name); }

  Bug bug;
  const opmux_impl* right;
};

/// Registers the kernels for the lifetime of the runtime; they must outlive it.
void implement(Runtime& runtime, std::vector<Seeded>& kernels);

}  // namespace opmux::seeded
