#include "c_api/error.hpp"
#include "c_api/handles.hpp"
#include "c_api/policy.hpp"
#include "plugin/open/availability.hpp"
#include "plugin/read/backend_reader.hpp"
#include "runtime/registration.hpp"

using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::only_flags;
using opmux::c_api::str_of;
using opmux::c_api::view_of;

namespace {

opmux::EventSink sink_of(const opmux_options& options) {
  if (options.on_event == nullptr) return {};
  return [tell = options.on_event, context = options.event_context](const opmux::Event& event) {
    const opmux_event plain{sizeof(opmux_event), static_cast<int32_t>(event.level),
                            str_of(event.code),  str_of(event.op),
                            str_of(event.impl),  str_of(event.text)};
    tell(context, &plain);
  };
}

Status read_environment(const opmux_options& from, opmux::Options& to) {
  if (from.environment == nullptr) {
    if (from.environment_count == 0) return {};
    return none_null("options.environment", from.environment);
  }
  to.environment.emplace();
  for (size_t i = 0; i < from.environment_count; ++i) {
    const opmux_variable& variable = from.environment[i];
    to.environment->emplace_back(view_of(variable.name), view_of(variable.value));
  }
  return {};
}

Status read_plugins(const opmux_plugin_options* options, opmux::PluginOptions& to) {
  if (options == nullptr) return {};
  opmux_plugin_options from{};
  if (Status bad = opmux::c_api::read_sized(*options, sizeof(from), "options.plugins", from);
      !bad.ok()) {
    return bad;
  }
  constexpr uint32_t kFlags =
      OPMUX_PLUGINS_SEALED | OPMUX_PLUGINS_NO_PROBE | OPMUX_PLUGINS_REQUIRE_CONFINEMENT;
  if (Status bad = only_flags(from.flags, kFlags, "options.plugins.flags", "OPMUX_PLUGINS_*");
      !bad.ok()) {
    return bad;
  }
  if (from.trust > OPMUX_TRUST_SIGNED) {
    return {opmux::Code::invalid_argument, "c.trust",
            "options.plugins.trust is not an OPMUX_TRUST_*"};
  }
  auto folders = opmux::c_api::read_list(from.folders, "options.plugins.folders");
  if (!folders) return folders.error();
  auto digests = opmux::c_api::read_list(from.digests, "options.plugins.digests");
  if (!digests) return digests.error();
  to.folders = *std::move(folders);
  to.digests = *std::move(digests);
  to.keyring = view_of(from.keyring);
  to.trust = static_cast<opmux::Trust>(from.trust);
  to.sealed = (from.flags & OPMUX_PLUGINS_SEALED) != 0;
  to.probe = (from.flags & OPMUX_PLUGINS_NO_PROBE) == 0;
  to.require_confinement = (from.flags & OPMUX_PLUGINS_REQUIRE_CONFINEMENT) != 0;
  if (from.max_bytes != 0) to.max_bytes = from.max_bytes;
  return {};
}

Status read_sources(const opmux_source_options* options, opmux::SourceOptions& to) {
  if (options == nullptr) return {};
  opmux_source_options from{};
  if (Status bad = opmux::c_api::read_sized(*options, sizeof(from), "options.sources", from);
      !bad.ok()) {
    return bad;
  }
  constexpr uint32_t kFlags = OPMUX_SOURCE_NO_LAST_KNOWN_GOOD | OPMUX_SOURCE_NO_THREAD |
                              OPMUX_SOURCE_NO_FREEZE | OPMUX_SOURCE_LOOK_AT_FILES;
  if (Status bad = only_flags(from.flags, kFlags, "options.sources.flags", "OPMUX_SOURCE_*");
      !bad.ok()) {
    return bad;
  }
  to.mode = view_of(from.mode);
  to.config = view_of(from.config);
  to.platform = view_of(from.platform);
  to.lockfile = view_of(from.lockfile);
  to.last_known_good = (from.flags & OPMUX_SOURCE_NO_LAST_KNOWN_GOOD) == 0;
  to.own_thread = (from.flags & OPMUX_SOURCE_NO_THREAD) == 0;
  to.freeze_at_start = (from.flags & OPMUX_SOURCE_NO_FREEZE) == 0;
  to.look_at_files = (from.flags & OPMUX_SOURCE_LOOK_AT_FILES) != 0;
  return {};
}

Status read_state(const opmux_state_options* options, opmux::StateOptions& to) {
  if (options == nullptr) return {};
  opmux_state_options from{};
  if (Status bad = opmux::c_api::read_sized(*options, sizeof(from), "options.state", from);
      !bad.ok()) {
    return bad;
  }
  if (from.crash_journal > OPMUX_CRASH_JOURNAL_WITH_HANDLER) {
    return {opmux::Code::invalid_argument, "c.crash_journal",
            "options.state.crash_journal is not an OPMUX_CRASH_JOURNAL_*"};
  }
  to.folder = view_of(from.folder);
  to.crash_journal = static_cast<opmux::CrashJournal>(from.crash_journal);
  to.state_page = from.state_page != 0;
  return {};
}

Status read_record(const opmux_record_options* options, opmux::RecordOptions& to) {
  if (options == nullptr) return {};
  opmux_record_options from{};
  constexpr size_t kFirstVersion = offsetof(opmux_record_options, dump);
  if (Status bad = opmux::c_api::read_sized(*options, kFirstVersion, "options.record", from);
      !bad.ok()) {
    return bad;
  }
  if (Status bad =
          only_flags(from.flags, OPMUX_RECORD_INPUTS, "options.record.flags", "OPMUX_RECORD_*");
      !bad.ok()) {
    return bad;
  }
  to.folder = view_of(from.folder);
  to.inputs = (from.flags & OPMUX_RECORD_INPUTS) != 0;
  if (from.max_bytes != 0) to.max_bytes = from.max_bytes;
  if (from.max_files != 0) to.max_files = from.max_files;
  to.dump = view_of(from.dump);
  return {};
}

Status read_options(const opmux_options* options, opmux::Options& to) {
  if (options == nullptr) return {};
  opmux_options from{};
  if (Status bad = opmux::c_api::read_sized(*options, sizeof(from), "options", from); !bad.ok())
    return bad;
  constexpr uint32_t kFlags = OPMUX_OPTION_NO_BACKENDS | OPMUX_OPTION_REFUSE_WRITABLE_POLICY;
  if (Status bad = only_flags(from.flags, kFlags, "options.flags", "OPMUX_OPTION_*"); !bad.ok()) {
    return bad;
  }
  to.sink = sink_of(from);
  to.backends = (from.flags & OPMUX_OPTION_NO_BACKENDS) == 0;
  if ((from.flags & OPMUX_OPTION_REFUSE_WRITABLE_POLICY) != 0) {
    to.policy_trust = opmux::PolicyTrust::refuse;
  }
  if (Status bad = read_environment(from, to); !bad.ok()) return bad;
  if (Status bad = read_plugins(from.plugins, to.plugins); !bad.ok()) return bad;
  if (Status bad = read_sources(from.sources, to.sources); !bad.ok()) return bad;
  if (Status bad = read_state(from.state, to.state); !bad.ok()) return bad;
  if (Status bad = read_record(from.record, to.record); !bad.ok()) return bad;
  if (from.policy == nullptr) return {};
  auto policy = opmux::c_api::read_policy(from.policy);
  if (!policy) return policy.error();
  to.policy = *std::move(policy);
  return {};
}

}  // namespace

