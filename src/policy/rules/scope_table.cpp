#include "policy/rules/scope_table.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <vector>

#include "policy/rules/policy_set.hpp"

namespace opmux::policy {
namespace {

// Shared by all tables, so that a scope of one runtime is never valid in another.
std::atomic<uint32_t> last_serial{0};

}  // namespace

struct ScopeRef::Scope {
  uint32_t serial = 0;
  uint64_t hash = 0;  ///< hash of the content
  std::string content;
  PolicyLayerPtr layer;
  std::shared_ptr<std::atomic<size_t>> alive;
  std::atomic<size_t> holders{0};
  std::atomic<uint64_t> last_use{0};

  void hold() {
    if (holders.fetch_add(1, std::memory_order_acq_rel) == 0) alive->fetch_add(1);
  }
  void release() {
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) alive->fetch_sub(1);
  }
};

ScopeRef::ScopeRef(const ScopeRef& other) : scope_(other.scope_) {
  if (scope_) scope_->hold();
}

ScopeRef::~ScopeRef() {
  if (scope_) scope_->release();
}

uint32_t ScopeRef::serial() const { return scope_ ? scope_->serial : 0; }
PolicyLayerPtr ScopeRef::layer() const { return scope_ ? scope_->layer : nullptr; }

/// Immutable except for the counters in its scopes, so that a forked child always sees a complete
/// state.
struct ScopeTable::State {
  static constexpr size_t kSlots = 4096;
  static_assert(kSlots >= 2 * (kMostRemembered + kMostAlive));

  std::vector<std::shared_ptr<Scope>> scopes;  ///< sorted by serial
  std::array<uint16_t, kSlots> slots{};  ///< hash table by content: index in `scopes` + 1, 0 = free

  /// The slot of the scope with this content, or the free slot where it would go.
  size_t slot_of(uint64_t hash, std::string_view content) const {
    size_t slot = hash % kSlots;
    while (slots[slot] != 0 && scopes[slots[slot] - 1u]->content != content) {
      slot = (slot + 1) % kSlots;
    }
    return slot;
  }

  std::shared_ptr<Scope> find(uint64_t hash, std::string_view content) const {
    const uint16_t position = slots[slot_of(hash, content)];
    return position == 0 ? nullptr : scopes[position - 1u];
  }

  std::shared_ptr<Scope> find(uint32_t serial) const {
    const auto at = std::lower_bound(scopes.begin(), scopes.end(), serial,
                                     [](const std::shared_ptr<Scope>& scope, uint32_t wanted) {
                                       return scope->serial < wanted;
                                     });
    return at == scopes.end() || (*at)->serial != serial ? nullptr : *at;
  }

  void insert(std::shared_ptr<Scope> scope) {
    const size_t slot = slot_of(scope->hash, scope->content);
    scopes.push_back(std::move(scope));
    slots[slot] = static_cast<uint16_t>(scopes.size());
  }
};

namespace {

constexpr std::string_view kTooMany =
    "256 different scopes are in use at the same time, which is the limit; reuse policies instead "
    "of making a new one per call";

Status too_many() { return {Code::resource, "policy.too_many_scopes", std::string(kTooMany)}; }

/// Evicts the least recently used scopes that have no references. Evicts a quarter at once, so that
/// eviction is rare.
template <class Scopes>
void forget_oldest(Scopes& scopes, size_t most) {
  std::vector<uint64_t> uses;
  for (const auto& scope : scopes) uses.push_back(scope->last_use.load());
  const auto limit = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() - (most - most / 4));
  std::nth_element(uses.begin(), limit, uses.end());
  std::erase_if(scopes, [oldest = *limit](const auto& scope) {
    return scope->last_use.load() < oldest && scope->holders.load() == 0;
  });
}

}  // namespace

ScopeTable::ScopeTable()
    : state_(nullptr), alive_(std::make_shared<std::atomic<size_t>>(size_t{0})) {
  state_.store(new State);  // after `alive_`, for which there may be no memory
}

ScopeTable::~ScopeTable() { delete state_.load(); }

Result<ScopeRef> ScopeTable::hold(const std::shared_ptr<Scope>& scope) {
  scope->hold();
  scope->last_use.store(uses_.fetch_add(1) + 1);
  ScopeRef held(scope);
  if (alive_->load() > kMostAlive) return too_many();
  return held;
}

/// A copy of `old` with one more scope.
const ScopeTable::State* ScopeTable::extended(const State& old, std::shared_ptr<Scope> scope) {
  if (old.scopes.size() < kMostRemembered) {
    auto next = std::make_unique<State>(old);
    next->insert(std::move(scope));
    return next.release();
  }
  std::vector<std::shared_ptr<Scope>> kept = old.scopes;
  forget_oldest(kept, kMostRemembered);
  auto next = std::make_unique<State>();
  for (std::shared_ptr<Scope>& one : kept) next->insert(std::move(one));
  next->insert(std::move(scope));
  return next.release();
}

Result<ScopeRef> ScopeTable::add(const ContentWriter& content, PolicyLayerPtr layer) {
  auto scope = std::make_shared<Scope>();
  scope->hash = content.hash();
  scope->content = content.bytes();
  scope->layer = std::move(layer);
  scope->alive = alive_;
  const std::lock_guard lock(mutex_);
  const State* old = state_.load();
  // Another thread may have added the scope since intern() looked.
  if (const auto known = old->find(scope->hash, scope->content)) return hold(known);
  if (alive_->load() >= kMostAlive || last_serial.load() == UINT32_MAX) return too_many();
  scope->serial = last_serial.fetch_add(1) + 1;
  state_.store(extended(*old, scope));
  delete old;
  return hold(scope);
}

Result<ScopeRef> ScopeTable::intern(const Policy& policy) {
  if (policy.empty()) return ScopeRef();
  ContentWriter content;
  content.add_all(policy);
  {
    const std::lock_guard lock(mutex_);
    const auto known = state_.load()->find(content.hash(), content.bytes());
    if (known) return hold(known);
  }
  auto layer = PolicyLayer::make(Source::scope, policy, "scope");
  if (!layer) return layer.error();
  return add(content, std::move(*layer));
}

Result<ScopeRef> ScopeTable::nest(const ScopeRef& outer, const Policy& inner) {
  if (!outer) return intern(inner);
  return intern(combine(outer.layer()->policy(), inner));
}

PolicyLayerPtr ScopeTable::find(uint32_t serial) const {
  const std::lock_guard lock(mutex_);
  const auto known = state_.load()->find(serial);
  return known ? known->layer : nullptr;
}

size_t ScopeTable::alive() const { return alive_->load(); }

}  // namespace opmux::policy
