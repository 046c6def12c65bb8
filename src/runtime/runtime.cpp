#include <opmux/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/memory.hpp"
#include "base/system/process.hpp"
#include "base/text.hpp"
#include "dispatch/call/call.hpp"
#include "policy/policy_check.hpp"
#include "policy/policy_diff.hpp"
#include "policy/rules/origin_report.hpp"
#include "policy/rules/unknown_operators.hpp"
#include "registry/implementation/can_run.hpp"
#include "registry/registry.hpp"
#include "runtime/core.hpp"
#include "schema/standard_schemas.hpp"

namespace opmux {
namespace {

ImplementationInfo info_of(const registry::ImplementationRecord& implementation) {
  const registry::Backend& backend = *implementation.backend;
  ImplementationInfo info{implementation.id,
                          backend.name(),
                          std::string(name_of(implementation.kind)),
                          implementation.vendor,
                          implementation.priority,
                          true,
                          "",
                          0};
  info.flags = implementation.flags;
  info.device_type = backend.device_type();
  info.own_memory = backend.device() != nullptr;
  info.needs_instance = implementation.needs_instance;
  for (const registry::CompiledHint& each : implementation.hints) info.hints.push_back(each.hint);
  info.available = obstacle_to_run(implementation, info.reason) == registry::Reason::none;
  return info;
}

std::string summary_of(std::string_view op) {
  for (const schema::StandardSchema& schema : schema::standard_schemas()) {
    if (schema.name == op) return std::string(schema.summary);
  }
  return {};
}

/// `open`: also finds a backend that was not opened because it is switched off.
Result<std::shared_ptr<registry::Backend>> find_backend(runtime::Core& core, std::string_view name,
                                                        bool open) {
  core.plugins().warm_up();
  registry::RegistrySnapshotPtr snapshot = core.registry().snapshot();
  auto found = snapshot->backends.find(name);
  if (found == snapshot->backends.end() && open && core.plugins().open_backend(name)) {
    snapshot = core.registry().snapshot();
    found = snapshot->backends.find(name);
  }
  if (found != snapshot->backends.end()) return found->second;
  const std::vector<std::string> off = core.plugins().switched_off();
  if (std::ranges::find(off, name) != off.end()) {
    return Status(Code::unavailable, "backend.disabled",
                  "backend " + std::string(name) + " is switched off and was not opened");
  }
  std::vector<std::string> names;
  for (const auto& entry : snapshot->backends) names.push_back(entry.first);
  return Status(Code::not_found, "registry.unknown_backend",
                "there is no backend '" + std::string(name) + "'" + base::suggestion(name, names));
}

}  // namespace

Runtime::Runtime(detail::Owned<runtime::Core> core) : core_(std::move(core)) {}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;
Runtime::~Runtime() = default;

Result<Runtime> Runtime::create(const Options& options) {
  return base::or_out_of_memory([&]() -> Result<Runtime> {
    auto core = runtime::Core::create(options);
    if (!core) return core.error();
    return Runtime(std::move(*core));
  });
}

Result<Operator> Runtime::op(std::string_view name) const {
  return base::or_out_of_memory([&]() -> Result<Operator> { return core_->op(name); });
}

dispatch::OperatorSlot* Runtime::find(std::string_view name) const noexcept {
  return core_->engine().find(name);
}

Status Runtime::define(std::string_view schema, const DefineOptions& options) {
  return base::or_out_of_memory([&]() -> Status {
    return core_->registry().define(schema, {.data_checked = options.data_checked});
  });
}

Status Runtime::define(std::span<const Definition> operators) {
  return base::or_out_of_memory(
      [&]() -> Status { return core_->implement({}, operators).error(); });
}

Result<Registration> Runtime::implement(const Implementation& implementation) {
  return base::or_out_of_memory(
      [&]() -> Result<Registration> { return core_->implement(implementation); });
}

Result<Registration> Runtime::implement(std::span<const Implementation> implementations,
                                        std::span<const Definition> operators) {
  return base::or_out_of_memory(
      [&]() -> Result<Registration> { return core_->implement(implementations, operators); });
}

Status Runtime::set_rank(std::optional<int> rank, std::optional<int> tp_size) {
  return base::or_out_of_memory([&]() -> Status { return core_->set_rank(rank, tp_size); });
}

Status Runtime::use_openmp() {
  return base::or_out_of_memory([&]() -> Status { return core_->use_openmp(); });
}
void Runtime::tick_ns(int64_t now) {
  core_->tick(static_cast<uint64_t>(std::max<int64_t>(now, 0)));
}
Status Runtime::set_selector(const Selector& selector) {
  return base::or_out_of_memory(
      [&]() -> Status { return core_->set_selector(std::make_shared<const Selector>(selector)); });
}
Status Runtime::set_selector(
    detail::Function<std::optional<size_t>(std::span<const Candidate>)> pick) {
  return base::or_out_of_memory([&]() -> Status {
    Selector selector;
    if (pick) {
      selector.pick = [pick = std::move(pick)](const Selection& asked) {
        return pick(asked.accepted);
      };
    }
    return set_selector(selector);
  });
}
Status Runtime::reset_selector() {
  return base::or_out_of_memory([&]() -> Status { return core_->set_selector(nullptr); });
}

void Runtime::end_thread() {
  core_->shadow().stop();
  core_->maintenance().stop();
}

Tag Runtime::tag(std::string_view word) { return {core_->tag(word)}; }
uint64_t Runtime::generation() const noexcept { return core_->engine().generation(); }
bool Runtime::disabled() const noexcept { return core_->environment().disable; }

std::vector<OperatorInfo> Runtime::list() const {
  core_->plugins().warm_up();
  std::vector<OperatorInfo> all;
  const std::vector<dispatch::ImplementationStats> counted = core_->engine().stats();
  const std::map<std::string, BreakerState> breakers = core_->health().states();
  const registry::RegistrySnapshotPtr snapshot = core_->registry().snapshot();
  for (const auto& [name, record] : snapshot->operators) {
    OperatorInfo op{name, record->schema->canonical(), summary_of(name), {}};
    for (const auto& implementation : record->implementations) {
      op.implementations.push_back(info_of(*implementation));
      const auto at =
          std::ranges::find(counted, implementation->id, &dispatch::ImplementationStats::id);
      if (at != counted.end()) {
        op.implementations.back().calls = at->calls;
        op.implementations.back().instance = at->instance;
      }
      const auto state = breakers.find(implementation->id);
      op.implementations.back().breaker =
          name_of(state == breakers.end() ? BreakerState::closed : state->second);
    }
    all.push_back(std::move(op));
  }
  return all;
}

std::vector<CallStats> Runtime::stats() const {
  std::vector<CallStats> all;
  for (const dispatch::ImplementationStats& s : core_->engine().stats()) {
    all.push_back({s.id, s.calls, s.declined, s.failed, s.resource, s.invalid_argument,
                   s.device_lost, s.stood_in, s.packed_bytes, s.decided_each_time});
  }
  return all;
}

std::vector<SettingInfo> Runtime::settings() const {
  std::vector<SettingInfo> all;
  const auto add = [&](const std::vector<policy::Setting>& settings) {
    for (const policy::Setting& s : settings) all.push_back({s.key, s.value, s.origin});
  };
  std::vector<policy::Setting> effective = policy::effective_settings(*core_->sources().set());
  const registry::RegistrySnapshotPtr present = core_->registry().snapshot();
  for (policy::Setting& each : effective) {
    constexpr std::string_view kOrder = "order.";
    if (!each.key.starts_with(kOrder)) continue;
    const std::string why = policy::why_unknown(each.key.substr(kOrder.size()), *present);
    if (!why.empty()) each.origin += "; " + why;
  }
  add(effective);
  add(core_->files().settings());
  add(core_->trust_settings());
  add(policy::process_settings(core_->environment()));
  add(core_->rank_settings());
  return all;
}

Status PolicyControl::set(const Policy& policy) {
  return base::or_out_of_memory([&]() -> Status {
    const registry::RegistrySnapshotPtr present = core_->registry().snapshot();
    if (Status unknown = policy::check_operators(policy, *present); !unknown.ok()) return unknown;
    return core_->sources().set_code(policy);
  });
}
Policy PolicyControl::get() const { return core_->sources().code(); }
Status PolicyControl::reset() {
  return base::or_out_of_memory([&]() -> Status { return core_->sources().set_code({}); });
}
Status PolicyControl::load(std::string_view text, std::string_view name) {
  return base::or_out_of_memory([&]() -> Status {
    return core_->files().load({{std::string(name), std::string(text)}}, std::string(name),
                               "load_policy");
  });
}
Status PolicyControl::rollback() {
  return base::or_out_of_memory([&]() -> Status { return core_->sources().rollback(); });
}
PolicyState PolicyControl::state() const { return core_->sources().state(); }
void PolicyControl::add_validator(PolicyValidator validator) {
  core_->sources().add_validator(std::move(validator));
}
void PolicyControl::on_change(PolicyListener listener) {
  core_->sources().on_change(std::move(listener));
}
Result<PolicyCheck> PolicyControl::check(std::string_view text, std::string_view name,
                                         const PolicyCheckOptions& options) const {
  return base::or_out_of_memory([&]() -> Result<PolicyCheck> {
    const policy::PolicyStore& sources = core_->sources();
    if (options.machine.empty()) core_->plugins().warm_up();
    return policy::check_policy(text, name, options, *sources.set(), core_->registry().snapshot(),
                                sources.utc(),
                                [&](const Policy& next) { return sources.approve(next); });
  });
}
Result<std::vector<ChoiceChange>> PolicyControl::compare(std::string_view from,
                                                         std::string_view from_name,
                                                         std::string_view to,
                                                         std::string_view to_name) const {
  return base::or_out_of_memory([&]() -> Result<std::vector<ChoiceChange>> {
    core_->plugins().warm_up();
    const auto set_of = [&](std::string_view text, std::string_view name) {
      return core_->files().set_with({{std::string(name), std::string(text)}}, std::string(name));
    };
    const auto before = set_of(from, from_name);
    if (!before) return before.error();
    const auto after = set_of(to, to_name);
    if (!after) return after.error();
    std::vector<ChoiceChange> changes;
    for (policy::EffectChange& each :
         policy::compare(*before, *after, *core_->registry().snapshot())) {
      changes.push_back({std::move(each.op), each.when.empty() ? "always" : std::move(each.when),
                         std::move(each.from), std::move(each.to), std::move(each.because)});
    }
    return changes;
  });
}

Lockfile LockfileControl::current() const { return core_->lock(); }
Result<Lockfile> LockfileControl::freeze() {
  return base::or_out_of_memory([&]() -> Result<Lockfile> { return core_->freeze(); });
}
Status LockfileControl::freeze(const Lockfile& lock, std::string_view name) {
  return base::or_out_of_memory([&]() -> Status { return core_->freeze(lock, name); });
}
Status LockfileControl::check(const Lockfile& lock, std::string_view name) const {
  return base::or_out_of_memory([&]() -> Status { return core_->check_lock(lock, name); });
}
bool LockfileControl::frozen() const noexcept { return core_->frozen(); }

std::vector<TuningBundle> TuningControl::bundles() const {
  std::vector<TuningBundle> bundles;
  for (const tune::FoundBundle& each : core_->tuning().found()) {
    const tune::RowCounts& counts = each.counts;
    bundles.push_back({each.path,
                       std::string(place_name(each.place)),
                       each.digest,
                       each.problem,
                       each.signer,
                       each.rows,
                       {counts.used, counts.aged, counts.foreign, counts.stale, counts.damaged}});
  }
  return bundles;
}
std::vector<TuningProposal> TuningControl::proposals() const { return core_->proposals(); }

void TuningControl::check() const {
  core_->plugins().warm_up();
  const registry::RegistrySnapshotPtr snapshot = core_->registry().snapshot();
  for (const auto& [name, record] : snapshot->operators) (void)core_->tuning().rows_of(*record);
  core_->tuning().log_problems();
}

Status TuningControl::reload() {
  return base::or_out_of_memory([&]() -> Status { return core_->reload_tuning(); });
}
Status TuningControl::sample_all_calls(bool on) {
  return base::or_out_of_memory([&]() -> Status {
    core_->engine().sample_all_calls(on);
    return {};
  });
}

std::vector<PluginInfo> PluginControl::list() const { return core_->plugins().report(); }
void PluginControl::warm_up() { core_->plugins().warm_up(); }
Result<PluginInfo> PluginControl::load(const std::string& path) {
  return base::or_out_of_memory([&]() -> Result<PluginInfo> {
    if (core_->frozen()) return registry::frozen("load");
    return core_->plugins().load_file(path);
  });
}
Result<PluginInfo> PluginControl::load(opmux_plugin_query_fn query) {
  return base::or_out_of_memory([&]() -> Result<PluginInfo> {
    if (core_->frozen()) return registry::frozen("load");
    if (query == nullptr) {
      return Status(Code::invalid_argument, "plugin.no_query", "the query function is null");
    }
    return core_->plugins().load_static(query);
  });
}
Status PluginControl::enable_backend(std::string_view name, bool on) {
  return base::or_out_of_memory([&]() -> Status {
    const auto backend = find_backend(*core_, name, on && !core_->frozen());
    if (!backend && !on && backend.error().reason() == "backend.disabled") return {};
    if (!backend) return backend.error();
    if (core_->frozen()) return registry::frozen("enable_backend");
    (*backend)->set_enabled(on);
    core_->engine().backend_changed(**backend);
    return {};
  });
}
Status PluginControl::set_architecture(Device device, std::string_view architecture) {
  return base::or_out_of_memory([&]() -> Status {
    if (architecture.empty() || !registry::dotted_numbers(architecture)) {
      return {
          Code::invalid_argument, "device.architecture",
          base::concat("'", architecture, "' is not an architecture: numbers with dots between ",
                       "them, such as 8.6")};
    }
    if (core_->frozen()) return registry::frozen("set_architecture");
    core_->registry().snapshot()->architectures->set(device, architecture);
    core_->engine().device_changed(device.type);
    return {};
  });
}
Result<DeviceAccess> PluginControl::device_access(std::string_view name) const {
  return base::or_out_of_memory([&]() -> Result<DeviceAccess> {
    const auto backend = find_backend(*core_, name, false);
    if (!backend) return backend.error();
    const registry::Backend& found = **backend;
    if (found.device() == nullptr) {
      return Status(Code::not_found, "device.none",
                    "backend " + found.name() + " uses host memory and has no device functions");
    }
    const bool forked = found.lost_by_fork();
    if (forked || !found.available()) {
      return Status(Code::unsupported, "device.unavailable",
                    "backend " + found.name() + ": " +
                        (forked ? "lost by a fork" : found.unavailable_reason()));
    }
    found.mark_used();
    return DeviceAccess(*backend);
  });
}

HealthReport HealthControl::report() const { return core_->health_report(); }
void HealthControl::on_breaker(BreakerListener listener) {
  core_->health().on_breaker(std::move(listener));
}
Status HealthControl::force_breaker(std::string_view implementation, BreakerForce what) {
  return base::or_out_of_memory(
      [&]() -> Status { return core_->health().force(implementation, what); });
}
std::vector<DeviceError> HealthControl::device_errors() const {
  return core_->health().view().devices().marks();
}
std::vector<Device> HealthControl::lost_devices() const {
  return core_->health().view().devices().fatal_devices();
}
Quarantine HealthControl::quarantine() const {
  return core_->quarantine().list(*core_->registry().snapshot(), core_->plugins().waiting_parts());
}
Result<size_t> HealthControl::clear_quarantine(std::string_view implementation) {
  return base::or_out_of_memory([&]() -> Result<size_t> {
    const registry::RegistrySnapshotPtr snapshot = core_->registry().snapshot();
    auto cleared = core_->quarantine().clear(implementation, *snapshot);
    if (!cleared || *cleared == 0) return cleared;
    for (const auto& [name, backend] : snapshot->backends)
      core_->engine().backend_changed(*backend);
    return cleared;
  });
}
CrashJournalState HealthControl::crash_journal() const { return core_->quarantine().state(); }

namespace {

// A child forked at any moment finds it either complete or null. Lives until the process ends.
base::ForkMutex default_mutex;
std::atomic<Runtime*> default_instance{nullptr};

}  // namespace

Runtime& default_runtime() {
  if (Runtime* made = default_instance.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(default_mutex);
  if (default_instance.load() == nullptr) {
    default_instance.store(new Runtime(Runtime::create().value()), std::memory_order_release);
  }
  return *default_instance.load();
}

void reset_default_runtime() {
  const std::lock_guard lock(default_mutex);
  delete default_instance.exchange(nullptr);
}

std::string_view features() noexcept {
  return
#ifdef OPMUX_YAML
      "policy_files"
#endif
#if defined(OPMUX_YAML) && defined(OPMUX_WITH_SIGNATURES)
      " "
#endif
#ifdef OPMUX_WITH_SIGNATURES
      "signatures"
#endif
      "";
}

}  // namespace opmux
