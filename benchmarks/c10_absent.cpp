// Replaces c10_noop.cpp in builds without torch.
#include "figures.hpp"

namespace opmux::bench {

std::optional<Subject> c10_subject() { return std::nullopt; }

}  // namespace opmux::bench
