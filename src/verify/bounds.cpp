#include <algorithm>
#include <vector>

#include "verify/operators/bounds.hpp"

namespace opmux::verify {

const Bounds& find_bounds(std::string_view op) {
  static const std::vector<Bounds> all = {
      operators::rms_norm(),
      operators::fused_add_rms_norm(),
      operators::layer_norm(),
      operators::silu_and_mul(),
      operators::gelu_and_mul(),
      operators::rotary_embedding(),
      operators::softmax(),
      operators::matmul(),
      operators::linear(),
      operators::attention(),
      operators::paged_attention(),
      operators::topk_softmax(),
      operators::fused_moe(),
      operators::linear_w8a8(),
      operators::linear_w4a16(),
      // These operators copy elements, round them at most once, or compute with integers, so
      // results are exact.
      {.op = "embedding"},
      {.op = "reshape_and_cache"},
      {.op = "sample"},
  };
  static const Bounds own = operators::own();
  const auto found = std::ranges::find(all, op, &Bounds::op);
  return found == all.end() ? own : *found;
}

}  // namespace opmux::verify
