#include <opmux/detail/entered_call.hpp>
#include <opmux/policy.hpp>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "dispatch/call/thread_block.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/operator_policy.hpp"
#include "policy/rules/scope_table.hpp"
#include "policy/rules/unknown_operators.hpp"
#include "runtime/core.hpp"

namespace opmux {
namespace {

constexpr uint64_t kAmbientBits = 0xFFFFFFFFu;

/// The scopes that this thread is in, outermost first, each with its runtime.
struct ActiveScope {
  const runtime::Core* core;
  policy::ScopeRef scope;
};
struct ActiveScopes final : dispatch::ThreadObject {
  ~ActiveScopes() override;
  std::vector<ActiveScope> all;
};
/// Null before the first scope of the thread. Belongs to the thread's block.
thread_local constinit ActiveScopes* active __attribute__((tls_model("initial-exec"))) = nullptr;

ActiveScopes::~ActiveScopes() { active = nullptr; }

/// The scopes of the calling thread, which uses the block.
std::vector<ActiveScope>& active_of(dispatch::ThreadBlock& block) {
  if (active == nullptr) {
    auto made = std::make_unique<ActiveScopes>();
    active = made.get();
    block.keep_object(std::move(made));
  }
  return active->all;
}

/// The scope that was entered last, and the size of `active` at that time. Uses initial-exec TLS,
/// because language bindings create an EnteredScope for every call.
struct Entered {
  const Scope* scope = nullptr;
  size_t depth = 0;
  size_t active = 0;
};
thread_local constinit Entered entered __attribute__((tls_model("initial-exec")));

/// The innermost scope of a runtime among those that were opened since the last EnteredScope.
policy::ScopeRef innermost_active(const runtime::Core* core) {
  for (size_t i = entered.active; i > entered.depth; --i) {
    if (active->all[i - 1].core == core) return active->all[i - 1].scope;
  }
  return {};
}

Result<policy::ScopeRef> nest_checked(runtime::Core& core, const policy::ScopeRef& around,
                                      const Policy& policy) {
  auto nested = core.scopes().nest(around, policy);
  if (!nested || (policy.rules.empty() && policy.per_op.empty() && !policy.strict_names)) {
    return nested;
  }
  const registry::RegistrySnapshotPtr present = core.registry().snapshot();
  if (Status unknown = policy::check_operators(policy, *present); !unknown.ok()) return unknown;
  if (Status absent = policy::check_strict_names(policy, *present); !absent.ok()) return absent;
  const Status status = policy::check_conditions(policy, *present);
  if (!status.ok()) return status;
  return nested;
}

/// The calling thread's block. The shared empty block, which has no number, is replaced first.
dispatch::ThreadBlock& block_to_write() {
  dispatch::ThreadBlock& block = *dispatch::thread_block;
  return block.number != 0 ? block : dispatch::own_thread_block();
}

void set_scope_bits(dispatch::ThreadBlock& block, uint64_t context) {
  block.context = (block.context & kAmbientBits) | (context & ~kAmbientBits);
}

}  // namespace

void runtime::make_room_for_scopes() { (void)active_of(dispatch::own_thread_block()); }

struct PolicyScope::State {
  uint64_t before;
};

struct Scope::Held {
  const runtime::Core* core;
  policy::ScopeRef scope;
};

Scope::Scope() noexcept = default;
Scope::Scope(const Scope&) = default;
Scope::Scope(Scope&&) noexcept = default;
Scope& Scope::operator=(Scope other) noexcept {
  held_.swap(other.held_);
  context_ = other.context_;
  return *this;
}
Scope::~Scope() = default;

Result<Scope> Scope::make(Runtime& runtime, const Policy& policy, const Scope& around) {
  return base::or_out_of_memory([&]() -> Result<Scope> {
    const bool same = around.held_ != nullptr && around.held_->core == &runtime.core();
    auto nested =
        nest_checked(runtime.core(), same ? around.held_->scope : policy::ScopeRef(), policy);
    if (!nested) return std::move(nested).error();
    Scope scope;
    scope.context_ = uint64_t{nested->serial()} << 32;
    scope.held_ = std::make_shared<const Held>(Held{&runtime.core(), std::move(*nested)});
    return scope;
  });
}

EnteredScope::EnteredScope(const Scope& scope)
    : outer_(entered.scope), outer_depth_(entered.depth) {
  dispatch::ThreadBlock& block = block_to_write();
  before_ = block.context;
  set_scope_bits(block, scope.context_);
  entered.scope = &scope;
  entered.depth = entered.active;
}

EnteredScope::~EnteredScope() {
  set_scope_bits(*dispatch::thread_block, before_);
  entered.scope = outer_;
  entered.depth = outer_depth_;
}

uint32_t current_scope_number() noexcept {
  return static_cast<uint32_t>(dispatch::thread_block->context >> 32);
}

PolicyScope::PolicyScope(Runtime& runtime, const Policy& policy)
    : PolicyScope(runtime.core(), policy) {}

PolicyScope::PolicyScope(runtime::Core& core, const Policy& policy)
    : status_(base::or_out_of_memory([&] { return enter(core, policy); })) {}

Status PolicyScope::enter(runtime::Core& core, const Policy& policy) {
  policy::ScopeRef around = innermost_active(&core);
  if (!around && entered.scope != nullptr && entered.scope->held_ != nullptr &&
      entered.scope->held_->core == &core) {
    around = entered.scope->held_->scope;
  }
  auto nested = nest_checked(core, around, policy);
  if (!nested) return std::move(nested).error();
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  auto state = std::make_unique<State>(State{block.context});
  active_of(block).push_back({&core, *nested});
  state_ = std::move(state);
  ++entered.active;
  set_scope_bits(block, uint64_t{nested->serial()} << 32);
  return {};
}

PolicyScope::~PolicyScope() {
  if (state_ == nullptr) return;
  // The constructor has made the block and the list.
  set_scope_bits(*dispatch::thread_block, state_->before);
  active->all.pop_back();
  --entered.active;
}

AmbientScope::AmbientScope(const Ambient& ambient) {
  dispatch::ThreadBlock& block = dispatch::own_thread_block();
  before_ = block.context & kAmbientBits;
  const uint64_t bits =
      (ambient.grad ? schema::kGrad : 0) | (ambient.capturing ? schema::kCapturing : 0) |
      (ambient.deterministic ? schema::kDeterministic : 0) |
      (ambient.training ? schema::kTraining : 0) | (ambient.inference ? schema::kInference : 0) |
      (ambient.autocast ? schema::kAutocast : 0);
  block.context = (block.context & ~kAmbientBits) | bits;
}

AmbientScope::~AmbientScope() {
  dispatch::ThreadBlock& block = *dispatch::thread_block;
  block.context = (block.context & ~kAmbientBits) | before_;
}

uint32_t detail::change_ambient(uint32_t removed, uint32_t added) noexcept {
  if (dispatch::thread_block->number == 0 &&
      !base::if_memory([] { dispatch::own_thread_block(); })) {
    return 0;
  }
  dispatch::ThreadBlock& block = *dispatch::thread_block;
  const auto before = static_cast<uint32_t>(block.context);
  block.context = (block.context & ~uint64_t{removed}) | added;
  return before;
}

void detail::set_ambient(uint32_t facts) noexcept {
  dispatch::ThreadBlock& block = *dispatch::thread_block;
  if (static_cast<uint32_t>(block.context) == facts) return;  // the shared empty block too
  block.context = (block.context & ~kAmbientBits) | facts;
}

detail::EnteredCall::EnteredCall(const Scope& scope, uint32_t removed, uint32_t added)
    : outer_(entered.scope), outer_depth_(entered.depth) {
  dispatch::ThreadBlock& block = block_to_write();
  before_ = block.context;
  block.context =
      (scope.context_ & ~kAmbientBits) | (before_ & kAmbientBits & ~uint64_t{removed}) | added;
  entered.scope = &scope;
  entered.depth = entered.active;
}

detail::EnteredCall::~EnteredCall() {
  dispatch::thread_block->context = before_;
  entered.scope = outer_;
  entered.depth = outer_depth_;
}

}  // namespace opmux

