#include "model.hpp"

#include <algorithm>

#include "ruling.hpp"

namespace opmux::property {
namespace {

struct Accepted {
  size_t tier;
  double score;
  int priority;
  std::string id;
};

bool better(const Accepted& a, const Accepted& b) {
  if (a.tier != b.tier) return a.tier < b.tier;
  if (a.score != b.score) return a.score > b.score;
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.id < b.id;
}

/// The priority in this call: that of the first hint whose range has the dimension.
int priority_in(const Question& ask, const Candidate& candidate, const Backend& backend) {
  for (const Hint& hint : candidate.hints) {
    const Fact size = ask.dim(hint.dim);
    if (size && *size >= hint.least && (hint.most == 0 || *size <= hint.most)) return hint.priority;
  }
  return candidate.priority < 0 ? priority_of(backend.kind) : candidate.priority;
}

bool no_output_element(const World& world, const Seen& seen) {
  for (size_t i = 0; i < seen.args.size(); ++i) {
    if (!world.schema.args[i].output || absent(seen.args[i])) continue;
    const auto shape = seen.args[i].tensor.shape();
    if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return false;
  }
  return true;
}

}  // namespace

Expected choose(const World& world, const Call& call) {
  Expected expected;
  const std::optional<Seen> seen = check(world.schema, call);
  if (!seen) return expected;
  const Question ask{&world, &call, &*seen};
  const Ruling ruling(ask);
  expected.valid = true;
  expected.empty = no_output_element(world, *seen);
  expected.strict = ruling.strict();
  std::vector<Accepted> accepted;
  for (const Candidate& candidate : world.candidates) {
    if (!candidate.registered) continue;
    const Backend& backend = world.backends[candidate.backend];
    const int priority = priority_in(ask, candidate, backend);
    const double score = ruling.score(candidate, backend, priority);
    expected.scores[candidate.id] = score;
    std::string reason = ruling.refusal(candidate, backend);
    if (reason.empty()) reason = refusal(candidate, ask);
    if (reason.empty()) {
      accepted.push_back({ruling.tier(candidate, backend), score, priority, candidate.id});
    } else {
      expected.refused[candidate.id] = reason;
    }
  }
  std::sort(accepted.begin(), accepted.end(), better);
  for (const Accepted& a : accepted) expected.order.push_back(a.id);
  return expected;
}

bool leaves_nothing(const World& world, const Policy& code) {
  World trial = world;
  trial.code = code;
  const Call nothing;
  Seen seen;
  seen.args.resize(world.schema.args.size());
  const Question ask{&trial, &nothing, &seen};
  const auto starved = [&](const Ruling& ruling) {
    bool any = false, kept = false, something_runs = false;
    for (const Candidate& c : trial.candidates) {
      if (!c.registered) continue;
      const Backend& backend = trial.backends[c.backend];
      const bool runs = backend.enabled && backend.available && c.caps.features.empty();
      const bool keeps = ruling.refusal(c, backend).empty();
      if (keeps && runs) return false;
      any = true;
      kept |= keeps;
      something_runs |= runs;
    }
    return any && (!kept || something_runs) && !ruling.allows_none();
  };
  if (starved(Ruling(ask, nullptr))) return true;
  for (const Policy* layer : {&trial.code, &trial.environment}) {
    for (const Rule& rule : layer->rules) {
      if (applies(rule, trial.schema) && starved(Ruling(ask, &rule))) return true;
    }
  }
  return false;
}

}  // namespace opmux::property
