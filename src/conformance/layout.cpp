#include "conformance/layout.hpp"

#include <algorithm>
#include <numeric>

namespace opmux::conformance {
namespace {

/// Sets strides for dimensions that are in memory in this order, outermost first, with gaps.
void lay_out(Random& random, const std::vector<size_t>& order, int64_t inner_step, int gaps,
             CaseTensor& tensor) {
  int64_t step = inner_step;
  for (size_t i = order.size(); i > 0; --i) {
    const size_t dim = order[i - 1];
    tensor.strides[dim] = step;
    step *= std::max<int64_t>(tensor.shape[dim], 1);
    if (random.chance(gaps)) step += random.pick<int64_t>({1, 2, 3, 7, 8, 16});
  }
}

void shuffle(Random& random, std::vector<size_t>& order, size_t count) {
  for (size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
}

/// Makes one leading dimension a broadcast (stride 0).
void broadcast(Random& random, CaseTensor& tensor) {
  const int64_t leading = static_cast<int64_t>(tensor.shape.size()) - 1;
  if (leading > 0) tensor.strides[static_cast<size_t>(random.below(leading))] = 0;
}

/// Sets random strides for dimensions of size 1, because implementations must ignore those.
void disturb_ones(Random& random, CaseTensor& tensor) {
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 1 && random.chance(25)) tensor.strides[i] = random.between(1, 99);
  }
}

void draw_place(Random& random, CaseTensor& tensor) {
  tensor.at_end = random.chance(55);
  tensor.skip = random.chance(60) ? 0 : random.pick<int64_t>({1, 2, 3, 4, 8, 16});
}

}  // namespace

Layouts draw_layouts(Random& random) {
  if (random.chance(45)) return Layouts::contiguous;
  return random.chance(75) ? Layouts::inner_contiguous : Layouts::any;
}

void set_contiguous(CaseTensor& tensor) {
  tensor.strides.assign(tensor.shape.size(), 1);
  for (size_t i = tensor.shape.size(); i > 1; --i) {
    tensor.strides[i - 2] = tensor.strides[i - 1] * std::max<int64_t>(tensor.shape[i - 1], 1);
  }
}

void draw_layout(Random& random, Layouts layouts, bool written, CaseTensor& tensor) {
  set_contiguous(tensor);
  draw_place(random, tensor);
  if (layouts == Layouts::contiguous || tensor.shape.empty()) return;
  std::vector<size_t> order(tensor.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool inner = layouts == Layouts::inner_contiguous || random.chance(50);
  if (random.chance(35)) shuffle(random, order, inner ? order.size() - 1 : order.size());
  const int64_t inner_step = inner || random.chance(50) ? 1 : random.between(2, 3);
  lay_out(random, order, inner_step, random.pick({0, 50, 100}), tensor);
  if (!written && random.chance(4)) broadcast(random, tensor);
  disturb_ones(random, tensor);
}

}  // namespace opmux::conformance
