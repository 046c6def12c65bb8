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

/// Times of batches of 16 calls; walks all operators.
std::vector<double> batch_times(World& world, int batches) {
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
  return times;
}

/// Publishes a policy that changes one operator, 1,000 times per second, until `stop` is set.
void publish(World& world, const std::atomic<bool>& stop, std::atomic<int>& published) {
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; !stop.load(); ++i) {
    next += std::chrono::milliseconds(1);
    Policy policy;
    policy.per_op["op" + std::to_string(i % World::kOperators)] = {
        i % 2 == 0 ? "*/bench.v1" : "*/bench.v2", "*/bench.*"};
    must(world.runtime.policy().set(policy));
    published.fetch_add(1);
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

/// A publication makes the next call of the two operators that it changes slow, and its memory
/// barrier interrupts the calling thread. Counting slow batches per publication holds on every
/// processor; a percentile of all batches depends on how many batches a second the processor runs.
Figure publication_figure(World& world) {
  constexpr int kBatches = 1'000'000;
  constexpr int kRounds = 15;  // a neighbour on the processor's other thread comes and goes
  std::vector<double> slow_batches;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> quiet = batch_times(world, kBatches);
    const auto p99 = quiet.begin() + static_cast<ptrdiff_t>(quiet.size() * 99 / 100);
    std::nth_element(quiet.begin(), p99, quiet.end());
    const double slow = 2 * *p99;
    const auto before = std::ranges::count_if(quiet, [&](double time) { return time > slow; });
    std::atomic<bool> stop{false};
    std::atomic<int> published{0};
    std::jthread publisher([&] { publish(world, stop, published); });
    const std::vector<double> busy = batch_times(world, kBatches);
    stop.store(true);
    publisher.join();
    must(world.runtime.policy().reset());
    const auto during = std::ranges::count_if(busy, [&](double time) { return time > slow; });
    slow_batches.push_back(static_cast<double>(during - before) / std::max(1, published.load()));
  }
  return {"slow batches of 16 calls per publication", median(slow_batches), 4, ""};
}

}  // namespace opmux::bench
