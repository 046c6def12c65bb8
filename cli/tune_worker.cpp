#include "cli/tune_worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/system/machine_facts.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "plugin/probe/child.hpp"
#include "plugin/probe/probe.hpp"
#include "tune/race/system_noise.hpp"
#include "tuner/measure/cell_race.hpp"

namespace opmux::cli {
namespace {

/// For the runtime, the comparison with the reference, and a race of at most 3 seconds.
constexpr std::chrono::seconds kDeadline{60};

/// The candidates with these ids, in the order of the ids.
tuner::Candidates among(const tuner::Candidates& all, std::string_view ids) {
  tuner::Candidates chosen{{}, all.schema_hash};
  while (!ids.empty()) {
    const std::string id(base::take_until(ids, ','));
    const auto at = std::ranges::find(all.builds, id, &tune::Build::id);
    if (at != all.builds.end()) chosen.builds.push_back(*at);
  }
  return chosen;
}

}  // namespace

std::optional<tuner::MeasuredPoint> race_again(const AskedCell& cell, int64_t value,
                                               const std::vector<std::string>& ids,
                                               uint32_t threads) {
  plugin::ChildCommand command;
  command.program = "/proc/self/exe";
  command.arguments = {
      "tune", "run", "--worker", base::join(ids, ","), "--threads", std::to_string(threads)};
  command.arguments.insert(command.arguments.end(), cell.words.begin(), cell.words.end());
  if (cell.spec.over) {
    command.arguments.insert(
        command.arguments.end(),
        {"--over", base::concat(cell.spec.over->dim, "=", value, "..", value)});
  }
  for (char** at = environ; *at != nullptr; ++at) command.environment.emplace_back(*at);
  const Result<plugin::ChildReport> child = plugin::run_child(command, kDeadline);
  if (!child || child->ending.how != plugin::Ending::How::exited || child->ending.number != kFine)
    return {};
  Result<tuner::MeasuredPoint> point = tuner::read_point(child->text);
  if (!point) return {};
  return std::move(*point);
}

int work_on_race(Runtime& runtime, const AskedCell& cell, const std::string& ids,
                 uint32_t threads) {
  const Result<Operator> op = runtime.op(cell.spec.op);
  if (!op) return wrong_use(op.error().message());
  const Result<tuner::CellPlan> plan = tuner::CellPlan::make(*op, cell.spec, threads);
  if (!plan) return wrong_use(plan.error().message());
  Result<Runtime> other = Runtime::create({});
  if (!other) return wrong_use(other.error().message());
  tuner::BuildFinder builds(std::move(*other));
  const base::SteadyClock clock;
  tune::race::SystemNoise noise(clock, threads);
  const tune::race::Environment environment{
      clock, noise, [order = std::make_shared<std::mt19937_64>(2)] { return (*order)(); }};
  tuner::CellRace race(runtime, builds, *plan, environment,
                       2 * base::read_machine_facts().last_level_cache);
  const int64_t value = plan->range().first;
  const Result<tuner::Candidates> all = race.candidates(value);
  if (!all) return wrong_use(all.error().message());
  tuner::CellRace::Limits limits;
  limits.stop = [] { return false; };
  const Result<tuner::MeasuredPoint> point = race.measure(value, among(*all, ids), limits);
  if (!point) return wrong_use(point.error().message());
  const bool written = base::write_all(plugin::protocol::kReportDescriptor, tuner::text_of(*point));
  return written ? kFine : kFound;
}

}  // namespace opmux::cli
