#include "policy/policy_store.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/memory.hpp"
#include "base/no_callback.hpp"
#include "base/text.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/operator_policy.hpp"
#include "policy/rules/policy_set.hpp"
#include "registry/registry.hpp"

namespace opmux::policy {

namespace {

void add_rules(const PolicyLayer& layer, const registry::RegistrySnapshot& present,
               PolicyState& state) {
  constexpr size_t kMostNamed = 16;
  const std::vector<Rule>& rules = layer.policy().rules;
  state.rules = rules.size();
  state.expired = static_cast<uint64_t>(
      std::ranges::count_if(rules, [](const Rule& rule) { return rule.expired; }));
  const std::vector<const Rule*> unmatched = unmatched_rules(layer.policy(), present);
  state.unmatched = unmatched.size();
  for (const Rule* rule : unmatched) {
    if (state.unmatched_rules.size() == kMostNamed) break;
    state.unmatched_rules.push_back(describe({&layer, rule, ""}));
  }
}

}  // namespace

PolicyLayerPtr& PolicyStore::Layers::of(Source source) {
  switch (source) {
    case Source::file: return file.layer;
    case Source::environment: return environment;
    case Source::platform: return platform;
    default: return code;
  }
}

PolicySet PolicyStore::Layers::set() const {
  PolicySet set;
  for (const PolicyLayerPtr& layer : {code, file.layer, environment, platform}) {
    if (layer != nullptr) set.layers.push_back(layer);
  }
  return set;
}

std::shared_ptr<const PolicySet> PolicyStore::set() const {
  return std::make_shared<const PolicySet>(layers_.get()->set());
}

Result<PolicySet> PolicyStore::set_with(Policy policy, std::string name) const {
  auto layer = make_layer(Source::file, std::move(policy), std::move(name));
  if (!layer) return layer.error();
  if (Status status = approve((*layer)->policy()); !status.ok()) return status;
  const std::shared_ptr<const Layers> now = layers_.get();
  Layers layers = *now;
  layers.file.layer = *layer;
  PolicySet next = layers.set();
  if (Status status = try_out(next, now->set()); !status.ok()) return status;
  return next;
}

Result<PolicyLayerPtr> PolicyStore::make_layer(Source source, Policy policy,
                                               std::string name) const {
  mark_expired(policy, utc_());
  return PolicyLayer::make(source, std::move(policy), std::move(name));
}

void PolicyStore::freeze(bool on) noexcept {
  const std::lock_guard lock(writers_);
  frozen_.store(on);
}

Status PolicyStore::try_out(const PolicySet& next, const PolicySet& now) const {
  bool undecided = false;
  Status status = dry_run(next, now, *registry_.snapshot(), plugins_, &undecided);
  if (!status.ok() || !undecided) return status;
  // Only a deferred plugin has the implementations that the policy leaves.
  plugins_->warm_up();
  return dry_run(next, now, *registry_.snapshot());
}

template <class Edit, class Commit>
Status PolicyStore::change(std::string_view what, Edit&& edit, Commit&& commit) {
  if (Status refused = base::refuse_callback(); !refused.ok()) return refused;
  const std::lock_guard lock(writers_);
  if (frozen_.load()) return registry::frozen(what);
  const std::shared_ptr<const Layers> now = layers_.get();
  Layers next = *now;
  edit(next);
  if (Status status = try_out(next.set(), now->set()); !status.ok()) return status;
  layers_.update(
      [&](Layers& layers) {
        layers = std::move(next);
        return true;
      },
      commit);
  return {};
}

template <class Edit>
Status PolicyStore::publish(std::string_view what, Edit&& edit, uint64_t& generation) {
  const std::unique_ptr<registry::Publication> publication = publisher_->begin();
  Status status = change(what, std::forward<Edit>(edit), [&](auto& next) {
    registry::ChangeTo change(next);
    publication->publish(change);
  });
  if (status.ok()) generation = finish(*publication);
  return status;
}

uint64_t PolicyStore::finish(registry::Publication& publication) noexcept {
  const uint64_t generation = publication.finish();
  plugins_->mark_waiting();
  return generation;
}

Status PolicyStore::set_at_start(Source source, Policy policy, std::string name) {
  auto layer = make_layer(source, std::move(policy), std::move(name));
  if (!layer) return layer.error();
  note_expiry(**layer);
  return change(
      "set_policy", [&](Layers& layers) { layers.of(source) = *layer; },
      [](auto& next) { next.exchange(); });
}

/// Deactivates rules when they expire.
class PolicyStore::ExpiryJob final : public base::Maintenance::Job {
 public:
  explicit ExpiryJob(PolicyStore& store) : store_(store) {}
  uint64_t run(uint64_t now_ns) override {
    // The system time may be changed, so this checks at least once a minute.
    constexpr std::chrono::seconds kAtMost{60};
    const auto next = store_.lapse();
    const auto left =
        next ? std::clamp(*next - store_.utc_(), std::chrono::seconds(0), kAtMost) : kAtMost;
    return now_ns + static_cast<uint64_t>(std::chrono::nanoseconds(left).count());
  }

