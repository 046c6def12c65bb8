#include "figures.hpp"

namespace opmux::bench {

std::optional<Subject> c10_subject() { return std::nullopt; }

}  // namespace opmux::bench
