// Wrong and right kernels that bend the reference, as implementations of a runtime.
#pragma once

#include <string>
#include <vector>

#include <opmux/opmux.hpp>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {

/// All families.
std::vector<Bug> all_bugs();

/// One of them with what it bends.
struct Seeded {
  explicit Seeded(const Bug& bug);

  static int32_t run(void* self, const opmux_call* call);
  std::string id() const { return std::string(bug.op) + "/seeded." + std::string(bug.name); }

  Bug bug;
  const opmux_impl* right;
};

/// Registers them for as long as the runtime lives; they must outlive it.
void implement(Runtime& runtime, std::vector<Seeded>& kernels);

}  // namespace opmux::seeded
