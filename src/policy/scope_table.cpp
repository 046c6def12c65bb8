#include "policy/scope_table.hpp"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/content.hpp"

namespace opmux::policy {

struct ScopeRef::Scope {
  uint32_t serial = 0;
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

/// Immutable but for the counters in its scopes: a child forked at any moment sees a whole one.
struct ScopeTable::State {
  std::unordered_map<std::string_view, std::shared_ptr<Scope>> by_content;
  std::unordered_map<uint32_t, std::shared_ptr<Scope>> by_serial;

  void insert(const std::shared_ptr<Scope>& scope) {
    by_content.emplace(scope->content, scope);
    by_serial.emplace(scope->serial, scope);
  }
};

namespace {

constexpr std::string_view kTooMany =
    "256 different scopes are in use at the same time, which is the limit; reuse policies instead "
    "of making a new one per call";

Status too_many() { return {Code::resource, "policy.too_many_scopes", std::string(kTooMany)}; }

/// The scopes to keep when one more comes: all that are in use and the last used of the others.
template <class Scopes>
auto kept_of(const Scopes& scopes, size_t most) {
  std::vector<typename Scopes::mapped_type> kept;
  for (const auto& [serial, scope] : scopes) kept.push_back(scope);
  if (kept.size() < most) return kept;
  std::sort(kept.begin(), kept.end(),
            [](const auto& a, const auto& b) { return a->last_use.load() > b->last_use.load(); });
  // A quarter goes at once, so that making room is rare.
  const auto recent = kept.begin() + static_cast<std::ptrdiff_t>(most - most / 4);
  kept.erase(std::remove_if(recent, kept.end(),
                            [](const auto& scope) { return scope->holders.load() == 0; }),
             kept.end());
  return kept;
}

}  // namespace

ScopeTable::ScopeTable()
    : state_(new State), alive_(std::make_shared<std::atomic<size_t>>(size_t{0})) {}

ScopeTable::~ScopeTable() { delete state_.load(); }

Result<ScopeRef> ScopeTable::hold(const std::shared_ptr<Scope>& scope) {
  scope->hold();
  scope->last_use.store(uses_.fetch_add(1) + 1);
  ScopeRef held(scope);
  if (alive_->load() > kMostAlive) return too_many();
  return held;
}

Result<ScopeRef> ScopeTable::add(std::string content, PolicyLayerPtr layer) {
  const std::lock_guard lock(mutex_);
  const State* old = state_.load();
  const auto known = old->by_content.find(content);  // another thread may have been faster
  if (known != old->by_content.end()) return hold(known->second);
  if (alive_->load() >= kMostAlive || last_serial_.load() == UINT32_MAX) return too_many();
  auto scope = std::make_shared<Scope>();
  scope->serial = last_serial_.fetch_add(1) + 1;
  scope->content = std::move(content);
  scope->layer = std::move(layer);
  scope->alive = alive_;
  auto next = std::make_unique<State>();
  for (const auto& kept : kept_of(old->by_serial, kMostRemembered)) next->insert(kept);
  next->insert(scope);
  state_.store(next.release());
  delete old;
  return hold(scope);
}

Result<ScopeRef> ScopeTable::intern(const Policy& policy) {
  if (policy.empty()) return ScopeRef();
  ContentWriter content;
  content.add_all(policy);
  {
    const std::lock_guard lock(mutex_);
    const State* state = state_.load();
    const auto known = state->by_content.find(content.bytes());
    if (known != state->by_content.end()) return hold(known->second);
  }
  auto layer = PolicyLayer::make(Source::scope, policy, "scope");
  if (!layer) return layer.error();
  return add(content.bytes(), std::move(*layer));
}

Result<ScopeRef> ScopeTable::nest(const ScopeRef& outer, const Policy& inner) {
  if (!outer) return intern(inner);
  return intern(combine(outer.layer()->policy(), inner));
}

PolicyLayerPtr ScopeTable::find(uint32_t serial) const {
  const std::lock_guard lock(mutex_);
  const State* state = state_.load();
  const auto known = state->by_serial.find(serial);
  return known == state->by_serial.end() ? nullptr : known->second->layer;
}

size_t ScopeTable::alive() const { return alive_->load(); }

}  // namespace opmux::policy
