#include "operators/common/cases/heads.hpp"

#include <cmath>

namespace opmux::conformance::operators {

void shape_heads(Draft& draft) {
  Random& random = draft.random();
  const int64_t most = draft.budget() > 16384 ? 140 : 40;
  draft.dim("HKV") = draft.size(3);
  draft.dim("HQ") = draft.dim("HKV") * random.pick<int64_t>({1, 1, 2, 3, 4});
  draft.dim("D") = draft.size(most);
  draft.dim("DV") = random.chance(75) ? draft.dim("D") : draft.size(most);
  draft.present("sink", random.chance(25));
  if (random.chance(30)) draft.set("scale", random.pick({0.125, 1.0, 0.3, -0.2, 0.0}));
  if (random.chance(35)) draft.set_integer("window", random.pick<int64_t>({1, 2, 3, 7, 16, 0}));
  if (random.chance(20)) draft.set("softcap", random.pick({2.0, 30.0, 0.0}));
}

void fill_queries(Draft& draft, const std::string& queries, const std::string& keys) {
  const double scale = draft.random().pick({0.2, 1.0, 1.0, 2.0});
  for (double& value : draft.tensor(queries).values) value = draft.random().normal() * scale;
  for (double& value : draft.tensor(keys).values) value = draft.random().normal();
  if (draft.has("sink")) {
    for (double& value : draft.tensor("sink").values) {
      value = draft.random().chance(10) ? -INFINITY : draft.random().normal() * 2;
    }
  }
}

}  // namespace opmux::conformance::operators
