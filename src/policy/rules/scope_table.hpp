#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

#include "base/system/process.hpp"
#include "policy/rules/policy_set.hpp"

namespace opmux::policy {

/// Counted reference to a scope, which is alive while references exist. An empty reference (serial
/// 0) means no scope. Not safe for concurrent writes to one object.
class ScopeRef {
 public:
  ScopeRef() = default;
  ScopeRef(const ScopeRef& other);
  ScopeRef(ScopeRef&& other) noexcept : scope_(std::move(other.scope_)) {}
  ScopeRef& operator=(ScopeRef other) noexcept {
    scope_.swap(other.scope_);
    return *this;
  }
  ~ScopeRef();

  explicit operator bool() const { return scope_ != nullptr; }
  uint32_t serial() const;
  /// The scope's policy layer; null for no scope.
  PolicyLayerPtr layer() const;

 private:
  friend class ScopeTable;
  struct Scope;
  explicit ScopeRef(std::shared_ptr<Scope> held) : scope_(std::move(held)) {}
  std::shared_ptr<Scope> scope_;
};

/// Interns scopes by content. Thread-safe; a forked child continues with the parent's scopes.
class ScopeTable {
 public:
  static constexpr size_t kMostAlive = 256;
  /// Scopes without references keep their serial number while they are in this least-recently-used
  /// cache.
  static constexpr size_t kMostRemembered = 1024;

  ScopeTable();
  ~ScopeTable();
  ScopeTable(const ScopeTable&) = delete;
  ScopeTable& operator=(const ScopeTable&) = delete;

  /// Returns the scope with this content. Equal content gets an equal serial number while the table
  /// remembers it. Serial numbers are never reused and are unique across tables. An empty policy
  /// gives an empty reference. Fails like validate(), or with `resource`,
  /// "policy.too_many_scopes", if 256 other scopes are alive.
  Result<ScopeRef> intern(const Policy& policy);
  /// A scope nested in another: intern() of combine().
  Result<ScopeRef> nest(const ScopeRef& outer, const Policy& inner);

  /// The layer of a scope; null for serial 0 and for scopes that were evicted.
  PolicyLayerPtr find(uint32_t serial) const;
  size_t alive() const;

 private:
  using Scope = ScopeRef::Scope;
  struct State;

  Result<ScopeRef> hold(const std::shared_ptr<Scope>& scope);
  Result<ScopeRef> add(const ContentWriter& content, PolicyLayerPtr layer);
  static const State* extended(const State& old, std::shared_ptr<Scope> scope);

  mutable base::ForkMutex mutex_;
  std::atomic<const State*> state_;  ///< read and replaced as a whole, under the mutex
  std::shared_ptr<std::atomic<size_t>> alive_;
  std::atomic<uint64_t> uses_{0};
};

}  // namespace opmux::policy
