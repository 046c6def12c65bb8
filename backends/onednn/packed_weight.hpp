// A weight [N, K] as the second factor of a product: as it lies in memory, or in oneDNN's blocks.
#pragma once

#include <opmux/plugin.hpp>

#include <functional>
#include <memory>

#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {

// A weight in the blocks that oneDNN multiplies with; nearly all numbers of rows like the same
// ones.
struct PackedWeight {
  dnnl::memory memory;
};

// A product with the weight of a call, argument 2: made for its packed copy or, if there is none or
// oneDNN has no fast code for those blocks, for the weight as it lies.
std::shared_ptr<Prepared> with_weight(
    const plugin::Call& call,
    const std::function<std::shared_ptr<Prepared>(const dnnl::memory::desc& weight)>& make);
void* weight_data(const plugin::Call& call, const Prepared& prepared);

// Lets the host keep packed copies of argument 2.
plugin::Impl& packs_weight(plugin::Impl& impl);

}  // namespace opmux::backends::onednn
