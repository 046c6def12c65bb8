#include "measuring.hpp"

#include "../world.hpp"
#include "allocations.hpp"
#include "engine_side.hpp"
#include "pairs.hpp"
#include "subject.hpp"

namespace opmux::bench {
namespace {

constexpr double kLongest = 5e8;  // ns; an implementation with longer calls is skipped
constexpr double kTried = 3e9;    // ns; a call that is expected to take longer is not tried
constexpr int kOwnRounds = 11;

std::string too_long(const char* verb, double ns) {
  char text[64];
  std::snprintf(text, sizeof text, "one call %s %.1f s", verb, ns / 1e9);
  return text;
}

struct Allocations {
  double own, engine;  // per call, outside and inside of the engines' libraries
};

Allocations allocations_of(const std::function<void()>& run) {
  constexpr int kCalls = 4;
  const uint64_t own = test::allocations_so_far(), engine = test::allocations_apart();
  for (int i = 0; i < kCalls; ++i) run();
  return {static_cast<double>(test::allocations_so_far() - own) / kCalls,
          static_cast<double>(test::allocations_apart() - engine) / kCalls};
}

void compare(const EngineSide& bare, const std::function<void()>& dispatched, int pairs,
             Result& result) {
  const Pair pair = measure_pairs(dispatched, bare.run, pairs);
  result.bare = bare.name;
  result.ns = pair.left_ns;
  result.bare_ns = pair.right_ns;
  result.ratio = pair.ratio;
  result.pairs = pair.pairs;
  const Allocations ours = allocations_of(dispatched), by_hand = allocations_of(bare.run);
  result.engine_allocations = ours.engine;
  result.allocations = ours.own + std::max(0.0, ours.engine - by_hand.engine);
}

double alone(const std::function<void()>& run) {
  std::vector<double> times;
  const double start = now_ns();
  while (times.size() < kOwnRounds && now_ns() - start < kLongest) {
    const double from = now_ns();
    run();
    times.push_back(now_ns() - from);
  }
  return median(times);
}

}  // namespace

void Measuring::measure(const Point& point, Report& report) {
  // Repeated for every point, because a backend may be loaded by the first call that can use it.
  test::count_apart({"libdnnl", "libgomp", "libopenblas"});
  const Buffers buffers(runtime_, point);
  const std::string first_choice = chosen(runtime_, point, buffers);
  for (const std::string& id : implementations(runtime_, point.op)) {
    Result result = measure_one(point, buffers, id);
    result.chosen = result.skipped.empty() && id == first_choice;
    report.results.push_back(std::move(result));
  }
}

Result Measuring::measure_one(const Point& point, const Buffers& buffers, const std::string& id) {
  Result result;
  result.point = point;
  result.implementation = id;
  double& rate = ns_per_work_[id + name_of(point.dtype)];
  if (rate * point.work > kTried) {
    result.skipped = too_long("would take", rate * point.work);
    return result;
  }
  Dispatched dispatched(runtime_, point, buffers, id, 1);
  double first = 0;
  if (dispatched.reason().empty()) first = dispatched.first();
  result.skipped = dispatched.reason();
  if (result.skipped.empty() && first > kLongest) {
    rate = first / point.work;
    result.skipped = too_long("takes", first);
  }
  if (!result.skipped.empty()) return result;
  const auto run = [&] { dispatched.run(); };
  const EngineSide bare = engine_side(point, buffers, id);
  if (bare.name.empty()) {
    result.ns = alone(run);
    const Allocations ours = allocations_of(run);
    result.allocations = ours.own;
    result.engine_allocations = ours.engine;
  } else {
    compare(bare, run, pairs_, result);
  }
  rate = result.ns / point.work;
  return result;
}

double no_op_overhead() {
  using Kernel = int32_t (*)(void*, const opmux_call*);
  static Kernel volatile kernel = &nothing;
  constexpr int kCalls = 1000;
  World world;
  const Operator op = world.operators[3];
  const Tensors t(32, 4096);
  opmux_call call{};
  const Pair pair = measure_pairs(
      [&] {
        for (int i = 0; i < kCalls; ++i) must(op(t.y, t.x, t.w, 1e-6));
      },
      [&] {
        for (int i = 0; i < kCalls; ++i) {
          if (kernel(nullptr, &call) != OPMUX_OK) [[unlikely]]
            give_up({Code::failed, "", "the empty kernel failed"});
        }
      },
      101);
  return (pair.left_ns - pair.right_ns) / kCalls;
}

}  // namespace opmux::bench
