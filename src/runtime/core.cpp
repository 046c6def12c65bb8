#include "runtime/core.hpp"

#include <algorithm>
#include <filesystem>

#include "base/files.hpp"
#include "base/tag_table.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "policy/rules/policy_entry.hpp"
#include "registry/implementation_id.hpp"
#include "registry/native_kernel.hpp"
#include "runtime/registration.hpp"
#include "runtime/status_job.hpp"
#include "schema/standard_schemas.hpp"

namespace opmux::runtime {
namespace {

EventSink sink_of(const Options& options, const policy::Environment& environment) {
  if (options.sink) return options.sink;
  if (environment.log.empty()) return {};
  Level least = Level::info;
  for (const Level level : {Level::debug, Level::info, Level::warning, Level::error}) {
    if (environment.log == name_of(level)) least = level;
  }
  return base::stderr_sink(least);
}

/// The configured thread limit; 0 if neither options nor environment set one.
int thread_limit_of(const Options& options, const policy::Environment& environment) {
  return options.threads > 0 ? options.threads : environment.num_threads;
}

CrashJournal journal_of(const Options& options, const policy::Environment& environment) {
  if (options.state.crash_journal != CrashJournal::off) return options.state.crash_journal;
  for (const CrashJournal wish : {CrashJournal::on, CrashJournal::with_handler}) {
    if (environment.crash_journal == name_of(wish)) return wish;
  }
  return CrashJournal::off;
}

/// Deactivates rules when they expire.
class LapseJob final : public base::Maintenance::Job {
 public:
  LapseJob(policy::PolicyStore& sources, std::function<std::chrono::sys_seconds()> utc)
      : sources_(sources), utc_(std::move(utc)) {}
  uint64_t run(uint64_t now_ns) override {
    // The system time may be changed, so this checks at least once a minute.
    constexpr std::chrono::seconds kAtMost{60};
    const auto next = sources_.lapse();
    const auto left = next ? std::clamp(*next - utc_(), std::chrono::seconds(0), kAtMost) : kAtMost;
    return now_ns + static_cast<uint64_t>(std::chrono::nanoseconds(left).count());
  }

