#include "runtime/jobs/status_job.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <tuple>

#include <opmux/version.h>

#include "base/memory.hpp"
#include "base/system/clock.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "dispatch/explain.hpp"
#include "policy/conditions/class_facts.hpp"
#include "policy/rules/operator_policy.hpp"
#include "registry/implementation/can_run.hpp"
#include "runtime/core.hpp"
#include "status/status_file.hpp"

namespace opmux::runtime {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
/// Time until a change is written; doubled while nothing changes.
constexpr uint64_t kPageInterval = 250 * kMillisecond;
/// The file is rewritten this often even without a change, so that its age shows that the process
/// is alive.
constexpr int64_t kOldestPageMs = 10'000;
/// The time between two writes is at least this many times the cost of one.
constexpr uint64_t kRestFactor = 100;
/// Time between two windows of sampled calls. After a window each thread looks up its plans again,
/// which takes about a microsecond for each.
constexpr uint64_t kSampleInterval = 2000 * kMillisecond;

int64_t system_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

uint64_t next_page_number() {
  static std::atomic<uint64_t> count{0};
  return ++count;
}

/// Lets calls be sampled for the next page.
void sample_calls(Core& core, const RuntimeState& state) {
  std::map<std::string_view, uint64_t> calls;
  for (const OperatorPageState& op : state.operators) calls[op.name] = op.calls();
  core.engine().sample_calls([&](std::string_view op) {
    const auto at = calls.find(op);
    return at == calls.end() ? 0 : at->second;
  });
}

/// Writes the status file of a runtime periodically.
class StatusFileJob final : public base::Maintenance::Job {
 public:
  StatusFileJob(Core& core, const std::string& folder, uint64_t number, int64_t since)
      : core_(core), number_(number), since_(since), file_(folder) {
    page_.mark = status_file::own_mark();
    page_.process.pid = ::getpid();
    page_.process.started = status_file::own_start(page_.mark);
    ready_ = told(file_.prepare());
  }

  uint64_t run(uint64_t now_ns) override {
    if (!ready_) return base::Maintenance::kNever;
    const uint64_t start = base::thread_time_ns();
    const bool changed = write();
    if (now_ns >= next_sample_) {
      sample_calls(core_, page_.process.runtimes.front());
      next_sample_ = now_ns + kSampleInterval;
    }
    const uint64_t cost = base::thread_time_ns() - start;
    return now_ns + std::max(changed ? kPageInterval : 2 * kPageInterval, kRestFactor * cost);
  }

 private:
  /// Returns whether the contents changed.
  bool write() {
    page_.process.name = status_file::own_name();
    page_.process.runtimes.assign(1, state_of(core_));
    page_.process.runtimes.front().number = number_;
    page_.process.runtimes.front().since = since_;
    std::string body = status_file::status_file_body(page_);
    const int64_t now = system_ms();
    const bool changed = body != body_;
    if (!changed && now - written_ < kOldestPageMs) return false;
    if (!told(file_.replace(status_file::status_file_text(body, now, ++updates_)))) return false;
    body_ = std::move(body);
    written_ = now;
    return changed;
  }

  /// Logs a failure; returns whether the status is ok.
  bool told(const Status& status) {
    if (status.ok()) return true;
    core_.log().tell(Level::warning, "state_page.file", "", "", status.reason(), [&] {
      return "the status file cannot be written: " + std::string(status.message());
    });
    return false;
  }

  Core& core_;
  const uint64_t number_;
  const int64_t since_;
  status_file::StatusFile file_;
  status_file::StatusPage page_;
  std::string body_;
  int64_t written_ = 0;
  uint64_t updates_ = 0;
  uint64_t next_sample_ = 0;
  bool ready_ = false;
};

}  // namespace

base::Maintenance::MakeJob status_file_job(Core& core, std::string folder) {
  return
      [&core, folder = std::move(folder), number = next_page_number(), since = system_ms() / 1000] {
        return std::make_unique<StatusFileJob>(core, folder, number, since);
      };
}

