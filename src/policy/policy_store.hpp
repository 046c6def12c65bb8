#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <opmux/policy.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "base/system/process.hpp"
#include "policy/policy_source.hpp"
#include "policy/rules/policy_set.hpp"
#include "registry/publication.hpp"

namespace opmux::policy {

/// A parsed policy, with name, digest and origin of its text.
struct PolicyDraft {
  Policy policy;
  std::string name, digest, origin;
};

/// The policies of a runtime by source. A new policy is checked, dry-run on every operator that it
/// concerns, and put in force completely or not at all. Thread-safe; a child forked at any moment
/// finds either the old or the new policies.
class PolicyStore final : public PolicySource {
 public:
  using Utc = std::function<std::chrono::sys_seconds()>;

  /// Rules that expire are deactivated by a job of `maintenance`. All of them must outlive the
  /// store.
  PolicyStore(const registry::SnapshotSource& registry, base::Maintenance& maintenance,
              const base::EventLog& log, Utc utc)
      : registry_(registry), maintenance_(maintenance), log_(log), utc_(std::move(utc)) {}

  /// Connects the store with the objects that use it. Must be called before the first policy is
  /// set.
  void attach(registry::Publisher& publisher, DeferredPlugins& plugins) {
    publisher_ = &publisher;
    plugins_ = &plugins;
  }

  std::shared_ptr<const PolicySet> set() const override;

  /// The same with `policy` in place of the current file policy. Fails as load() would.
  Result<PolicySet> set_with(Policy policy, std::string name) const;

  /// For sources that are read once, before the first publication.
  Status set_at_start(Source source, Policy policy, std::string name);
  Status set_code(const Policy& policy);
  Policy code() const;

  /// Puts a policy in force or refuses it. If it is refused, only the counters change. Both
  /// outcomes are logged and passed to the listeners.
  Status load(Result<Policy> parsed, PolicyDraft draft);
  Status rollback();
  PolicyState state() const;
  /// The number of refused texts, and the last refusal.
  std::pair<uint64_t, Status> refusals() const {
    return {refused_.load(std::memory_order_relaxed), layers_.get()->last_refusal};
  }

  void add_validator(PolicyValidator validator);
  /// Asks the validators.
  Status approve(const Policy& policy) const;
  /// Fails as changing the policies from `now` to `next` would. May load deferred plugins.
  Status try_out(const PolicySet& next, const PolicySet& now) const;
  void load_deferred_plugins() const { plugins_->warm_up(); }
  std::chrono::sys_seconds utc() const { return utc_(); }
  void on_change(PolicyListener listener);

  /// Deactivates expired rules. Returns when the next rule expires.
  std::optional<std::chrono::sys_seconds> lapse();

  /// While frozen, every change is refused with `frozen` and no rule expires.
  void freeze(bool on) noexcept;

 private:
  class ExpiryJob;
  /// A file policy, current or previous.
  struct Text {
    PolicyLayerPtr layer;
    std::string digest, origin;
    uint64_t version = 0, generation = 0;
  };
  struct Layers {
    PolicyLayerPtr code, environment, platform;
    Text file, previous;
    uint64_t last_version = 0;
    Status last_refusal;

    PolicyLayerPtr& of(Source source);
    PolicySet set() const;
  };

  Result<PolicyLayerPtr> make_layer(Source source, Policy policy, std::string name) const;
  /// Edits a copy of the layers, dry-runs it, and on success passes it to `commit`; see
  /// base::Published::update().
  template <class Edit, class Commit>
  Status change(std::string_view what, Edit&& edit, Commit&& commit);
  /// change() with a publication. Throws std::bad_alloc, and changes nothing, if there is not
  /// enough memory.
  template <class Edit>
  Status publish(std::string_view what, Edit&& edit, uint64_t& generation);
  /// The second step of a publication; returns the new generation. Plugins that the old policies
  /// denied become candidates for loading again.
  uint64_t finish(registry::Publication& publication) noexcept;
  Status put(PolicyDraft draft);
  void note_generation(uint64_t version, uint64_t generation) noexcept;
  void tell(const PolicyChange& change) const;
  /// Starts the job that deactivates expired rules if a rule of the layer expires.
  void note_expiry(const PolicyLayer& layer);

  const registry::SnapshotSource& registry_;
  base::Maintenance& maintenance_;
  const base::EventLog& log_;
  const Utc utc_;
  registry::Publisher* publisher_ = nullptr;
  DeferredPlugins* plugins_ = nullptr;
  /// Serialises changes; not held while validators and listeners run.
  base::ForkMutex writers_;
  base::Published<Layers> layers_;
  base::Published<std::vector<PolicyValidator>> validators_;
  base::Published<std::vector<PolicyListener>> listeners_;
  std::atomic<uint64_t> loaded_{0}, refused_{0}, rolled_back_{0}, lapsed_{0};
  std::atomic<bool> frozen_{false}, expiring_{false};
};

}  // namespace opmux::policy
