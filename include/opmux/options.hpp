#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/detail/function.hpp>
#include <opmux/detail/time.hpp>
#include <opmux/status.hpp>

namespace opmux {

namespace runtime {
class Core;
}

class DeviceAccess;
struct Device;

/// Severity of an event, lowest first.
enum class Level : uint8_t { debug, info, warning, error };

/// "debug", "info", "warning", "error"; static lifetime.
OPMUX_API std::string_view name_of(Level level) noexcept;

/// Something a person may want to know: an implementation was used for the first time, a call fell
/// back, a policy was refused. An event with the same level, code, operator, implementation and
/// reason is delivered once and then only counted; changes of policy are delivered each time. The
/// runtime remembers a limited number of events of each level (docs/limits.md): it delivers every
/// new event, and delivers one that it has forgotten again. docs/reasons.md lists the codes.
struct Event {
  Level level = Level::info;
  std::string code;      ///< Stable: "dispatch.chosen", "dispatch.refused", "call.fell_back".
  std::string op, impl;  ///< Operator and implementation concerned; either may be empty.
  std::string text;      ///< One sentence for people; may change between versions.
  std::vector<std::pair<std::string, std::string>> fields = {};  ///< Further values by name.
};

/// Receives events: Options::sink.
///
///   opmux::Options options;
///   options.sink = [](const opmux::Event& event) {
///     std::cerr << opmux::name_of(event.level) << " " << event.code << ": " << event.text << "\n";
///   };
///   opmux::Runtime logged = opmux::Runtime::create(options).value();
///
/// Called from the thread on which the event happened, from several threads at a time, and never
/// while opmux holds a lock, so the sink may call into the runtime. It must not throw. It must stay
/// callable until the runtime is destroyed.
using EventSink = detail::Function<void(const Event&)>;

/// Proof that a plugin's file must provide before any of its code runs. In every case the file, the
/// libraries that it brings with it and the folders on their paths must be writable only by root,
/// this user or the owner of libopmux.
enum class Trust : uint8_t {
  any,          ///< No further proof.
  digest,       ///< Its SHA-256 is in PluginOptions::digests.
  signed_only,  ///< It is signed by a key of PluginOptions::keyring.
};

/// "any", "digest", "signed"; static lifetime.
OPMUX_API std::string_view name_of(Trust trust) noexcept;

/// Treatment of a policy file or lockfile that other users can write or replace, because it, or a
/// folder on its path, belongs to another user or lets others write to it. Such users can choose
/// the implementations that this process runs.
///
///   opmux::Options options;
///   options.policy_trust = opmux::PolicyTrust::refuse;
///   opmux::Result<opmux::Runtime> careful = opmux::Runtime::create(options);
///
/// Only the program and the trust file of the machine, /etc/opmux/trust.conf, set it; the stricter
/// of both applies. Neither a policy file nor the environment can change it.
enum class PolicyTrust : uint8_t {
  /// The file is in force. If every user can write or replace it, the event
  /// "policy.writable_by_others" names it.
  warn,
  /// The file is refused ("policy.writable_by_others"), also if only a group can write or replace
  /// it: Runtime::create() fails, and a changed file does not come into force.
  refuse,
};

/// "warn", "refuse"; static lifetime.
OPMUX_API std::string_view name_of(PolicyTrust trust) noexcept;

/// Where plugins are searched and what they must prove. Only the program sets these fields: neither
/// a policy file nor the environment can weaken them; OPMUX_PLUGIN_PATH only adds folders.
///
///   opmux::Options options;
///   options.plugins.folders = {"/opt/acme/opmux"};
///   options.plugins.trust = opmux::Trust::signed_only;
///   options.plugins.keyring = "/etc/opmux/keys";
///   opmux::Result<opmux::Runtime> guarded = opmux::Runtime::create(options);
///
/// A plugin that is refused does not make Runtime::create() fail: PluginControl::list() has the
/// reason.
struct PluginOptions {
  /// Absolute folders, searched after the backends of the installation and OPMUX_PLUGIN_PATH. A
  /// relative folder is refused ("trust.relative").
  std::vector<std::string> folders = {};
  /// With Trust::signed_only folders of OPMUX_PLUGIN_PATH are ignored. The backends of the
  /// installation need no signature, because a user who can change them can change libopmux.
  Trust trust = Trust::any;
  /// An absolute folder with public keys, `*.pub` files as `opmux plugin keygen` writes them.
  std::string keyring = {};
  /// Digests that Trust::digest accepts (PluginInfo::digest), 64 hexadecimal digits each.
  std::vector<std::string> digests = {};
  /// Load a copy in sealed memory, which no process can modify, instead of the file. Implied by
  /// Trust::signed_only. The libraries that the plugin brings are copied too.
  bool sealed = false;
  /// Try a plugin of `folders` or OPMUX_PLUGIN_PATH in a confined child process first, and load it
  /// when a decision could use it. False: load it at once. Backends of the installation are not
  /// probed.
  bool probe = true;
  /// A larger file is refused without being read ("trust.size").
  uint64_t max_bytes = uint64_t{1} << 30;
  /// Refuse plugins that would be probed while the system lacks a layer of the probe's confinement
  /// ("probe.unconfined"), before any of their code runs. False: the layers that the system offers
  /// suffice, and the event "probe.unconfined" names the others. The trust file of the machine,
  /// /etc/opmux/trust.conf, can require it too; plugins are then probed even if `probe` is false.
  bool require_confinement = false;
};

/// One plugin file that was found, and whether it was loaded. Made by PluginControl::list().
///
///   for (const opmux::PluginInfo& plugin : runtime.plugins().list()) {
///     if (!plugin.loaded) std::cerr << plugin.path << ": " << plugin.reason << "\n";
///   }
struct PluginInfo {
  std::string path;  ///< Without links; "built in" for statically linked plugins.
  std::string name;
  bool loaded = false;       ///< Whether it was accepted and its code is loaded.
  std::string code, reason;  ///< Why the plugin, or a part of it, was refused; empty otherwise.
  std::vector<std::string> backends, implementations;  ///< Names and ids that it registered.
  std::string found_in = {};  ///< "built in", "installation", "OPMUX_PLUGIN_PATH", "options".
  std::string version = {}, vendor = {};
  /// SHA-256 of the file; if it brings libraries with it (in its run path), a SHA-256 that also
  /// covers these.
  std::string digest = {};
  std::string signer = {};  ///< Name of the key that signed it, with Trust::signed_only.
  std::vector<std::string> warnings = {};  ///< Defects of the file that did not refuse it.
};

/// Plugins of a runtime and the backends that they brought. Made by Runtime::plugins().
///
///   opmux::PluginControl plugins = runtime.plugins();
///   plugins.warm_up();
///   opmux::Status off = plugins.enable_backend("opencl", false);
///   if (!off.ok()) std::cerr << off.message() << "\n";
///
/// Refers to the runtime, which must outlive it. Cheap to copy, safe from any thread.
class PluginControl {
 public:
  /// Every plugin that was found, loaded or refused. Loads waiting plugins.
  OPMUX_API std::vector<PluginInfo> list() const;
  /// Loads plugins that wait until a decision could use them, so that no call has to.
  OPMUX_API void warm_up();
  /// Loads one file now, with the checks that Options::plugins asks for: the path must be absolute,
  /// the file is probed in a child process unless probing is off, and trust applies. Its operators
  /// are defined and its implementations are candidates for calls that start after this returns. A
  /// file that is loaded already is not loaded again; one that was refused is tried again.
  ///
  ///   opmux::Result<opmux::PluginInfo> acme = runtime.plugins().load("/opt/acme/acme.so");
  ///   if (!acme) std::cerr << acme.error().to_string() << "\n";
  ///
  /// Fails with `unavailable` and the reason of the refusal, such as "plugin.no_query" or
  /// "trust.unsigned"; `invalid_argument` ("trust.relative"); `frozen`.
  OPMUX_API Result<PluginInfo> load(const std::string& path);
  /// The same for a plugin that is linked into the program. Compile its sources with
  /// OPMUX_STATIC_PLUGIN; OPMUX_PLUGIN_ENTRY(acme) then defines opmux_plugin_query_v1_acme, which
  /// is passed here. Several plugins can be linked into one program. Fails with `unavailable`,
  /// `invalid_argument` ("plugin.no_query") for null, or `frozen`.
  OPMUX_API Result<PluginInfo> load(opmux_plugin_query_fn query);
  /// Switches a backend on or off, independently of whether it is available. Fails with `not_found`
  /// and suggests the nearest name, or with `frozen`. Bound plans of a backend that is switched off
  /// are revoked.
  OPMUX_API Status enable_backend(std::string_view name, bool on);
  /// Memory and streams of the devices of a backend. Fails with `not_found` if there is no such
  /// backend or the CPU accesses its memory directly ("device.none"), with `unsupported`
  /// ("device.unavailable") and the reason if it is not available.
  OPMUX_API Result<DeviceAccess> device_access(std::string_view backend) const;

