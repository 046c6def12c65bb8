#include <barrier>
#include <thread>

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
    text.append("  - name: rule-").append(std::to_string(i)).append("\n    op: ").append(op);
    text.append("\n    when: dtype(x) == \"bf16\" && H > ").append(std::to_string(64 + i + salt));
    text.append(" && rows % 4 == 0\n    boost: [{impl: \"").append(op).append("/bench.v");
    text.append(std::to_string(i % 4)).append("\", add: ").append(std::to_string(1 + i % 20));
    text.append("}]\n    reason: measured on host class ").append(std::to_string(i % 7));
    text.append("\n    owner: kernels@example.com\n");
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

/// An operator with four implementations, which 16 threads call at the same moment.
class Herd {
 public:
  Herd() : runtime_(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    must(runtime_.define("herd(out Tensor y[T, H], Tensor x[T, H], Tensor w[H])"));
    for (int i = 0; i < 4; ++i) {
      held_.push_back(runtime_
                          .implement({.id = "herd/bench.v" + std::to_string(i),
                                      .kind = Kind::default_,
                                      .priority = 100 + i,
                                      .kernel = {.run = nothing}})
                          .value());
    }
  }
  /// Puts `rules` rules for the operator in force. Texts with different `salt` differ.
  void load(int rules, int salt) {
    std::string text = "opmux: 1\nrules:\n";
    for (int i = 0; i < rules; ++i) {
      text += "  - {name: r" + std::to_string(i) + ", op: herd, when: \"T > " +
              std::to_string(3 * i + 10) +
              "\", boost: [{impl: herd/bench.v1, add: " + std::to_string(salt + 1) + "}]}\n";
    }
    must(runtime_.policy().load(text));
  }
  /// Milliseconds of the longest of one call per thread.
  double worst_call() {
    constexpr int kThreads = 16;
    const Operator op = runtime_.op("herd").value();
    std::barrier start(kThreads);
    std::vector<double> times(kThreads);
    {
      std::vector<std::jthread> threads;
      for (double& time : times) {
        threads.emplace_back([&] {
          const Tensors t(2, 8);
          start.arrive_and_wait();
          const double from = now_ns();
          must(op(t.y, t.x, t.w));
          time = (now_ns() - from) / 1e6;
        });
      }
    }
    return *std::ranges::max_element(times);
  }

 private:
  Runtime runtime_;
  std::vector<Registration> held_;
};

Figure worst_call_after_reload() {
  Herd herd;
  std::vector<double> worst;
  for (int i = 0; i < 5; ++i) {
    herd.load(10'000, i);
    worst.push_back(herd.worst_call());
  }
  return {"worst of 16 threads' calls after a reload of 10,000 rules", median(worst), 40, "ms"};
}

}  // namespace

std::vector<Figure> policy_figures() {
  World world;
  return {
      worst_call_after_reload(),
      applied(world, 1000, limit_by_forwarding(100, 160), "policy of 1,000 rules applied"),
      applied(world, 10'000, limit_by_forwarding(1000, 1600), "policy of 10,000 rules applied")};
}

}  // namespace opmux::bench