int32_t opmux_runtime_create(const opmux_options* options, opmux_runtime** runtime,
                             opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    opmux::Options read;
    if (Status bad = read_options(options, read); !bad.ok()) return bad;
    auto made = opmux::Runtime::create(read);
    if (!made) return made.error();
    *runtime = new opmux_runtime{*std::move(made)};
    return {};
  });
}

void opmux_runtime_destroy(opmux_runtime* runtime) { delete runtime; }

int32_t opmux_runtime_warm_up(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    runtime->cpp.plugins().warm_up();
    return {};
  });
}

int32_t opmux_backend_enable(opmux_runtime* runtime, opmux_str name, int32_t on,
                             opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.plugins().enable_backend(view_of(name), on != 0);
  });
}

int32_t opmux_name_device_type(int32_t type, opmux_str name, opmux_error* error) {
  return guarded(error, [&]() -> Status { return opmux::name_device_type(type, view_of(name)); });
}

int32_t opmux_set_architecture(opmux_runtime* runtime, opmux_device device, opmux_str architecture,
                               opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.plugins().set_architecture({device.type, device.id}, view_of(architecture));
  });
}

int32_t opmux_set_rank(opmux_runtime* runtime, int32_t rank, int32_t tp_size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    const auto stated = [](int32_t value) {
      return value == -1 ? std::nullopt : std::optional<int>(value);
    };
    return runtime->cpp.set_rank(stated(rank), stated(tp_size));
  });
}

