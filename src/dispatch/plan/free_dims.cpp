#include "dispatch/plan/free_dims.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <memory>

namespace opmux::dispatch {
namespace {

using schema::Fact;
using schema::FactKind;

/// The dimensions of all tensors, grouped by the schema's names: dimensions with one name are
/// equal.
class Places {
 public:
  explicit Places(const ShapeChecks& checks) {
    for (size_t i = 0; i < kCount; ++i) root_[i] = i;
    for (const ShapeChecks::Equal& equal : checks.equal) root_[at(equal.b)] = at(equal.a);
  }

  void fix(DimPlace place) { fixed_.set(root(place)); }

  bool is_fixed(DimPlace place) const { return fixed_.test(root(place)); }
  bool same(DimPlace a, DimPlace b) const { return root(a) == root(b); }

 private:
  static constexpr size_t kCount = size_t{OPMUX_MAX_ARGS} * OPMUX_MAX_RANK;
  static size_t at(DimPlace place) { return size_t{place.arg} * OPMUX_MAX_RANK + place.dim; }
  /// The first place of each equality is the first occurrence of the name, so one step suffices.
  size_t root(DimPlace place) const { return root_[at(place)]; }

  std::array<size_t, kCount> root_;
  std::bitset<kCount> fixed_;
};

bool few_and_first(const ShapeChecks& checks, const schema::Arguments& example) {
  for (const ShapeChecks::Tensor& tensor : checks.tensors) {
    if (tensor.arg >= FreeDims::kTensors || tensor.rank > FreeDims::kWords) return false;
    if (example.values[tensor.arg].tensor->dtype().size_bytes() > 16) return false;
  }
  return !checks.tensors.empty() && checks.tensors.front().arg == 0;
}

/// Fixes dimensions that one comparison with the first tensor cannot check: those at another index
/// than in the first tensor, and those that occur twice in one tensor.
void fix_what_is_elsewhere(const ShapeChecks& checks, Places& places) {
  const uint8_t first_rank = checks.tensors.front().rank;
  for (const ShapeChecks::Tensor& tensor : checks.tensors) {
    for (uint8_t d = 0; d < tensor.rank; ++d) {
      const DimPlace place{tensor.arg, d}, expected{0, d};
      if (d >= first_rank || !places.same(place, expected)) places.fix(place);
    }
  }
  for (uint8_t d = 1; d < first_rank; ++d) {
    for (uint8_t before = 0; before < d; ++before) {
      if (places.same({0, d}, {0, before})) places.fix({0, d});
    }
  }
}

}  // namespace

FreeDims FreeDims::compile(const schema::Schema& schema, const ShapeChecks& checks,
                           const schema::Arguments& example, const std::vector<Fact>& guard_facts) {
  FreeDims dims;
  if (!few_and_first(checks, example)) return dims;
  Places places(checks);
  fix_what_is_elsewhere(checks, places);
  for (const ShapeChecks::Constant& constant : checks.constant) places.fix(constant.place);
  // `where` clauses can read any named dimension, so fix all of them.
  for (const DimPlace& place : checks.named) {
    if (!schema.where.empty() && place.arg != 255) places.fix(place);
  }
  bool contiguity = false;
  for (const Fact& fact : guard_facts) {
    if (fact.kind == FactKind::dim && fact.index == schema::kRowsDim) {
      for (const DimPlace& place : checks.leading) places.fix(place);
    } else if (fact.kind == FactKind::dim) {
      if (checks.named[fact.index].arg != 255) places.fix(checks.named[fact.index]);
    } else if (fact.kind == FactKind::inner_contiguous || fact.kind == FactKind::contiguous) {
      dims.strides_count = true;
      contiguity |= fact.kind == FactKind::contiguous;
    } else {
      return dims;
    }
  }
  // With equal strides, a contiguous tensor stays contiguous if only its first dimension changes,
  // except from or to size 1, which may have any stride. The strides depend on the other
  // dimensions, so those are fixed.
  dims.least = contiguity ? 2 : 1;
  for (uint8_t d = 1; contiguity && d < checks.tensors.front().rank; ++d) places.fix({0, d});
  const uint8_t rank = std::ranges::max(checks.tensors, {}, &ShapeChecks::Tensor::rank).rank;
  // The size in bytes cannot overflow: two dimensions below 2^28, or four below 2^14, times 16
  // bytes per element are below 2^63.
  dims.size_bits = rank <= 2 ? 28 : 14;
  bool any = false;
  for (const ShapeChecks::Tensor& tensor : checks.tensors) {
    for (uint8_t d = 0; d < tensor.rank; ++d) {
      if (places.is_fixed({tensor.arg, d})) continue;
      dims.free[tensor.arg][d] = ~uint64_t{0};
      any = true;
    }
  }
  dims.usable = any;
  return dims;
}

bool FreeDims::can_start_from(const ArgValue* values, const ShapeChecks& checks) const {
  for (const ShapeChecks::Tensor& tensor : checks.tensors) {
    const TensorView& view = *values[tensor.arg].tensor;
    for (uint8_t d = 0; d < tensor.rank; ++d) {
      const int64_t lowest = free[tensor.arg][d] != 0 ? least : 1;
      if (static_cast<uint64_t>(view.dim(d) - lowest) >> size_bits != 0) return false;
    }
  }
  return true;
}

ShapeGuards::~ShapeGuards() {
  for (Node* at = first_.load(); at != nullptr;) {
    const std::unique_ptr<Node> owned(at);
    at = at->next;
  }
}

const ShapeGuard& ShapeGuards::keep(const ShapeGuard& made) {
  Node* const first = first_.load(std::memory_order_acquire);
  for (const Node* at = first; at != nullptr; at = at->next) {
    if (at->guard == made) return at->guard;
  }
  auto node = std::make_unique<Node>(Node{made, first});
  // If two threads race, the list has the same guard twice, which is harmless.
  while (!first_.compare_exchange_weak(node->next, node.get(), std::memory_order_acq_rel)) {
  }
  return node.release()->guard;
}

}  // namespace opmux::dispatch