namespace opmux::runtime {

Status Core::set_rank(std::optional<int> rank, std::optional<int> tp_size) {
  constexpr int kHighest = schema::RankFacts::kHighest;
  const bool in_range = rank.value_or(0) >= 0 && rank.value_or(0) <= kHighest &&
                        tp_size.value_or(1) >= 1 && tp_size.value_or(1) <= kHighest;
  if (!in_range) {
    return {Code::invalid_argument, "ambient.rank",
            base::concat("a rank is a number from 0 to ", kHighest, " and tp_size one from 1 to ",
                         kHighest)};
  }
  rank_by_program_.store(true, std::memory_order_relaxed);
  engine_.set_ranks(rank, tp_size);
  return {};
}

std::vector<policy::Setting> Core::rank_settings() const {
  constexpr std::string_view kVariables[] = {"OPMUX_RANK", "OPMUX_TP_SIZE"};
  std::vector<policy::Setting> lines;
  for (size_t i = 0; i < schema::kRankNames.size(); ++i) {
    const int64_t value = engine_.ranks().value(i);
    if (value == schema::kAbsent) continue;
    lines.push_back({std::string(schema::kRankNames[i]), std::to_string(value),
                     rank_by_program_.load(std::memory_order_relaxed)
                         ? "set_rank (code)"
                         : base::concat(kVariables[i], " (environment)")});
  }
  return lines;
}

}  // namespace opmux::runtime