int32_t opmux_runtime_use_openmp(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.use_openmp();
  });
}

int32_t opmux_tag(opmux_runtime* runtime, opmux_str word, uint32_t* tag, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, tag", runtime, tag); !bad.ok()) return bad;
    *tag = runtime->cpp.tag(view_of(word)).number;
    return {};
  });
}

using opmux::Result;
using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::view_of;

namespace {

Result<opmux::Registration> implement(opmux::runtime::Core& core, const opmux_backend& backend) {
  opmux_backend read{};
  constexpr size_t kLeast = offsetof(opmux_backend, device) + sizeof(void*);
  if (Status bad = opmux::c_api::read_sized(backend, kLeast, "backend", read); !bad.ok())
    return bad;
  std::vector<opmux::registry::Refusal> refused;
  auto batch = opmux::plugin::read_backend(read, {}, refused);
  if (!batch) return opmux::registry::status_of(refused.front());
  // The program's own function may need the thread that calls it, so it runs there.
  opmux::plugin::journal_availability(batch->backend);
  // Made first, because nothing may fail after the implementations were added.
  auto held = std::make_unique<opmux::Registration::Held>(core);
  opmux::registry::BatchResult result = core.registry().add(*batch, true);
  if (!result.refused.empty()) return opmux::registry::status_of(result.refused.front());
  held->implementations = std::move(result.added);
  return opmux::Registration(std::move(held));
}

Status only_define_flags(uint32_t flags) {
  return only_flags(flags, OPMUX_DEFINE_DATA_CHECKED, "flags", "OPMUX_DEFINE_*");
}

}  // namespace

int32_t opmux_define(opmux_runtime* runtime, opmux_str schema, uint32_t flags, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, schema", runtime, schema.data); !bad.ok()) return bad;
    if (Status bad = only_define_flags(flags); !bad.ok()) return bad;
    return runtime->cpp.define(view_of(schema),
                               {.data_checked = (flags & OPMUX_DEFINE_DATA_CHECKED) != 0});
  });
}

int32_t opmux_define_all(opmux_runtime* runtime, const opmux_str* schemas, size_t count,
                         uint32_t flags, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    if (Status bad = only_define_flags(flags); !bad.ok()) return bad;
    if (count == 0) return {};
    if (Status bad = none_null("schemas", schemas); !bad.ok()) return bad;
    std::vector<opmux::Definition> operators;
    for (size_t i = 0; i < count; ++i) {
      if (Status bad = none_null("schema", schemas[i].data); !bad.ok()) return bad;
      operators.push_back({std::string(view_of(schemas[i])),
                           {.data_checked = (flags & OPMUX_DEFINE_DATA_CHECKED) != 0}});
    }
    return runtime->cpp.define(operators);
  });
}

int32_t opmux_plugin_load(opmux_runtime* runtime, opmux_str path, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    const auto loaded = runtime->cpp.plugins().load(std::string(view_of(path)));
    return loaded ? Status() : loaded.error();
  });
}

int32_t opmux_plugin_load_static(opmux_runtime* runtime, opmux_plugin_query_fn query,
                                 opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, query", runtime, query); !bad.ok()) return bad;
    const auto loaded = runtime->cpp.plugins().load(query);
    return loaded ? Status() : loaded.error();
  });
}

int32_t opmux_implement(opmux_runtime* runtime, const opmux_backend* backend,
                        opmux_registration** registration, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    Status bad = none_null("runtime, backend, registration", runtime, backend, registration);
    if (!bad.ok()) return bad;
    auto added = implement(runtime->cpp.core(), *backend);
    if (!added) return added.error();
    *registration = new opmux_registration{*std::move(added)};
    return {};
  });
}

int32_t opmux_withdraw(opmux_registration* registration, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    const std::unique_ptr<opmux_registration> held(registration);
    return held == nullptr ? Status() : held->cpp.withdraw();
  });
}

void opmux_registration_keep(opmux_registration* registration) {
  if (registration == nullptr) return;
  registration->cpp.keep();
  delete registration;
}