 private:
  policy::PolicyStore& sources_;
  std::function<std::chrono::sys_seconds()> utc_;
};

std::chrono::sys_seconds system_utc() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::vector<policy::Variable> variables_of(const Options& options) {
  if (!options.environment) return policy::process_variables();
  std::vector<policy::Variable> variables;
  for (const auto& [name, value] : *options.environment) variables.push_back({name, value});
  return variables;
}

}  // namespace

Core::Core(const Options& options, policy::Environment environment, const RecordOptions& record)
    : environment_(std::move(environment)),
      utc_(options.sources.utc ? options.sources.utc : &system_utc),
      log_(sink_of(options, environment_)),
      quarantine_({.log = &log_, .utc = utc_}),
      health_({.clock = &clock_,
               .log = &log_,
               .engine = [this]() -> dispatch::Engine& { return engine_; },
               .maintenance = [this]() -> base::Maintenance& { return maintenance_; },
               .registry = [this] { return registry_.snapshot(); },
               .policies = [this] { return sources_.set(); }}),
      recorder_(
          {.log = &log_, .policy_hash = [this] { return dispatch::policy_hash(surroundings()); }},
          record),
      shadow_({.clock = &clock_,
               .log = &log_,
               .engine = [this]() -> dispatch::Engine& { return engine_; },
               .breaker_clock = &health_.clock(),
               .health = &health_.view(),
               .registry = [this] { return registry_.snapshot(); },
               .own_thread = options.sources.own_thread}),
      packs_(std::make_shared<dispatch::PackStore>(options.max_packed_bytes)),
      thread_limit_(thread_limit_of(options, environment_)),
      threads_(thread_limit_ > 0 ? thread_limit_ : base::ThreadPool::default_threads()),
      engine_({.log = &log_,
               .health = &health_.view(),
               .tuning = nullptr,
               .clock = &clock_,
               .scope_layer = [this](uint32_t serial) { return scopes_.find(serial); },
               .threads = &threads_,
               .on_cold_path = [this] { maintenance_.revive(); },
               .load_waiting = [this](dispatch::OperatorSlot& slot) { plugins_.load_for(slot); },
               .on_failed = on_failed(),
               .disabled = environment_.disable,
               .taps = &shadow_}),
      listener_(
          {.log =
               [this](int level, std::string_view text) {
                 log_.tell(static_cast<Level>(level), "plugin.log", "", "", text,
                           [&] { return std::string(text); });
               },
           .device_error = [this](Device device, void* stream,
                                  int32_t code) { note_device_error(device, stream, code); }}),
      sources_({.registry = [this] { return registry_.snapshot(); },
                .publish =
                    [this] {
                      const uint64_t generation = publisher_.publish();
                      plugins_.mark_waiting();
                      return generation;
                    },
                .load_waiting = [this] { plugins_.warm_up(); },
                .log = &log_,
                .utc = utc_,
                .on_expiring = [this] { lapse_in_time(); }}),
      plugins_(registry_, engine_, log_, environment_,
               [this](const plugin::Manifest::Backend& backend, std::string_view op) {
                 return denied(backend, op);
               }),
      files_({.sources = &sources_,
              .maintenance = &maintenance_,
              .log = &log_,
              .registry = [this] { return registry_.snapshot(); }}),
      publisher_(registry_, sources_, quarantine_, shadow_, health_, engine_),
      maintenance_(clock_, options.sources.own_thread) {}

Core::~Core() {
  shadow_.stop();
  maintenance_.stop();
  registry_.set_publisher(nullptr);
}

Result<std::unique_ptr<Core>> Core::create(const Options& options) {
  auto environment = policy::parse_environment(variables_of(options));
  if (!environment) return environment.error();
  const auto record =
      replay::record_options(options.record, environment->record, environment->record_inputs);
  if (!record) return record.error();
  if (!options.state.folder.empty()) environment->state_dir = options.state.folder;
  std::unique_ptr<Core> core(new Core(options, std::move(*environment), *record));
  if (Status status = core->start(options); !status.ok()) return status;
  return core;
}

std::function<void(const dispatch::FailedCall&)> Core::on_failed() {
  if (!recorder_.on()) return {};
  return [this](const dispatch::FailedCall& call) { recorder_.note(call); };
}

Status Core::start(const Options& options) {
  if (recorder_.on()) shadow_.set_observer(&recorder_);
  quarantine_.start(environment_.state_dir, journal_of(options, environment_));
  for (const schema::StandardSchema& schema : schema::standard_schemas()) {
    if (Status status = registry_.define(schema.text, {true, schema.data_checked, schema.integer});
        !status.ok()) {
      return status;
    }
  }
  plugins_.start(options.plugins, options.backends);
  if (Status status = apply_backend_switches(); !status.ok()) return status;
  if (Status status =
          sources_.set_at_start(policy::Source::environment, environment_.policy, "environment");
      !status.ok()) {
    return status;
  }
  const auto mode = policy::mode_of(options.sources, environment_);
  if (!mode) return mode.error();
  if (Status status = files_.start(*mode, options.sources); !status.ok()) return status;
  registry_.set_publisher(&publisher_);
  publish();
  plugins_.mark_waiting();
  if (Status status = sources_.set_code(options.policy); !status.ok()) return status;
  files_.follow();
  const bool locked = mode->kind == policy::Mode::Kind::locked && options.sources.freeze_at_start;
  if (Status status = locked ? freeze().error() : Status(); !status.ok()) return status;
  if (options.state.state_page || environment_.state_page) {
    maintenance_.add(status_file_job(*this, base::run_folder(environment_.state_dir)));
  }
  return {};
}

void Core::lapse_in_time() {
  if (lapsing_.exchange(true)) return;
  maintenance_.add([this] { return std::make_unique<LapseJob>(sources_, utc_); });
}

Status Core::apply_backend_switches() {
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  for (const auto& [name, on] : environment_.backends) {
    const auto found = snapshot->backends.find(name);
    if (found != snapshot->backends.end()) {
      found->second->set_enabled(on);
      continue;
    }
    std::vector<std::string> names = plugins_.waiting_backends();
    if (std::ranges::find(names, name) != names.end()) continue;
    for (const auto& entry : snapshot->backends) names.push_back(entry.first);
    return {Code::invalid_argument, "environment.backend",
            "OPMUX_BACKEND_* names backend '" + name + "', which does not exist" +
                base::suggestion(name, names)};
  }
  return {};
}

std::vector<std::string> Core::suspects(Device device, const void* stream) {
  std::vector<std::string> ids;
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  for (const auto& [name, backend] : snapshot->backends) {
    if (backend->history() == nullptr) continue;
    for (const uint32_t number : backend->history()->latest(device, stream)) {
      const registry::ImplementationRecord* found = snapshot->find(number);
      if (found != nullptr && std::ranges::find(ids, found->id) == ids.end()) {
        ids.push_back(found->id);
      }
    }
  }
  return ids;
}

void Core::note_device_error(Device device, const void* stream, int32_t code) {
  std::vector<std::string> ids = suspects(device, stream);
  const std::string what = name_of(device) + " reported error " + std::to_string(code);
  health_.view().devices().mark(device, code, ids);
  log_.tell(Level::error, "device.error", "", "", what, [&] {
    std::string text = what + " after the call had returned";
    for (size_t i = 0; i < ids.size(); ++i)
      text += (i == 0 ? "; most recent on its stream: " : ", ") + ids[i];
    return text;
  });
}

void Core::tick(uint64_t now_ns) {
  health_.tick(now_ns);
  maintenance_.tick(now_ns);
  shadow_.tick(now_ns);
}

Status Core::use_openmp() {
  const base::OpenMp* const found = base::loaded_openmp();
  if (found == nullptr) {
    return {Code::unsupported, "threads.openmp",
            "no supported OpenMP runtime (libgomp) is loaded, or the process was forked; calls "
            "keep using the thread pool of this runtime"};
  }
  threads_.use_openmp(*found, thread_limit_);
  return {};
}

Result<Registration> Core::implement(const Implementation& implementation) {
  auto id = registry::parse_implementation_id(implementation.id);
  if (!id) return id.error();
  registry::Batch batch;
  batch.backend.name = id->provider;
  batch.backend.kind = implementation.kind;
  batch.backend.vendor = implementation.vendor;
  batch.implementations.push_back(registry::draft_of(implementation, *id));
  registry::BatchResult result = registry_.add(batch, false);
  if (!result.refused.empty()) return result.refused.front().why;
  return Registration(std::make_unique<Registration::Held>(*this, std::move(result.added)));
}

uint32_t Core::tag(std::string_view word) { return base::tag_number(word); }

bool Core::denied(const plugin::Manifest::Backend& backend, std::string_view op) {
  const std::shared_ptr<const policy::PolicySet> set = sources_.set();
  return std::ranges::all_of(backend.implementations, [&](const auto& implementation) {
    if (implementation.op != op) return true;
    const std::string id = base::concat(op, "/", backend.name, ".", implementation.variant);
    const auto kind = static_cast<Kind>(backend.kind);
    return std::ranges::any_of(set->layers, [&](const policy::PolicyLayerPtr& layer) {
      return policy::denies(*layer, {id, kind, backend.vendor});
    });
  });
}

bool Core::backend_denied(const registry::Backend& backend) {
  // A point has no operator, so only denials that are not specific to an operator apply. They are
  // evaluated for a made-up implementation id of this backend.
  const std::string id = "point/" + backend.name() + ".answer";
  const std::shared_ptr<const policy::PolicySet> set = sources_.set();
  for (const policy::PolicyLayerPtr& layer : set->layers) {
    if (policy::denies(*layer, {id, backend.kind(), backend.vendor()})) return true;
  }
  return false;
}

}  // namespace opmux::runtime
