#include "runtime/core.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/no_callback.hpp"
#include "base/system/files.hpp"
#include "base/tag_table.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/trust/signature.hpp"
#include "policy/policy_shortage.hpp"
#include "policy/rules/policy_entry.hpp"
#include "policy/rules/token.hpp"
#include "policy/rules/unknown_operators.hpp"
#include "registry/implementation/implementation_id.hpp"
#include "registry/implementation/native_kernel.hpp"
#include "runtime/jobs/status_job.hpp"
#include "runtime/registration.hpp"
#include "schema/standard_schemas.hpp"

namespace opmux::runtime {
namespace {

/// The lowest level that OPMUX_LOG asks for.
Level level_of(const policy::Environment& environment) {
  for (const Level level : {Level::debug, Level::info, Level::warning, Level::error}) {
    if (environment.log == name_of(level)) return level;
  }
  return Level::info;
}

/// The lowest level that is logged. A sink of the program gets every event, because only the
/// program knows which of them it uses.
Level least_level(const Options& options, const policy::Environment& environment) {
  return options.sink ? Level::debug : level_of(environment);
}

EventSink sink_of(const Options& options, const policy::Environment& environment) {
  if (environment.log.empty()) return options.sink;
  EventSink printed = base::stderr_sink(level_of(environment));
  if (!options.sink) return printed;
  return [given = options.sink, printed = std::move(printed)](const Event& event) {
    given(event);
    printed(event);
  };
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

std::chrono::sys_seconds system_utc() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::function<std::chrono::sys_seconds()> utc_of(const Options& options) {
  if (!options.sources.utc) return &system_utc;
  return
      [utc = options.sources.utc] { return std::chrono::sys_seconds(std::chrono::seconds(utc())); };
}

std::vector<policy::Variable> variables_of(const Options& options) {
  if (!options.environment) return policy::process_variables();
  std::vector<policy::Variable> variables;
  for (const auto& [name, value] : *options.environment) variables.push_back({name, value});
  return variables;
}

/// The features of the processor that no pattern matches.
base::CpuFeatures unmasked(const std::vector<std::string>& patterns) {
  base::CpuFeatures features = base::cpu_features();
  std::erase_if(features, [&](const std::string& feature) {
    return std::ranges::any_of(
        patterns, [&](const std::string& each) { return policy::glob_match(each, feature); });
  });
  return features;
}

/// The options with the rules of the trust file where these are stricter.
Options with_rules(Options options, const base::TrustRules& rules) {
  options.policy_trust = std::max(options.policy_trust, rules.policy_trust);
  if (rules.require_confinement) {
    options.plugins.require_confinement = true;
    options.plugins.probe = true;
  }
  return options;
}

}  // namespace

Core::Core(const Options& options, policy::Environment environment, const RecordOptions& record,
           base::TrustRules trust)
    : environment_(std::move(environment)),
      trust_(std::move(trust)),
      log_(sink_of(options, environment_), least_level(options, environment_)),
      maintenance_(clock_, options.sources.own_thread),
      packs_(std::make_shared<dispatch::PackStore>(options.max_packed_bytes)),
      thread_limit_(thread_limit_of(options, environment_)),
      threads_(thread_limit_ > 0 ? thread_limit_ : base::ThreadPool::default_threads()),
      quarantine_(log_, utc_of(options)),
      sources_(registry_, maintenance_, log_, utc_of(options)),
      health_(clock_, log_, maintenance_, registry_, sources_),
      recorder_(log_, registry_, sources_, record),
      shadow_(clock_, log_, registry_, health_.view(), health_.clock(), options.sources.own_thread),
      tuning_(log_),
      dumper_(dumper_of(record)),
      engine_({.log = &log_,
               .health = &health_.view(),
               .tuning = &tuning_,
               .clock = &clock_,
               .scopes = &scopes_,
               .threads = &threads_,
               .maintenance = &maintenance_,
               .failures = recorder_.on() ? &recorder_ : nullptr,
               .disabled = environment_.disable,
               .taps = &taps(),
               .packs = packs_}),
      listener_(
          {.log =
               [this](int level, std::string_view text) {
                 log_.tell(static_cast<Level>(level), "plugin.log", "", "", text,
                           [&] { return std::string(text); });
               },
           .device_error = [this](Device device, void* stream,
                                  int32_t code) { note_device_error(device, stream, code); }}),
      plugins_(registry_, engine_, log_, environment_, sources_, quarantine_),
      publisher_(registry_, sources_, quarantine_, shadow_, health_, engine_),
      files_(sources_, maintenance_, log_, registry_) {
  health_.attach(engine_);
  shadow_.attach(engine_);
  shadow_.tuner().attach(*this);
  engine_.attach(plugins_);
  sources_.attach(publisher_, plugins_);
}

std::unique_ptr<replay::CallDumper> Core::dumper_of(const RecordOptions& record) {
  if (record.dump.empty()) return nullptr;
  // record_options() has parsed it before.
  return std::make_unique<replay::CallDumper>(recorder_, shadow_,
                                              replay::DumpFilter::parse(record.dump).value());
}

const dispatch::TapView& Core::taps() const {
  if (dumper_ != nullptr) return *dumper_;
  return shadow_;
}

Core::~Core() {
  shadow_.stop();
  maintenance_.stop();
  registry_.set_publisher(nullptr);
}

Result<std::unique_ptr<Core>> Core::create(const Options& given,
                                           const base::TrustFile& trust_file) {
  if (Status refused = base::refuse_callback(); !refused.ok()) return refused;
  base::TrustRules trust = base::read_trust_file(trust_file);
  const Options options = with_rules(given, trust);
  auto environment = policy::parse_environment(variables_of(options));
  if (!environment) return environment.error();
  const auto record = replay::record_options(options.record, environment->record,
                                             environment->record_inputs, environment->dump);
  if (!record) return record.error();
  if (!options.state.folder.empty()) environment->state_dir = options.state.folder;
  std::unique_ptr<Core> core(new Core(options, std::move(*environment), *record, std::move(trust)));
  if (Status status = core->start(options); !status.ok()) return status;
  return core;
}

Status Core::start(const Options& options) {
  if (!environment_.of_services.empty()) {
    log_.announce(Level::debug, "environment.service", [&] {
      return base::concat(
          "ignored, because they have the form of the variables that Kubernetes "
          "sets for a service: ",
          base::join(environment_.of_services, ", "));
    });
  }
  if (!trust_.problem.ok()) {
    log_.announce(Level::error, trust_.problem.reason(),
                  [&] { return std::string(trust_.problem.message()); });
  }
  if (recorder_.on()) shadow_.set_observer(&recorder_);
  quarantine_.start(environment_.state_dir, journal_of(options, environment_));
  if (!environment_.cpu_mask.empty()) registry_.set_cpu_features(unmasked(environment_.cpu_mask));
  for (const schema::StandardSchema& schema : schema::standard_schemas()) {
    if (Status status = registry_.define(schema.text, {true, schema.data_checked, schema.integer});
        !status.ok()) {
      return status;
    }
  }
  open_bundles(options.plugins);
  plugins_.start(options.plugins, options.backends);
  if (Status status = apply_backend_switches(); !status.ok()) return status;
  if (Status status =
          sources_.set_at_start(policy::Source::environment, environment_.policy, "environment");
      !status.ok()) {
    return status;
  }
  const auto mode = policy::mode_of(options.sources, environment_);
  if (!mode) return mode.error();
  if (mode->by_found_lockfile) {
    log_.announce(Level::warning, "mode.static", [&] {
      return base::concat(mode->lockfile, " is beside the policy file and sets mode static: the ",
                          "choices of the lockfile are frozen, and changes of ", mode->config,
                          " are not followed. Set the mode to static if that is intended; else "
                          "set another mode or remove the lockfile");
    });
  }
  if (Status status = files_.start(*mode, options.sources, options.policy_trust); !status.ok())
    return status;
  registry_.set_publisher(&publisher_);
  publish();
  if (environment_.rank || environment_.tp_size) {
    engine_.set_ranks(environment_.rank, environment_.tp_size);
  }
  plugins_.mark_waiting();
  if (Status status = sources_.set_code(options.policy); !status.ok()) return status;
  log_unknown_operators(environment_.policy, "OPMUX_PER_OP: ");
  log_unknown_operators(options.policy, "Options::policy: ");
  files_.follow();
  const bool locked = mode->kind == policy::Mode::Kind::locked && options.sources.freeze_at_start;
  if (Status status = locked ? freeze().error() : Status(); !status.ok()) return status;
  if (options.state.state_page || environment_.state_page) {
    maintenance_.add(status_file_job(*this, base::run_folder(environment_.state_dir)));
  }
  return {};
}

void Core::log_unknown_operators(const Policy& policy, std::string_view source) {
  for (const policy::UnknownOperator& each :
       policy::unknown_operators(policy, *registry_.snapshot())) {
    // The program may define the operator later. A near name is more likely a misspelling.
    log_.tell(each.near ? Level::warning : Level::info, "policy.op", each.name, "", source,
              [&] { return base::concat(source, each.text); });
  }
}

void Core::open_bundles(const PluginOptions& options) {
  const std::string store = base::store_folder(environment_.state_dir);
  const std::string installation = base::installation_folder();
  tune::BundlePlaces places{
      .local = store.empty() ? "" : store + "/tuning",
      .given = environment_.tuning,
      .shipped = installation.empty() ? "" : installation + "/../share/opmux/tuning"};
  if (options.trust == Trust::signed_only) {
    places.signer_of = [keyring = options.keyring](const std::string& path,
                                                   const std::string& digest) {
      return plugin::find_signer(path, digest, keyring, base::today(),
                                 plugin::PathRules::of_process());
    };
  }
  tuning_.open(places);
}

Status Core::reload_tuning() {
  if (frozen()) return registry::frozen("tuning().reload()");
  engine_.operators_changed(tuning_.reopen());
  log_.announce(Level::info, "tune.reloaded", [&] {
    uint64_t bundles = 0, rows = 0;
    for (const tune::FoundBundle& each : tuning_.found()) {
      bundles += each.problem.empty() ? 1 : 0;
      rows += each.rows;
    }
    return base::concat("decisions use the measured speeds of ", bundles,
                        bundles == 1 ? " bundle" : " bundles", " with ", rows, " rows");
  });
  return {};
}

Status Core::use_row(const std::string& op, const tune::TuningRow& row) {
  if (frozen()) return registry::frozen("a measured row");
  if (!tuning_.add(op, row))
    return {Code::resource, "tune.rows", base::concat("there is no room for more rows of ", op)};
  engine_.operator_changed(op);
  return {};
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

Result<Operator> Core::op(std::string_view name) {
  if (dispatch::OperatorSlot* slot = engine_.find(name)) return Operator(slot);
  std::vector<std::string> names;
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  for (const auto& entry : snapshot->operators) names.push_back(entry.first);
  return Status(Code::not_found, "dispatch.unknown_operator",
                "there is no operator '" + std::string(name) + "'" + base::suggestion(name, names));
}

namespace {

/// A batch with one implementation and the backend that its id names.
Result<registry::Batch> batch_of(const Implementation& implementation) {
  auto id = registry::parse_implementation_id(implementation.id);
  if (!id) return id.error();
  registry::Batch batch;
  batch.backend.name = id->provider;
  batch.backend.kind = implementation.kind;
  batch.backend.vendor = implementation.vendor;
  batch.backend.default_enable = implementation.default_enable;
  batch.backend.flags = implementation.stream ? OPMUX_BACKEND_STREAM : 0;
  batch.implementations.push_back(registry::draft_of(implementation, *id));
  return batch;
}

}  // namespace

Result<Registration> Core::implement(const Implementation& implementation) {
  const Result<registry::Batch> batch = batch_of(implementation);
  if (!batch) return batch.error();
  // Made first, because nothing may fail after the implementation was added.
  auto held = std::make_unique<Registration::Held>(*this);
  registry::BatchResult result = registry_.add(*batch, false);
  if (!result.refused.empty()) return result.refused.front().why;
  held->implementations = std::move(result.added);
  return Registration(std::move(held));
}

Result<Registration> Core::implement(std::span<const Implementation> implementations,
                                     std::span<const Definition> operators) {
  std::vector<registry::OperatorDraft> definitions;
  definitions.reserve(operators.size());
  for (const Definition& each : operators) {
    definitions.push_back({each.schema, {.data_checked = each.options.data_checked}});
  }
  // Made before the registry is locked, because copying the functions may run code of the program.
  std::vector<registry::Batch> batches;
  batches.reserve(implementations.size());
  for (const Implementation& each : implementations) {
    Result<registry::Batch> batch = batch_of(each);
    if (!batch) return batch.error();
    batches.push_back(*std::move(batch));
  }
  auto held = std::make_unique<Registration::Held>(*this);
  auto added = registry_.add_together(definitions, batches);
  if (!added) return added.error();
  if (added->empty()) return Registration();
  held->implementations = *std::move(added);
  return Registration(std::move(held));
}

std::vector<policy::Setting> Core::trust_settings() const {
  if (trust_.file.empty()) return {};
  const std::string origin = trust_.file + (trust_.problem.ok() ? "" : ", which cannot be used");
  return {{"trust_file.policy_trust", std::string(name_of(trust_.policy_trust)), origin},
          {"trust_file.require_confinement", trust_.require_confinement ? "yes" : "no", origin}};
}

HealthReport Core::health_report() {
  HealthReport report = health_.report();
  report.shadow = shadow_.report();
  std::tie(report.refused_policies, report.last_refusal) = sources_.refusals();
  // Without dispatch the reference runs, and no policy applies.
  if (environment_.disable) return report;
  report.without_candidates = policy::find_shortages(*sources_.set(), *registry_.snapshot());
  for (const OperatorWithoutCandidates& each : report.without_candidates) {
    if (each.allowed) continue;
    report.verdict = std::max(report.verdict, Health::degraded);
    report.reasons.push_back(base::concat("operator ", each.op, " has no candidate",
                                          each.when.empty() ? "" : " where ", each.when, ": ",
                                          each.reason));
  }
  return report;
}

uint32_t Core::tag(std::string_view word) { return base::tag_number(word); }

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
