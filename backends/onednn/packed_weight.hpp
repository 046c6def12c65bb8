// A weight [N, K] as the right-hand side of a product: in place, or packed in oneDNN's blocked
// layout.
#pragma once

#include <opmux/plugin.hpp>

#include <cstdlib>
#include <functional>
#include <memory>

#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {

// A weight in oneDNN's blocked layout, which is the same for every number of rows.
//
// If rows of x are exactly one page long, too many of them map to the same cache sets, which costs
// up to 10 % of the speed. Such a weight is padded with zeros along its depth, and x must be padded
// too. Longer rows gain nothing from padding.
//
// The blocks are allocated in huge pages where the system provides them: products of few rows read
// the weight once, and TLB misses of small pages take about 5 % of that time.
struct PackedWeight {
  std::unique_ptr<void, void (*)(void*)> room{nullptr, std::free};
  dnnl::memory memory;
  int64_t depth = 0;
};

// Number of rows of a tensor whose last dimension is not empty.
inline int64_t rows_in(const plugin::TensorArg& x) { return x.elements() / x.dim(-1); }

// Creates a product with the weight of a call (argument 2) through `make`: for its packed copy, or
// for the weight in place if there is no packed copy or oneDNN has no fast code for it.
std::shared_ptr<Prepared> with_weight(
    const plugin::Call& call,
    const std::function<std::shared_ptr<Prepared>(const dnnl::memory::desc& weight)>& make);
// Copies rows of 16-bit elements and pads each with zeros to `padded` elements.
void copy_rows(const uint16_t* from, int64_t rows, int64_t size, int64_t padded, uint16_t* to);
void* weight_data(const plugin::Call& call, const Prepared& prepared);

// Declares that the host may cache packed copies of argument 2.
plugin::Impl& packs_weight(plugin::Impl& impl);

}  // namespace opmux::backends::onednn
