#include "operators/common/tolerance/softmax_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

/// The weights have the error of a softmax, plus the error of their sum if they are renormalized.
/// The ids are exact, because the experts are chosen by the logits.
void bound_topk_softmax(const CallView& c, Expected& expected) {
  ExpectedOutput& weights = expected.of(c, "weights");
  const std::vector<double>& ids = expected.of(c, "ids").values;
  const std::span<const double> logits(c.tensor("logits").values);
  const auto experts = static_cast<size_t>(c.tensor("logits").shape.back());
  const auto chosen = static_cast<size_t>(c.tensor("ids").shape.back());
  const bool again = c.integer("renormalize", 0) != 0;
  for (size_t row = 0; row * chosen < ids.size(); ++row) {
    const std::vector<double> error = softmax_error(logits.subspan(row * experts, experts), 1);
    double most = 0;
    for (const double one : error) most = std::max(most, one);
    for (size_t i = row * chosen; i < (row + 1) * chosen; ++i) {
      const double more = again ? most + sum_error(static_cast<int64_t>(chosen)) + 2 * kUnit : 0;
      weights.bounds[i] =
          std::abs(weights.values[i]) * (error[static_cast<size_t>(ids[i])] + more) + kSmallest;
    }
  }
}

}  // namespace

Bounds topk_softmax() { return {.op = "topk_softmax", .bound = bound_topk_softmax}; }

}  // namespace opmux::verify::operators
