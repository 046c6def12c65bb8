#include "shadow/online_tuner.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>

#include <opmux/version.h>

#include "base/text.hpp"
#include "shadow/shadow_checker.hpp"
#include "tune/race/system_noise.hpp"

namespace opmux::shadow {
namespace {

using dispatch::RepeatedCall;
using std::chrono::floor;
using std::chrono::system_clock;

constexpr size_t kMostCandidates = 16;

/// The cell of a call: its types and all its sizes.
tune::Cell cell_of(const schema::Signature& signature) {
  tune::Cell cell;
  const schema::Schema& schema = *signature.schema;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (signature.arguments->tags[i] != ArgTag::tensor) continue;
    const TensorView& tensor = *signature.arguments->values[i].tensor;
    if (tensor.present())
      cell.dtypes += base::concat(cell.dtypes.empty() ? "" : ",", name_of(tensor.dtype()));
  }
  for (size_t i = 0; i < schema.dims.size(); ++i) {
    const int64_t size = schema::dim_value(*signature.dims, static_cast<uint8_t>(i));
    if (size != schema::kAbsent) cell.dims.emplace_back(schema.dims[i], size);
  }
  const int64_t rows = schema::dim_value(*signature.dims, schema::kRowsDim);
  if (schema.has_leading() && rows != schema::kAbsent) cell.dims.emplace_back("rows", rows);
  std::ranges::sort(cell.dims);
  return cell;
}

/// The candidates that give the expected result, in order; the first one runs now and is right.
std::vector<size_t> right_candidates(RepeatedCall& call, const CallAgain& again,
                                     const verify::CallView& view, const verify::Expected& expected,
                                     base::EventLog& log) {
  std::vector<size_t> right;
  const size_t count = std::min(call.candidates(), kMostCandidates);
  for (size_t i = 0; i < count; ++i) {
    Status status = call.run(i);
    std::string problem(status.message());
    if (status.ok()) {
      if (const auto wrong = verify::judge(view, expected, again.outputs()))
        problem = wrong->describe(view);
    }
    if (status.ok() && problem.empty()) {
      right.push_back(i);
      continue;
    }
    const registry::ImplementationRecord& implementation = call.candidate(i);
    log.tell(Level::warning, "tune.left_out", implementation.op, implementation.id, "", [&] {
      return base::concat(
          "not measured, because ",
          status.ok() ? "its result differs from the reference: " : "it failed: ", problem);
    });
    if (i == 0) return {};
  }
  return right;
}

std::string ratio_text(const TuningProposal& made) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), "%.2fx [%.2f, %.2f]", made.speed,
                                 made.low, made.high);
  return {text.data(), static_cast<size_t>(size)};
}

}  // namespace

std::string_view OnlineTuner::obstacle(const dispatch::OperatorSlot& slot,
                                       const verify::CallCopy& copy) {
  for (size_t i = 0; i < copy.arguments().size(); ++i) {
    const verify::CopiedArgument& argument = copy.arguments()[i];
    if (!argument.is_tensor()) continue;
    if (argument.read && argument.written) return "they change an argument in place";
    if (slot.schema->args[i].constant) return "implementations pack their constants";
  }
  if (dispatch::default_threads(slot.engine->dependencies().threads) != 1)
    return "they use more than one thread";
  return {};
}

OnlineTuner::Seen* OnlineTuner::seen(const std::string& cell) {
  const auto known = cells_.find(cell);
  if (known != cells_.end()) return &known->second;
  if (cells_.size() == kMostCells) return nullptr;
  return &cells_[cell];
}

