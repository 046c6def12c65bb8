#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

#include "base/process.hpp"
#include "policy/content.hpp"
#include "policy/policy_set.hpp"

namespace opmux::policy {

/// A scope in use. Copies count; when the last one goes, the scope is no longer alive. An empty one
/// (serial 0) means no scope. One value is not to be written from two threads.
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
  /// Null for no scope.
  PolicyLayerPtr layer() const;

 private:
  friend class ScopeTable;
  struct Scope;
  explicit ScopeRef(std::shared_ptr<Scope> held) : scope_(std::move(held)) {}
  std::shared_ptr<Scope> scope_;
};

/// Scopes by content. Thread-safe; after a fork the child goes on with what was there.
class ScopeTable {
 public:
  static constexpr size_t kMostAlive = 256;
  /// Scopes that nobody uses any more keep their number while they are among the last of these.
  static constexpr size_t kMostRemembered = 1024;

  ScopeTable();
  ~ScopeTable();
  ScopeTable(const ScopeTable&) = delete;
  ScopeTable& operator=(const ScopeTable&) = delete;

  /// The scope with this content: equal content, equal serial number; a number never comes to mean
  /// another content, nor anything in another table. An empty policy is no scope. Fails as
  /// validate() does, or with `resource`, "policy.too_many_scopes", if 256 others are alive.
  Result<ScopeRef> intern(const Policy& policy);
  /// A scope inside another: combine() and intern().
  Result<ScopeRef> nest(const ScopeRef& outer, const Policy& inner);

  /// What a serial number means; null for 0 and for a scope long gone.
  PolicyLayerPtr find(uint32_t serial) const;
  size_t alive() const;

 private:
  using Scope = ScopeRef::Scope;
  struct State;

  Result<ScopeRef> hold(const std::shared_ptr<Scope>& scope);
  Result<ScopeRef> add(const ContentWriter& content, PolicyLayerPtr layer);
  static const State* extended(const State& old, std::shared_ptr<Scope> scope);

  mutable base::ForkMutex mutex_;
  std::atomic<const State*> state_;  ///< read and replaced under the mutex, as a whole
  std::shared_ptr<std::atomic<size_t>> alive_;
  std::atomic<uint64_t> uses_{0};
};

}  // namespace opmux::policy