namespace {

using registry::Reason;

/// Limit for listed choices per operator; the others are only counted.
constexpr size_t kMostChoices = 256;
/// Limit for listed cells of all operators.
constexpr size_t kMostCells = 256;

/// Why an implementation cannot run for any arguments.
struct Refusal {
  Reason reason = Reason::none;
  std::string text = {};
};

Refusal refusal_of(const registry::ImplementationRecord& implementation,
                   const policy::PolicyView::Drop& drop, bool open) {
  if (drop.reason != Reason::none) return {drop.reason, "by " + policy::describe(drop.by)};
  Refusal refusal;
  refusal.reason = obstacle_to_run(implementation, refusal.text, registry::Probe::known);
  if (refusal.reason != Reason::none) return refusal;
  if (open) return {Reason::health_open, "circuit breaker open"};
  return {};
}

bool says_something(const policy::PolicyLayer& layer, const registry::RegistrySnapshot& registry) {
  return !layer.policy().rules.empty() ||
         std::ranges::any_of(registry.operators,
                             [&](const auto& op) { return layer.hash_for(op.first) != 0; });
}

void add_policy(Core& core, const registry::RegistrySnapshot& registry, RuntimeState& state) {
  const PolicyState policy = core.sources().state();
  state.policy_name = policy.name;
  state.policy_digest = policy.digest;
  state.policy_origin = policy.origin;
  state.policy_version = policy.version;
  state.policy_rules = policy.rules;
  state.policies_refused = policy.refused;
  state.last_refusal = policy.last_refusal.message();
  const std::shared_ptr<const policy::PolicySet> set = core.sources().set();
  for (const policy::PolicyLayerPtr& layer : set->layers) {
    if (!says_something(*layer, registry)) continue;
    state.sources.push_back(
        {std::string(name_of(layer->source())), layer->name(), layer->policy().rules.size()});
  }
}

BackendPageState backend_state(const registry::Backend& backend, const BackendHealth& health) {
  if (!backend.enabled()) return {backend.name(), "off", ""};
  if (backend.lost_by_fork()) return {backend.name(), "lost by a fork", ""};
  if (std::string why = backend.unavailable_reason(); !why.empty()) {
    return {backend.name(), "unavailable", std::move(why)};
  }
  return {backend.name(), std::string(name_of(health.health)), health.reason};
}

/// Implementations whose breaker is open for all calls.
using Shut = std::map<std::string, bool, std::less<>>;

Shut add_health(Core& core, const registry::RegistrySnapshot& registry, RuntimeState& state) {
  HealthReport report = core.health_report();
  state.health = name_of(report.verdict);
  state.without_candidates = std::move(report.without_candidates);
  for (const BackendHealth& health : report.backends) {
    const auto backend = registry.backends.find(health.name);
    if (backend != registry.backends.end()) {
      state.backends.push_back(backend_state(*backend->second, health));
    }
  }
  for (std::string& name : core.plugins().waiting_backends()) {
    state.backends.push_back({std::move(name), "not loaded", "no call has needed it yet"});
  }
  std::ranges::sort(state.backends, {}, &BackendPageState::name);
  Shut shut;
  for (const BreakerInfo& info : report.breakers) {
    if (info.state == BreakerState::closed) continue;
    state.breakers.push_back({info.implementation, info.what, std::string(name_of(info.state)),
                              info.why, info.openings});
    const bool rests = info.state != BreakerState::half_open && info.what == "all calls";
    if (rests) shut[info.implementation] = true;
  }
  return shut;
}

using Counts = std::map<std::string, dispatch::ImplementationStats, std::less<>>;

OperatorPageState operator_state(const std::shared_ptr<const registry::OperatorRecord>& op,
                                 const policy::PolicySet& policies, const Counts& counts,
                                 const Shut& shut) {
  policy::PolicyView view;
  policy::OperatorPolicy::compile(policies, nullptr, op)->assume("", view);
  OperatorPageState state{op->schema->name, {}};
  for (size_t i = 0; i < op->implementations.size(); ++i) {
    const registry::ImplementationRecord& from = *op->implementations[i];
    ImplementationPageState own;
    own.id = from.id;
    own.kind = name_of(from.kind);
    own.priority = from.priority;
    if (const auto counted = counts.find(from.id); counted != counts.end()) {
      const dispatch::ImplementationStats& stats = counted->second;
      own.calls = stats.calls;
      own.stood_in = stats.stood_in;
      own.declined = stats.declined;
      own.failed = stats.failed;
      own.resource = stats.resource;
      own.decided_each_time = stats.decided_each_time;
      own.instance = dispatch::describe_instance(stats.instance);
    }
    Refusal refusal = refusal_of(from, view.drops[i], shut.contains(from.id));
    own.code = refusal.reason == Reason::none ? "" : code_of(refusal.reason);
    own.reason = std::move(refusal.text);
    state.implementations.push_back(std::move(own));
  }
  return state;
}

void add_operators(Core& core, const registry::RegistrySnapshot& registry, const Shut& shut,
                   RuntimeState& state) {
  Counts counts;
  for (dispatch::ImplementationStats& each : core.engine().stats()) {
    std::string id = each.id;
    counts.emplace(std::move(id), std::move(each));
  }
  const std::shared_ptr<const policy::PolicySet> policies = core.sources().set();
  for (const auto& [name, op] : registry.operators) {
    if (op->implementations.empty()) continue;
    state.operators.push_back(operator_state(op, *policies, counts, shut));
  }
}

ChoicePageState choice_state(const dispatch::Engine::DecidedClass& decided) {
  ChoicePageState state;
  state.op = decided.op->schema->name;
  state.when = policy::to_string(*decided.op->schema, decided.when);
  for (const registry::ImplementationPtr& each : decided.order) state.accepted.push_back(each->id);
  const std::string& wanted = decided.implementation->id;
  if (state.accepted.empty() || state.accepted.front() != wanted) state.rests = wanted;
  state.note = decided.note;
  state.generation = decided.generation;
  return state;
}

void add_choices(Core& core, RuntimeState& state) {
  std::map<const registry::OperatorRecord*, size_t> of_operator;
  for (const dispatch::Engine::DecidedClass& decided : core.engine().decided()) {
    if (++of_operator[decided.op.get()] > kMostChoices) {
      ++state.left_out;
    } else {
      state.choices.push_back(choice_state(decided));
    }
  }
  std::ranges::sort(state.choices, {}, [](const ChoicePageState& each) {
    return std::pair<std::string_view, std::string_view>(each.op, each.when);
  });
}

/// "y=bf16 x=bf16"
std::string tensors_of(const schema::Schema& schema, const dispatch::SampledCell& cell) {
  std::string text;
  for (size_t i = 0; i < cell.types.size(); ++i) {
    if (cell.types[i] == schema::kAbsent) continue;
    text += base::concat(text.empty() ? "" : " ", schema.args[i].name, "=",
                         name_of(DType::from_packed(static_cast<uint32_t>(cell.types[i]))));
  }
  return text;
}

/// "H=4096 rows=16"
std::string dims_of(const schema::Schema& schema, const dispatch::SampledCell& cell) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i < cell.dims.size(); ++i) {
    if (cell.dims[i] == schema::kAbsent) continue;
    const std::string_view name =
        i < schema.dims.size() ? std::string_view(schema.dims[i]) : std::string_view("rows");
    sizes.push_back(base::concat(name, "=", cell.dims[i]));
  }
  std::ranges::sort(sizes);
  return base::join(sizes, " ");
}

