#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/policy_sources.hpp>

#include "base/process.hpp"
#include "base/published.hpp"
#include "policy/policy_set.hpp"
#include "registry/snapshot.hpp"
#include "telemetry/event_log.hpp"

namespace opmux::runtime {

/// A policy that was read from text, and what the text was.
struct PolicyDraft {
  Policy policy;
  std::string name, digest, origin;
};

/// The policies of a runtime by source, and what becomes of new ones: each is checked, tried on
/// every operator that it concerns, and put in force as a whole or not at all. Thread-safe; a child
/// forked at any moment finds the old or the new ones.
class PolicySources {
 public:
  struct Parts {
    std::function<registry::RegistrySnapshotPtr()> registry;
    std::function<uint64_t()> publish;        ///< returns the new generation
    std::function<void()> load_waiting = {};  ///< loads plugins that wait; may be empty
    const telemetry::EventLog* log = nullptr;
    std::function<std::chrono::sys_seconds()> utc;
    std::function<void()> on_expiring;  ///< a policy with rules that will expire is in force
  };
  explicit PolicySources(Parts parts) : parts_(std::move(parts)) {}

  /// All layers but scopes, strongest first.
  std::shared_ptr<const policy::PolicySet> set() const;

  /// The same with this one in the place of the text in force.
  Result<policy::PolicySet> set_with(Policy policy, std::string name) const;

  /// Sources that are read once, before anything is published.
  Status set_at_start(policy::Source source, Policy policy, std::string name);
  Status set_code(const Policy& policy);
  Policy code() const;

  /// Puts a text in force, or refuses it: then nothing changes but a counter, and listeners and the
  /// log are told, as they are of success.
  Status load(Result<Policy> parsed, PolicyDraft draft);
  Status rollback();
  PolicyState state() const;

  void add_validator(PolicyValidator validator);
  void on_change(PolicyListener listener);

  /// Takes what expired out of force. Returns when the next rule expires.
  std::optional<std::chrono::sys_seconds> lapse();

  /// While frozen every change is refused with `frozen`, and nothing lapses.
  void freeze(bool on);

 private:
  /// One text in force.
  struct Text {
    policy::PolicyLayerPtr layer;
    std::string digest, origin;
    uint64_t version = 0, generation = 0;
  };
  struct Layers {
    policy::PolicyLayerPtr code, environment, platform;
    Text file, previous;
    uint64_t last_version = 0;
    Status last_refusal;

    policy::PolicyLayerPtr& of(policy::Source source);
    policy::PolicySet set() const;
  };

  Result<policy::PolicyLayerPtr> make_layer(policy::Source source, Policy policy,
                                            std::string name) const;
  Status approve(const Policy& policy) const;
  /// Changes a copy of the layers, tries it, and keeps it.
  template <class Edit>
  Status change(std::string_view what, Edit&& edit);
  Status put(PolicyDraft draft);
  void note_generation(uint64_t version, uint64_t generation);
  void tell(const PolicyChange& change) const;
  void note_expiry(const policy::PolicyLayer& layer) const;

  Parts parts_;
  base::ForkMutex writers_;  ///< one trial at a time; never held while others' code runs
  base::Published<Layers> layers_;
  base::Published<std::vector<PolicyValidator>> validators_;
  base::Published<std::vector<PolicyListener>> listeners_;
  std::atomic<uint64_t> loaded_{0}, refused_{0}, rolled_back_{0}, lapsed_{0};
  std::atomic<bool> frozen_{false};
};

/// Whether a policy leaves every operator a candidate where no condition applies, or says
/// allow_none. Operators for which `next` means what `now` does are not tried.
Status dry_run(const policy::PolicySet& next, const policy::PolicySet& now,
               const registry::RegistrySnapshot& registry);

}  // namespace opmux::runtime
