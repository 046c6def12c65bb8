#include "conformance/values.hpp"
#include "verify/element.hpp"

#include <cmath>
#include <functional>
#include <limits>

namespace opmux::conformance {
namespace {

using Draw = std::function<double(Random&)>;

/// Magnitudes between the smallest number of the dtype and 2^10 times that.
Draw tiny(DType dtype) {
  return [low = verify::smallest(dtype)](Random& r) {
    return r.normal() * low * std::exp2(r.between(0, 10));
  };
}

Draw draw_profile(Random& random, DType dtype) {
  const int64_t which = random.below(100);
  if (which < 50) return [](Random& r) { return r.normal(); };
  if (which < 58) {
    const double scale = random.pick({0.01, 0.1, 8.0, 30.0});
    return [scale](Random& r) { return r.normal() * scale; };
  }
  if (which < 66) return [](Random& r) { return r.normal() * std::exp2(r.between(-8, 6)); };
  if (which < 72) return [](Random& r) { return r.chance(80) ? 0 : r.normal(); };
  if (which < 78) return [](Random& r) { return double(r.between(-4, 4)); };
  if (which < 82) return [value = random.normal()](Random&) { return value; };
  if (which < 87) {
    const double mean = random.pick({-20.0, 5.0, 100.0});
    return [mean](Random& r) { return mean + r.normal(); };
  }
  if (which < 90) return [](Random&) { return 0.0; };
  if (which < 94) return [](Random& r) { return r.normal() * 4000; };
  return tiny(dtype);
}

void add_specials(Random& random, Specials specials, std::vector<double>& values) {
  const auto size = static_cast<int64_t>(values.size());
  for (int64_t left = random.between(1, 3); left > 0 && size > 0; --left) {
    const bool infinite = specials == Specials::nan_and_infinity && random.chance(70);
    double value = std::numeric_limits<double>::quiet_NaN();
    if (infinite) value = std::numeric_limits<double>::infinity() * (random.chance(70) ? -1 : 1);
    values[static_cast<size_t>(random.below(size))] = value;
  }
}

}  // namespace

void draw_values(Random& random, Specials specials, CaseTensor& tensor) {
  tensor.values.resize(static_cast<size_t>(tensor.elements()));
  const Draw draw = draw_profile(random, tensor.dtype);
  for (double& value : tensor.values) value = draw(random);
  if (specials != Specials::none && random.chance(6)) {
    add_specials(random, specials, tensor.values);
  }
}

}  // namespace opmux::conformance