  /// States the architecture of a device, as numbers with dots between them ("9.0"), for backends
  /// that do not state it, such as those of the program. Caps::arch() is compared with it. Fails
  /// with `invalid_argument` ("device.architecture") or with `frozen`.
  OPMUX_API Status set_architecture(Device device, std::string_view architecture);

  /// For Runtime::plugins().
  explicit PluginControl(runtime::Core& core) noexcept : core_(&core) {}
  /// The old result of Runtime::plugins().
  // NOLINTNEXTLINE(*-explicit-*)
  [[deprecated("use runtime.plugins().list()")]] operator std::vector<PluginInfo>() const {
    return list();
  }

 private:
  runtime::Core* core_;
};

/// Where policy comes from besides code, and how a runtime follows it. An empty text means that the
/// environment variable named in its comment decides.
///
///   opmux::Options options;
///   options.sources.mode = "hot_reload";
///   options.sources.config = "/etc/opmux/policy.yaml";
///   opmux::Result<opmux::Runtime> service = opmux::Runtime::create(options);
///   if (!service) std::cerr << service.error().to_string() << "\n";
struct SourceOptions {
  /// "static" (choices come from a lockfile, which must exist and fit), "dynamic" (no file),
  /// "config" (files are read once), "hot_reload" (files are watched), "auto" (static if there is a
  /// lockfile, else hot_reload if there is a policy file, else dynamic). Empty: OPMUX_MODE, or
  /// auto.
  std::string mode = {};
  /// A policy file, or a folder whose *.yaml and *.json files form one policy. Empty: OPMUX_CONFIG.
  /// A relative path is resolved once, when the runtime is created.
  std::string config = {};
  /// A policy file of the machine, or the name of an installed one; "none" for none. Empty:
  /// OPMUX_PLATFORM, or the installed one for the devices of this machine, or "cpu".
  std::string platform = {};
  /// Where devices of the machine are looked for, to choose a platform. Empty: /dev. For tests.
  std::string device_folder = {};
  /// The lockfile of mode static. Empty: OPMUX_LOCKFILE, or opmux.lock beside `config`.
  std::string lockfile = {};
  /// False: mode static does not freeze until LockfileControl::freeze() is called, so that the
  /// program can register implementations first.
  bool freeze_at_start = true;
  /// Store the last policy that took effect, and start with it if the files are broken. False:
  /// broken files make Runtime::create() fail.
  bool last_known_good = true;
  /// False: the runtime starts no maintenance thread, and the program calls Runtime::tick(). This
  /// affects watched files, breakers that become half open, expiring rules, the shadow check and
  /// the status file.
  bool own_thread = true;
  /// Poll files every 100 ms even where the kernel reports changes. For network file systems.
  bool look_at_files = false;
  /// Clock for the expiry of rules and quarantines: a function that returns
  /// std::chrono::sys_seconds. Empty: the system clock. For tests.
  detail::UtcClock utc = {};
};

}  // namespace opmux
