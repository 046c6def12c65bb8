#include <opmux/scope.hpp>

#include "dispatch/thread_block.hpp"
#include "policy/scope_table.hpp"
#include "runtime/core.hpp"

namespace opmux {
namespace {

constexpr uint64_t kAmbientBits = 0xFFFFFFFFu;

/// The scopes this thread is in, outermost first, with the runtime each belongs to.
struct ActiveScope {
  const runtime::Core* core;
  policy::ScopeRef scope;
};
thread_local std::vector<ActiveScope> active;

}  // namespace

void runtime::make_room_for_scopes() {
  dispatch::own_thread_block();
  active.reserve(1);
}

struct PolicyScope::State {
  uint64_t before;
};

PolicyScope::PolicyScope(Runtime& runtime, const Policy& policy) {
  policy::ScopeRef around;
  for (const ActiveScope& scope : active) {
    if (scope.core == &runtime.core()) around = scope.scope;
  }
  auto nested = runtime.core().scopes().nest(around, policy);
  if (!nested) {
    status_ = nested.error();
    return;
  }
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  state_ = std::make_unique<State>(State{block.context});
  active.push_back({&runtime.core(), *nested});
  block.context = (block.context & kAmbientBits) | uint64_t{nested->serial()} << 32;
}

PolicyScope::~PolicyScope() {
  if (state_ == nullptr) return;
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  block.context = (block.context & kAmbientBits) | (state_->before & ~kAmbientBits);
  active.pop_back();
}

AmbientScope::AmbientScope(const Ambient& ambient) {
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  before_ = block.context & kAmbientBits;
  const uint64_t bits = (ambient.grad ? registry::kGrad : 0) |
                        (ambient.capturing ? registry::kCapturing : 0) |
                        (ambient.deterministic ? registry::kDeterministic : 0) |
                        (ambient.training ? registry::kTraining : 0);
  block.context = (block.context & ~kAmbientBits) | bits;
}

AmbientScope::~AmbientScope() {
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  block.context = (block.context & ~kAmbientBits) | before_;
}

}  // namespace opmux