void OnlineTuner::look_at(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
                          const verify::CallView& view, const verify::Expected& expected,
                          uint32_t ran) {
  if (const std::string_view why = obstacle(slot, copy); !why.empty()) {
    if (told_.insert(std::string(slot.name())).second) {
      log_.tell(Level::info, "tune.not_measured", slot.name(), "", "", [&] {
        return base::concat("calls are not measured online, because ", why,
                            "; `opmux tune run` measures them");
      });
    }
    return;
  }
  verify::JudgedCall exact(*slot.schema, copy);
  exact.tie_outputs();  // so that outputs have the types of the call
  const CallAgain again(copy, exact.view());
  const auto call = RepeatedCall::make(slot, again.arguments(), copy.tag());
  // In a scope, or after a failure, something else ran than what is decided now.
  if (!call || (*call)->has_rows() || (*call)->candidate(0).number != ran) return;
  const tune::Cell cell = cell_of((*call)->signature());
  Seen* const known = seen(base::concat(slot.name(), " ", tune::text_of(cell)));
  if (known == nullptr || known->done || ++known->times < kHot) return;
  std::vector<size_t> right = right_candidates(**call, again, view, expected, log_);
  if (right.size() < 2) {
    known->done = true;
    return;
  }
  measure(cell, **call, std::move(right), *known);
}

void OnlineTuner::measure(const tune::Cell& cell, RepeatedCall& call, std::vector<size_t> right,
                          Seen& seen) {
  std::vector<tune::race::Candidate> candidates;
  for (const size_t at : right) {
    candidates.push_back({[&call, at](uint64_t calls) {
      for (uint64_t i = 0; i < calls; ++i) {
        if (!call.run(at).ok()) return false;
      }
      return true;
    }});
  }
  tune::race::SystemNoise noise(clock_, 1);
  const tune::race::Environment environment{
      clock_, noise, [order = std::make_shared<std::mt19937_64>(1)] { return (*order)(); }};
  tune::race::Options options;
  options.most_time_ns = kMostRaceNs;
  const tune::race::Result result = tune::race::race(candidates, options, environment);
  ++seen.tries;
  seen.done = result.end != tune::race::End::time || seen.tries == kMostTries;
  if (result.winner != 0)
    propose(cell, call, right[result.winner], result.standings[result.winner]);
}

void OnlineTuner::propose(const tune::Cell& cell, const RepeatedCall& call, size_t winner,
                          const tune::race::Standing& standing) {
  const registry::ImplementationRecord& now = call.candidate(0);
  const registry::ImplementationRecord& faster = call.candidate(winner);
  const auto id = [](const registry::ImplementationRecord& of) {
    return of.id.substr(of.id.find('/') + 1);
  };
  tune::TuningRow row;
  row.cell = cell;
  row.implementation = {id(faster), faster.build_id};
  row.baseline = {id(now), now.build_id};
  row.log_ratio = standing.log_ratio;
  row.low = standing.low;
  row.high = standing.high;
  row.rounds = standing.rounds;
  const auto time = system_clock::now();
  row.day = static_cast<uint32_t>(floor<std::chrono::days>(time).time_since_epoch().count());
  row.tool = OPMUX_VERSION;

  TuningProposal made{now.op,
                      faster.id,
                      now.id,
                      tune::text_of(cell),
                      std::exp(-standing.log_ratio),
                      std::exp(-standing.high),
                      std::exp(-standing.low),
                      standing.rounds,
                      system_clock::to_time_t(time),
                      false,
                      "the policy does not say `tuning: {online: apply}`"};
  if (mode() == Tuning::online_apply) {
    const Status used = user_->use_row(now.op, row);
    made.applied = used.ok();
    made.why_not = std::string(used.message());
  }
  log_.tell(Level::info, made.applied ? "tune.applied" : "tune.proposed", now.op, faster.id,
            made.cell, [&] {
              return base::concat(
                  made.cell, ": ", faster.id, " is ", ratio_text(made), " faster than ", now.id,
                  ", ", made.rounds, " rounds; ",
                  made.applied ? "later calls run it instead" : "not used, because ", made.why_not);
            });
  proposals_.with([&](std::vector<TuningProposal>& all) {
    if (all.size() == kMostProposals) all.erase(all.begin());
    all.push_back(std::move(made));
  });
}

std::vector<TuningProposal> OnlineTuner::proposals() const {
  return proposals_.with([](const std::vector<TuningProposal>& all) { return all; });
}

}  // namespace opmux::shadow
