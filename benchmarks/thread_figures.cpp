#include <atomic>
#include <barrier>
#include <thread>

#include "figure_groups.hpp"

namespace opmux::bench {
namespace {

constexpr int kCalls = 400'000;

/// CPU time per call in nanoseconds of the slowest of `threads` threads that run the subject
/// concurrently.
double together(int threads, const std::function<void(int)>& run) {
  std::barrier start(threads);
  std::vector<double> times(static_cast<size_t>(threads));
  {
    std::vector<std::jthread> all;
    for (double& time : times) {
      all.emplace_back([&] {
        run(1000);
        start.arrive_and_wait();
        const double from = thread_ns();
        run(kCalls);
        time = (thread_ns() - from) / kCalls;
      });
    }
  }
  return *std::ranges::max_element(times);
}

/// The 99.9th percentile of the time of a batch of 16 calls, in nanoseconds. Successive batches use
/// different operators.
double tail(World& world, int batches) {
  std::vector<double> times(static_cast<size_t>(batches));
  Tensors t(32, 4096);
  int at = 0;
  for (double& time : times) {
    const double start = now_ns();
    const Operator& op = world.operators[static_cast<size_t>(at)];
    for (int i = 0; i < 16; ++i) must(op(t.y, t.x, t.w, 1e-6));
    time = now_ns() - start;
    at = at + 1 < World::kOperators ? at + 1 : 0;
  }
  const auto p999 = times.begin() + static_cast<ptrdiff_t>(times.size() * 999 / 1000);
  std::nth_element(times.begin(), p999, times.end());
  return *p999;
}

/// Publishes a policy that changes one operator, 1,000 times per second, until `stop` is set.
void publish(World& world, const std::atomic<bool>& stop) {
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; !stop.load(); ++i) {
    next += std::chrono::milliseconds(1);
    Policy policy;
    policy.per_op["op" + std::to_string(i % World::kOperators)] = {
        i % 2 == 0 ? "*/bench.v1" : "*/bench.v2", "*/bench.*"};
    must(world.runtime.set_policy(policy));
    std::this_thread::sleep_until(next);
  }
}

}  // namespace

Figure scaling_figure(World& world, int rounds) {
  const Operator op = world.operators[7];
  const auto guarded = [&](int count) {
    Tensors t(32, 4096);
    for (int i = 0; i < count; ++i) must(op(t.y, t.x, t.w, 1e-6));
  };
  const Subject bare = bare_subject();
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const double bare_one = together(1, bare.run), bare_two = together(2, bare.run);
    const double one = together(1, guarded), two = together(2, guarded);
    ratios.push_back((one / two) / (bare_one / bare_two));
  }
  return {"scaling to two threads, relative to the bare call", median(ratios), 0.95, "x", true};
}

Figure publication_figure(World& world) {
  constexpr int kBatches = 1'000'000;
  std::vector<double> ratios;
  for (int round = 0; round < 3; ++round) {
    const double quiet = tail(world, kBatches);
    std::atomic<bool> stop{false};
    std::jthread publisher([&] { publish(world, stop); });
    const double busy = tail(world, kBatches);
    stop.store(true);
    publisher.join();
    must(world.runtime.reset_policy());
    ratios.push_back(busy / quiet);
  }
  return {"p99.9 of 16 calls, 1,000 publications a second", median(ratios), 2, "x"};
}

}  // namespace opmux::bench
