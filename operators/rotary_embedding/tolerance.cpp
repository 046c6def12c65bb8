#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// a * c - b * s and b * c + a * s: two products and a sum, with an error relative to the sum of
/// magnitudes. Elements that are not rotated are copied exactly.
void bound_heads(const CallView& c, std::string_view name, Expected& expected) {
  ExpectedOutput& output = expected.of(c, name);
  const Tensor& heads = c.tensor(name);
  const Tensor& table = c.tensor("cos_sin");
  const auto width = static_cast<size_t>(heads.shape.back());
  const size_t per_token = static_cast<size_t>(heads.shape[heads.shape.size() - 2]) * width;
  const auto rotated = static_cast<size_t>(table.shape[1]), pairs = rotated / 2;
  const bool neighbours = c.integer("style", 0) == 1;
  for (size_t i = 0; i < output.values.size(); ++i) {
    const size_t in_head = i % width;
    if (in_head >= rotated) continue;
    const size_t pair = neighbours ? in_head / 2 : in_head % pairs;
    const bool second = neighbours ? in_head % 2 == 1 : in_head >= pairs;
    const size_t distance = neighbours ? 1 : pairs;
    const auto row = static_cast<size_t>(c.tensor("positions").values[i / per_token]) * rotated;
    const double cos = table.values[row + pair], sin = table.values[row + pairs + pair];
    const double own = heads.values[i];
    const double other = heads.values[second ? i - distance : i + distance];
    output.bounds[i] = 3 * kUnit * (std::abs(own * cos) + std::abs(other * sin)) + kSmallest;
  }
}

void bound_rotary_embedding(const CallView& c, Expected& expected) {
  bound_heads(c, "q", expected);
  if (c.has("k")) bound_heads(c, "k", expected);
}

}  // namespace

Bounds rotary_embedding() { return {.op = "rotary_embedding", .bound = bound_rotary_embedding}; }

}  // namespace opmux::verify::operators
