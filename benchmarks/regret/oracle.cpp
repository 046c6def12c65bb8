#include "regret/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/measure/cell_call.hpp"

namespace opmux::bench {
namespace {

constexpr uint64_t kSampleNs = 20'000;
/// After this many rounds, implementations that are surely kFarBehind times as slow as the fastest
/// end.
constexpr size_t kScreening = 20;
constexpr double kFarBehind = 1.5;
/// An implementation whose first call takes longer than this, and than three times the fastest
/// first call, takes no part, as in a tuning run.
constexpr uint64_t kHopelessNs = 50'000'000;
constexpr uint64_t kHopelessFactor = 3;

/// An implementation with its plans, one for each copy of the tensors.
struct Runner {
  std::string id;
  std::vector<Plan> plans;
  size_t next = 0;
  uint64_t calls = 1;  ///< of one sample
  bool ended = false;

  bool run(const tuner::CellCall& call, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      if (!call.run(plans[next], next).ok()) return false;
      if (++next == plans.size()) next = 0;
    }
    return true;
  }
};

std::vector<Runner> runners_of(Runtime& runtime, const tuner::CellCall& call, const Operator& op,
                               const std::vector<std::string>& ids, const base::Clock& clock) {
  std::vector<Runner> runners;
  std::vector<uint64_t> first_calls;
  uint64_t best = UINT64_MAX;
  for (const std::string& id : ids) {
    Result<std::vector<Plan>> plans = call.bind(runtime, std::string(op.name()) + "/" + id);
    if (!plans) continue;
    Runner runner{id, std::move(*plans)};
    const uint64_t before = clock.now_ns();
    if (!runner.run(call, 1)) continue;
    first_calls.push_back(clock.now_ns() - before);
    best = std::min(best, first_calls.back());
    runners.push_back(std::move(runner));
  }
  for (size_t i = runners.size(); i > 0; --i) {
    if (first_calls[i - 1] > kHopelessNs && first_calls[i - 1] > kHopelessFactor * best)
      runners.erase(runners.begin() + static_cast<ptrdiff_t>(i) - 1);
  }
  return runners;
}

/// As many calls as a sample needs; every plan runs at least once.
void calibrate(const tuner::CellCall& call, Runner& runner, const base::Clock& clock) {
  runner.run(call, runner.plans.size());
  while (runner.calls < (uint64_t{1} << 24)) {
    const uint64_t before = clock.now_ns();
    runner.run(call, runner.calls);
    const uint64_t took = std::max<uint64_t>(clock.now_ns() - before, 1);
    if (took >= kSampleNs) return;
    runner.calls = std::max(runner.calls + 1, runner.calls * kSampleNs / took * 11 / 10);
  }
}

}  // namespace

Result<Oracle> Oracle::measure(Runtime& runtime, const tuner::CellPlan& plan, int64_t value,
                               const std::vector<std::string>& ids, const OracleOptions& options,
                               const tune::race::Environment& environment) {
  const conformance::Case c = plan.call_at(value);
  const auto call = tuner::CellCall::make(runtime, plan.op(), c,
                                          tuner::CopyLimits{.cold_bytes = options.cold_bytes});
  if (!call) return call.error();
  std::vector<Runner> runners = runners_of(runtime, **call, plan.op(), ids, environment.clock);
  if (runners.empty())
    return Status(Code::no_candidate, "bench.oracle", "no implementation runs this call");
  std::vector<std::string> names;
  for (Runner& runner : runners) {
    calibrate(**call, runner, environment.clock);
    names.push_back(runner.id);
  }
  Oracle oracle(std::move(names));
  std::vector<size_t> order(runners.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<double> log_times(runners.size());
  const uint64_t start = environment.clock.now_ns();
  const auto most_ns = static_cast<uint64_t>(options.most_seconds * 1e9);
  while (oracle.rounds() < options.rounds && environment.clock.now_ns() - start < most_ns) {
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[environment.random() % i]);
    std::ranges::fill(log_times, std::numeric_limits<double>::quiet_NaN());
    environment.noise.begin_round();
    for (const size_t at : order) {
      Runner& runner = runners[at];
      if (runner.ended) continue;
      const uint64_t before = environment.clock.now_ns();
      runner.ended = !runner.run(**call, runner.calls);
      const auto took = static_cast<double>(environment.clock.now_ns() - before);
      if (!runner.ended)
        log_times[at] = std::log(std::max(took, 1.0) / static_cast<double>(runner.calls));
    }
    if (environment.noise.end_round() != tune::race::Noise::none) {
      ++oracle.dropped_;
      continue;
    }
    oracle.ratios_.add_round(log_times);
    if (oracle.rounds() != kScreening) continue;
    oracle.find_best();
    for (size_t i = 0; i < runners.size(); ++i)
      runners[i].ended |= oracle.ratios_.ratio(i, oracle.best_).low > std::log(kFarBehind);
  }
  oracle.find_best();
  return oracle;
}

void Oracle::find_best() {
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (ratios_.center(i, best_) < 0) best_ = i;
  }
}

size_t Oracle::place_of(const std::string& id) const {
  return static_cast<size_t>(std::ranges::find(ids_, id) - ids_.begin());
}

double Oracle::gap() const {
  double smallest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (i != best_) smallest = std::min(smallest, std::expm1(ratios_.ratio(i, best_).low));
  }
  return smallest;
}

bool Oracle::has(const std::string& id) const { return place_of(id) < ids_.size(); }

tune::race::Interval Oracle::ratio(const std::string& id, const std::string& other) const {
  if (id == other) return {0, 0, 0, 0, ratios_.rounds()};
  return ratios_.ratio(place_of(id), place_of(other));
}

}  // namespace opmux::bench
