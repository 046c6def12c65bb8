#include "figure_groups.hpp"
#include "processor.hpp"

namespace opmux::bench {
namespace {

/// A realistic policy file with about 200 bytes per rule: conditions, and every field that is
/// expensive to read. Texts with different `salt` have different rules for every operator.
std::string policy_text(int rules, int salt) {
  std::string text = "opmux: 1\nrules:\n";
  for (int i = 0; i < rules; ++i) {
    const std::string op = "op" + std::to_string(i % World::kOperators);
    text += "  - name: rule-" + std::to_string(i) + "\n    op: " + op +
            "\n    when: dtype(x) == \"bf16\" && H > " + std::to_string(64 + i + salt) +
            " && rows % 4 == 0\n    boost: [{impl: \"" + op + "/bench.v" + std::to_string(i % 4) +
            "\", add: " + std::to_string(1 + i % 20) + "}]\n    reason: measured on host class " +
            std::to_string(i % 7) + "\n    owner: kernels@example.com\n";
  }
  return text;
}

/// Median time to parse, validate, compile for every operator and publish a policy text.
Figure applied(World& world, int rules, double limit, const char* name) {
  constexpr int kTexts = 5;
  std::vector<double> times;
  size_t bytes = 0;
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = policy_text(rules, i);
    bytes = text.size();
    const double start = thread_ns();
    must(world.runtime.policy().load(text, "policy.yaml"));
    times.push_back((thread_ns() - start) / 1e6);
  }
  if (world.runtime.policy().state().rules != static_cast<uint64_t>(rules)) {
    throw Error(Status(Code::failed, "", "the policy was loaded but is not in force"));
  }
  return {name, median(times), limit, "ms", false, std::to_string(bytes / 1000) + " kB of YAML"};
}

}  // namespace

std::vector<Figure> policy_figures() {
  World world;
  return {
      applied(world, 1000, limit_by_forwarding(100, 160), "policy of 1,000 rules applied"),
      applied(world, 10'000, limit_by_forwarding(1000, 1600), "policy of 10,000 rules applied")};
}

}  // namespace opmux::bench