 private:
  PolicyStore& store_;
};

void PolicyStore::note_expiry(const PolicyLayer& layer) {
  if (!next_expiry(layer.policy()) || expiring_.exchange(true)) return;
  try {
    maintenance_.add([this] { return std::make_unique<ExpiryJob>(*this); });
  } catch (const std::bad_alloc&) {
    expiring_.store(false);
    throw;
  }
}

Status PolicyStore::set_code(const Policy& policy) {
  if (Status unmatched = check_strict_names(policy, *registry_.snapshot()); !unmatched.ok()) {
    // A deferred plugin may have what the policy names.
    load_deferred_plugins();
    unmatched = check_strict_names(policy, *registry_.snapshot());
    if (!unmatched.ok()) return unmatched;
  }
  auto layer = make_layer(Source::code, policy, "set_policy");
  if (!layer) return layer.error();
  // First, because nothing may fail after the publication.
  note_expiry(**layer);
  uint64_t generation = 0;
  return publish("set_policy", [&](Layers& layers) { layers.code = *layer; }, generation);
}

Policy PolicyStore::code() const {
  const PolicyLayerPtr layer = layers_.get()->code;
  return layer != nullptr ? layer->policy() : Policy{};
}

Status PolicyStore::approve(const Policy& policy) const {
  try {
    const auto validators = validators_.get();
    for (const PolicyValidator& validator : *validators) {
      if (Status status = validator(policy); !status.ok()) return status;
    }
    return {};
  } catch (const std::exception& error) {
    return {Code::failed, "policy.validator", base::concat("a validator failed: ", error.what())};
  } catch (...) {
    return {Code::failed, "policy.validator", "a validator failed"};
  }
}

Status PolicyStore::put(PolicyDraft draft) {
  auto layer = make_layer(Source::file, std::move(draft.policy), std::move(draft.name));
  if (!layer) return layer.error();
  if (Status status = approve((*layer)->policy()); !status.ok()) return status;
  note_expiry(**layer);
  uint64_t version = 0, generation = 0;
  const auto edit = [&](Layers& layers) {
    if (layers.file.layer != nullptr) layers.previous = std::move(layers.file);
    version = ++layers.last_version;
    layers.file = {*layer, std::move(draft.digest), std::move(draft.origin), version, 0};
  };
  Status status = publish("load_policy", edit, generation);
  if (status.ok()) note_generation(version, generation);
  return status;
}

void PolicyStore::note_generation(uint64_t version, uint64_t generation) noexcept {
  // The policy is in force; without memory its state has no generation.
  base::if_memory([&] {
    layers_.update([&](Layers& layers) {
      const bool mine = layers.file.version == version;
      if (mine) layers.file.generation = generation;
      return mine;
    });
  });
}

Status PolicyStore::load(Result<Policy> parsed, PolicyDraft draft) {
  PolicyChange told{draft.name, draft.digest, draft.origin};
  Status status = parsed ? Status() : parsed.error();
  if (status.ok()) {
    draft.policy = std::move(*parsed);
    status = put(std::move(draft));
  }
  if (status.ok()) {
    loaded_.fetch_add(1, std::memory_order_relaxed);
  } else {
    refused_.fetch_add(1, std::memory_order_relaxed);
    layers_.update([&](Layers& layers) {
      layers.last_refusal = status;
      return true;
    });
  }
  base::if_memory([&] {
    told.status = status;
    tell(told);
  });
  return status;
}

Status PolicyStore::rollback() {
  const auto nothing_before = [] {
    return Status(Code::not_found, "policy.no_previous",
                  "there is no previous policy to roll back to");
  };
  if (!frozen_.load() && layers_.get()->previous.layer == nullptr) return nothing_before();
  uint64_t version = 0, generation = 0;
  std::string name;
  const auto edit = [&](Layers& layers) {
    if (layers.previous.layer == nullptr) return;
    std::swap(layers.file, layers.previous);
    layers.file.origin = "rollback";
    version = layers.file.version;
    name = layers.file.layer->name();
  };
  Status status = publish("rollback", edit, generation);
  if (!status.ok()) return status;
  if (version == 0) return nothing_before();
  rolled_back_.fetch_add(1, std::memory_order_relaxed);
  note_generation(version, generation);
  base::if_memory([&] { tell({name, layers_.get()->file.digest, "rollback"}); });
  return {};
}

void PolicyStore::tell(const PolicyChange& change) const {
  PolicyChange told = change;
  {
    const std::shared_ptr<const Layers> layers = layers_.get();
    told.version = layers->file.version;
    told.generation = layers->file.generation;
  }
  const std::string who = change.name.empty() ? "policy" : change.name;
  if (change.status.ok()) {
    log_.announce(Level::info, "policy.loaded", [&] {
      return base::concat(who, " is in force as version ", told.version, ", by ", change.origin);
    });
  } else {
    log_.announce(Level::error, "policy.refused", [&] {
      return base::concat(
          who, " was refused and the policy in force is unchanged: ", change.status.message());
    });
  }
  const auto listeners = listeners_.get();
  for (const PolicyListener& listener : *listeners) listener(told);
}

PolicyState PolicyStore::state() const {
  const std::shared_ptr<const Layers> layers = layers_.get();
  PolicyState state;
  const Text& file = layers->file;
  if (file.layer != nullptr) {
    state.name = file.layer->name();
    add_rules(*file.layer, *registry_.snapshot(), state);
  }
  state.digest = file.digest;
  state.origin = file.origin;
  state.version = file.version;
  state.generation = file.generation;
  state.previous_version = layers->previous.version;
  state.loaded = loaded_.load(std::memory_order_relaxed);
  state.refused = refused_.load(std::memory_order_relaxed);
  state.rolled_back = rolled_back_.load(std::memory_order_relaxed);
  state.lapsed = lapsed_.load(std::memory_order_relaxed);
  state.last_refusal = layers->last_refusal;
  return state;
}

void PolicyStore::add_validator(PolicyValidator validator) {
  validators_.update([&](auto& all) {
    all.push_back(std::move(validator));
    return true;
  });
}

void PolicyStore::on_change(PolicyListener listener) {
  listeners_.update([&](auto& all) {
    all.push_back(std::move(listener));
    return true;
  });
}

std::optional<std::chrono::sys_seconds> PolicyStore::lapse() {
  const std::chrono::sys_seconds now = utc_();
  std::optional<std::chrono::sys_seconds> next;
  bool any = false;
  const std::unique_ptr<registry::Publication> publication = publisher_->begin();
  {
    const std::lock_guard lock(writers_);
    if (frozen_.load()) return std::nullopt;
    const auto edit = [&](Layers& layers) {
      for (const Source source : {Source::code, Source::file, Source::platform}) {
        PolicyLayerPtr& layer = layers.of(source);
        if (layer == nullptr) continue;
        if (const auto due = next_expiry(layer->policy()); due && *due <= now) {
          // A valid policy stays valid: constraints stay in force, so expiry only adds candidates.
          if (auto made = make_layer(source, layer->policy(), layer->name())) layer = *made;
          any = true;
        }
        const auto end = next_expiry(layer->policy());
        if (end && (!next || *end < *next)) next = end;
      }
      return any;
    };
    layers_.update(edit, [&](auto& changed) {
      registry::ChangeTo change(changed);
      publication->publish(change);
    });
  }
  if (!any) return next;
  lapsed_.fetch_add(1, std::memory_order_relaxed);
  finish(*publication);
  log_.announce(Level::warning, "policy.expired", [] {
    return std::string("rules have expired; of these rules only deny and require stay in force");
  });
  return next;
}

}  // namespace opmux::policy