void add_cells(Core& core, RuntimeState& state) {
  for (const dispatch::Engine::SampledOperator& op : core.engine().sampled_cells()) {
    for (const dispatch::SampledCell& cell : op.cells) {
      state.cells.push_back({op.schema->name, tensors_of(*op.schema, cell),
                             dims_of(*op.schema, cell), cell.threads, cell.calls, cell.time_ns,
                             cell.error_ns});
    }
  }
  std::ranges::sort(state.cells, [](const CellPageState& a, const CellPageState& b) {
    return std::tie(b.time_ns, a.op, a.tensors, a.dims) <
           std::tie(a.time_ns, b.op, b.tensors, b.dims);
  });
  if (state.cells.size() > kMostCells) state.cells.resize(kMostCells);
}

}  // namespace

RuntimeState state_of(Core& core) {
  RuntimeState state;
  state.version = OPMUX_VERSION;
  state.mode = name_of(core.files().mode().kind);
  state.frozen = core.frozen();
  state.disabled = core.environment().disable;
  state.generation = core.engine().generation();
  const registry::RegistrySnapshotPtr registry = core.registry().snapshot();
  add_policy(core, *registry, state);
  const Shut shut = add_health(core, *registry, state);
  add_operators(core, *registry, shut, state);
  add_choices(core, state);
  add_cells(core, state);
  state.proposals = core.proposals();
  return state;
}

}  // namespace opmux::runtime

namespace opmux {

Status write_state_page(const Runtime& runtime, const std::string& path) {
  return base::or_out_of_memory([&]() -> Status {
    status_file::StatusPage page;
    page.mark = status_file::own_mark();
    page.process.pid = ::getpid();
    page.process.started = status_file::own_start(page.mark);
    page.process.name = status_file::own_name();
    page.process.runtimes.assign(1, runtime::state_of(runtime.core()));
    page.process.runtimes.front().since = page.process.started;
    const std::string body = status_file::status_file_body(page);
    const std::string text = status_file::status_file_text(body, runtime::system_ms(), 1);
    if (base::replace_file(path, text, 0600)) return {};
    return {Code::failed, "state_page.file",
            base::concat("cannot write ", path, ": ", std::strerror(errno))};
  });
}

}  // namespace opmux
