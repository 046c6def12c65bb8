#include "tuner/measure/cell_race.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/text.hpp"
#include "conformance/expected.hpp"
#include "tuner/measure/cell_call.hpp"

namespace opmux::tuner {
namespace {

using conformance::Case;
using conformance::CaseArgument;
using tune::race::Exit;

constexpr size_t kMostCandidates = 16;  ///< of a race
/// The reference may take this long; larger calls are verified with a smaller value.
constexpr uint64_t kMostReferenceNs = 500'000'000;

std::string full_id(std::string_view op, const std::string& id) {
  return base::concat(op, "/", id);
}

std::string short_id(std::string_view id) { return std::string(id.substr(id.find('/') + 1)); }

uint32_t today() {
  using std::chrono::floor;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint32_t>(floor<std::chrono::days>(now).count());
}

Result<verify::Expected> expected_of(Runtime& runtime, const Operator& op, const Case& c,
                                     const std::string& reference, const base::Clock& clock,
                                     uint64_t& took_ns) {
  const Case plain = conformance::for_reference(c);
  const CopyLimits one{.most_copies = 1};
  const auto call = CellCall::make(runtime, op, plain, one);
  if (!call) return call.error();
  const Result<Plan> plan = (*call)->bind_first(runtime, reference);
  if (!plan) return plan.error();
  (*call)->restore();
  const uint64_t before = clock.now_ns();
  if (Status status = (*call)->run(*plan, 0); !status.ok()) return status;
  took_ns = clock.now_ns() - before;
  std::vector<std::vector<double>> values;
  const std::vector<std::vector<std::byte>> outputs = (*call)->outputs();
  size_t written = 0;
  for (const CaseArgument& argument : plain.arguments) {
    if (argument.written())
      values.push_back(verify::values_of(outputs[written++], argument.tensor.dtype));
  }
  return verify::bounded(c.view(), std::move(values));
}

/// How the result of an implementation differs from the reference; empty if it does not.
std::string problem_of(Runtime& runtime, CellCall& call, const Case& c,
                       const verify::Expected& expected, const std::string& id) {
  const Result<Plan> plan = call.bind_first(runtime, id);
  if (!plan) return plan.error().to_string();
  call.restore();
  if (const Status status = call.run(*plan, 0); !status.ok()) return status.to_string();
  const auto problem = conformance::judge(c, expected, call.outputs());
  return problem ? problem->detail : "";
}

std::string reference_of(const Runtime& runtime, std::string_view op) {
  for (const OperatorInfo& info : runtime.list()) {
    if (info.name != op) continue;
    for (const ImplementationInfo& one : info.implementations) {
      if (one.kind == name_of(Kind::reference) && !one.needs_instance) return one.id;
    }
  }
  return {};
}

}  // namespace

BuildFinder::Known BuildFinder::find(std::string_view op, const std::string& id,
                                     std::span<const opmux_arg> arguments) {
  if (const auto at = known_.find(id); at != known_.end()) return at->second;
  Known found;
  // A lockfile names the build of the implementation that runs.
  Rule rule;
  rule.op = std::string(op);
  rule.require = {"impl:" + id};
  rule.allow_none = true;
  Policy policy;
  policy.rules.push_back(std::move(rule));
  const Result<Operator> here = runtime_.op(op);
  if (here && runtime_.policy().set(policy).ok() && here->decide_arguments(arguments)) {
    for (const LockedChoice& choice : runtime_.lockfile().current().choices) {
      if (choice.implementation != id) continue;
      found.build = choice.build_id;
      const char* const end = choice.schema_hash.data() + choice.schema_hash.size();
      std::from_chars(choice.schema_hash.data(), end, found.schema_hash, 16);
    }
  }
  return known_.emplace(id, found).first->second;
}

Result<Candidates> BuildFinder::candidates(const Operator& op,
                                           std::span<const opmux_arg> arguments) {
  Candidates found;
  const Explanation explanation = op.explain_arguments(arguments);
  for (const Candidate& candidate : explanation.candidates) {
    if (!candidate.accepted() || !candidate.transforms.empty()) continue;
    const Known known = find(op.name(), candidate.id, arguments);
    if (found.schema_hash == 0) found.schema_hash = known.schema_hash;
    found.builds.push_back({short_id(candidate.id), known.build});
  }
  if (found.builds.size() > kMostCandidates) found.builds.resize(kMostCandidates);
  if (!found.builds.empty()) return found;
  return Status(Code::no_candidate, "tune.race",
                base::concat("no implementation of ", op.name(), " accepts ", explanation.arguments,
                             ": ", explanation.note));
}

Result<Candidates> CellRace::candidates(int64_t value) {
  const Case shapes = plan_.shapes_at(value);
  const auto call = CellCall::make(runtime_, plan_.op(), shapes, {.most_copies = 1});
  if (!call) return call.error();
  return builds_.candidates(plan_.op(), (*call)->arguments(0));
}

/// A reference that is too slow for this value runs at a smaller one.
int64_t CellRace::value_to_verify(int64_t value) const {
  if (plan_.range().dim.empty() || reference_ns_ == 0) return value;
  const double each = static_cast<double>(reference_ns_) / static_cast<double>(reference_value_);
  const auto most = static_cast<int64_t>(static_cast<double>(kMostReferenceNs) / each);
  return std::clamp(value, plan_.range().first, std::max(plan_.range().first, most));
}

const Case& CellRace::case_at(int64_t value) {
  if (!case_ || case_->first != value) {
    case_.reset();  // before the next one takes memory
    case_.emplace(value, plan_.call_at(value));
  }
  return case_->second;
}

void CellRace::verify(int64_t value, const Candidates& candidates) {
  const auto verify_once = [&](int64_t at) {
    const bool all_known = std::ranges::all_of(candidates.builds, [&](const tune::Build& build) {
      return left_out_.contains(build.id) || verified_.contains({build.id, at});
    });
    if (all_known) return;
    reference_value_ = std::max<int64_t>(at, 1);
    verify_at(case_at(at), candidates);
    for (const tune::Build& build : candidates.builds) verified_.insert({build.id, at});
  };
  // The smallest value says how long the reference takes.
  verify_once(plan_.range().dim.empty() ? value : plan_.range().first);
  verify_once(value_to_verify(value));
}

void CellRace::verify_at(const Case& c, const Candidates& candidates) {
  const std::string_view op = plan_.op().name();
  const std::string reference = reference_of(runtime_, op);
  Result<verify::Expected> expected =
      Status(Code::unsupported, "tune.race", "the operator has no reference to compare with");
  if (!reference.empty()) {
    expected = expected_of(runtime_, plan_.op(), c, reference, environment_.clock, reference_ns_);
  }
  const auto call = CellCall::make(runtime_, plan_.op(), c, {.most_copies = 1});
  for (const tune::Build& build : candidates.builds) {
    if (left_out_.contains(build.id)) continue;
    std::string problem;
    if (!expected || !call) {
      problem = (!expected ? expected.error() : call.error()).to_string();
    } else {
      problem = problem_of(runtime_, **call, c, *expected, full_id(op, build.id));
    }
    if (!problem.empty()) left_out_[build.id] = problem;
  }
}

/// An implementation in a race, with plans for the copies of the tensors.
struct CellRace::Entry {
  tune::Build build;
  std::vector<Plan> plans;
  size_t next = 0;
  Status failure;
  uint64_t first_call_ns = 0;
};

/// Prepares the implementations that gave right results and calls each once. Leaves out those that
/// fail, and, except for the baseline, those that take too long.
std::vector<std::unique_ptr<CellRace::Entry>> CellRace::entries_of(const CellCall& call,
                                                                   const Candidates& candidates,
                                                                   const Limits& limits) {
  std::vector<std::unique_ptr<Entry>> entries;
  uint64_t best = UINT64_MAX;
  for (const tune::Build& build : candidates.builds) {
    if (left_out_.contains(build.id)) continue;
    auto plans = call.bind(runtime_, full_id(plan_.op().name(), build.id));
    if (limits.stop()) return entries;
    if (!plans) {
      left_out_[build.id] = plans.error().to_string();
      continue;
    }
    auto entry = std::make_unique<Entry>(Entry{build, std::move(*plans), 0, {}, 0});
    const uint64_t before = environment_.clock.now_ns();
    entry->failure = call.run(entry->plans[0], 0);
    entry->first_call_ns = environment_.clock.now_ns() - before;
    if (!entry->failure.ok()) {
      left_out_[build.id] = entry->failure.to_string();
      continue;
    }
    best = std::min(best, entry->first_call_ns);
    entries.push_back(std::move(entry));
  }
  const tune::race::Options defaults;
  for (size_t i = entries.size(); i > 1; --i) {
    const uint64_t took = entries[i - 1]->first_call_ns;
    if (took > defaults.hopeless_ns &&
        static_cast<double>(took) > defaults.hopeless_factor * static_cast<double>(best)) {
      entries.erase(entries.begin() + static_cast<ptrdiff_t>(i) - 1);
    }
  }
  // The first run of each plan does more than later ones.
  for (const std::unique_ptr<Entry>& entry : entries) {
    for (size_t copy = 1; copy < entry->plans.size() && !limits.stop(); ++copy) {
      if (!call.run(entry->plans[copy], copy).ok()) break;
    }
  }
  return entries;
}

Result<MeasuredPoint> CellRace::measure(int64_t value, const Candidates& candidates,
                                        const Limits& limits) {
  const Status stopped(Code::failed, "tune.stopped", "the run was stopped");
  verify(value, candidates);
  if (limits.stop()) return stopped;
  const Case& c = case_at(value);
  const auto call = CellCall::make(runtime_, plan_.op(), c, CopyLimits{.cold_bytes = cold_bytes_});
  if (!call) return call.error();
  const std::vector<std::unique_ptr<Entry>> entries = entries_of(**call, candidates, limits);
  if (limits.stop()) return stopped;
  if (entries.empty())
    return Status(Code::no_candidate, "tune.race", "no implementation gave the right result");
  if (entries.size() > 1) return race(**call, entries, limits);
  MeasuredPoint point;
  point.baseline = entries[0]->build;
  point.winner = point.baseline.id;
  point.day = today();
  return point;
}

Result<MeasuredPoint> CellRace::race(const CellCall& call,
                                     const std::vector<std::unique_ptr<Entry>>& entries,
                                     const Limits& limits) {
  std::vector<tune::race::Candidate> racing;
  for (const std::unique_ptr<Entry>& entry : entries) {
    racing.push_back({[&, one = entry.get()](uint64_t calls) {
      for (uint64_t i = 0; i < calls; ++i) {
        one->failure = call.run(one->plans[one->next], one->next);
        if (!one->failure.ok()) return false;
        if (++one->next == one->plans.size()) one->next = 0;
      }
      return !limits.stop();
    }});
  }
  tune::race::Options options;
  options.most_time_ns = limits.most_time_ns;
  const tune::race::Result result = tune::race::race(racing, options, environment_);
  if (limits.stop()) return Status(Code::failed, "tune.stopped", "the run was stopped");
  if (result.end == tune::race::End::incumbent)
    return Status(Code::failed, "tune.race", entries[0]->failure.to_string());
  MeasuredPoint point;
  point.baseline = entries[0]->build;
  point.winner = entries[result.winner]->build.id;
  point.day = today();
  point.rigor = result.end == tune::race::End::time ? tune::Rigor::quick : tune::Rigor::full;
  // A race that ended otherwise has a result, even if the others left it in dropped rounds.
  if (result.end == tune::race::End::time) {
    point.dropped = result.dropped();
    point.noise = result.most_noise();
  }
  for (size_t i = 1; i < entries.size(); ++i) {
    const tune::race::Standing& standing = result.standings[i];
    if (standing.exit == Exit::failed)
      left_out_[entries[i]->build.id] = entries[i]->failure.to_string();
    if (!std::isfinite(standing.low) || !std::isfinite(standing.high)) continue;
    point.comparisons.push_back(
        {entries[i]->build, standing.log_ratio, standing.low, standing.high, standing.rounds});
  }
  return point;
}

}  // namespace opmux::tuner
