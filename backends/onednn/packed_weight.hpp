// A weight [N, K] as the second factor of a product: as it lies in memory, or in oneDNN's blocks.
#pragma once

#include <opmux/plugin.hpp>

#include <cstdlib>
#include <functional>
#include <memory>

#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {

// A weight in the blocks that oneDNN multiplies with; all numbers of rows like the same ones. If
// rows of x are one page long, too many of them share a place in the cache, which costs up to a
// tenth of the speed: such a weight gets some zeros behind its depth, and x must have them too.
// Longer rows gain nothing. The blocks lie in large pages where the system has them: products of
// few rows read them once, and looking up small pages takes a twentieth of that time.
struct PackedWeight {
  std::unique_ptr<void, void (*)(void*)> room{nullptr, std::free};
  dnnl::memory memory;
  int64_t depth = 0;
};

// Of a tensor whose last dimension is not empty.
inline int64_t rows_in(const plugin::TensorArg& x) { return x.elements() / x.dim(-1); }

// A product with the weight of a call, argument 2: made for its packed copy or, if there is none or
// oneDNN has no fast code for those blocks, for the weight as it lies.
std::shared_ptr<Prepared> with_weight(
    const plugin::Call& call,
    const std::function<std::shared_ptr<Prepared>(const dnnl::memory::desc& weight)>& make);
// Rows of 16-bit elements, with zeros behind each.
void copy_rows(const uint16_t* from, int64_t rows, int64_t size, int64_t padded, uint16_t* to);
void* weight_data(const plugin::Call& call, const Prepared& prepared);

// Lets the host keep packed copies of argument 2.
plugin::Impl& packs_weight(plugin::Impl& impl);

}  // namespace opmux::backends::onednn
