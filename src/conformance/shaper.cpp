#include <algorithm>

#include "conformance/operators/shapers.hpp"

namespace opmux::conformance {

const Shaper& find_shaper(std::string_view op) {
  static const std::vector<Shaper> all = {
      operators::rms_norm(),
      operators::fused_add_rms_norm(),
      operators::layer_norm(),
      operators::silu_and_mul(),
      operators::gelu_and_mul(),
      operators::rotary_embedding(),
      operators::softmax(),
      operators::matmul(),
      operators::linear(),
      operators::embedding(),
      operators::reshape_and_cache(),
      operators::attention(),
      operators::paged_attention(),
      operators::topk_softmax(),
      operators::fused_moe(),
      operators::linear_w8a8(),
      operators::linear_w4a16(),
      operators::sample(),
  };
  static const Shaper own = operators::own();
  const auto found = std::ranges::find(all, op, &Shaper::op);
  return found == all.end() ? own : *found;
}

}  // namespace opmux::conformance
