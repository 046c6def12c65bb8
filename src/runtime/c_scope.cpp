#include <variant>

#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"
#include "runtime/c_policy.hpp"
#include "runtime/core.hpp"

namespace {

using opmux::AmbientScope;
using opmux::Code;
using opmux::PolicyScope;
using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;

using Scope = std::variant<std::unique_ptr<PolicyScope>, std::unique_ptr<AmbientScope>>;

/// The scopes that were pushed from C on this thread. A thread that ends pops them.
struct Stack {
  Stack() { opmux::runtime::make_room_for_scopes(); }
  ~Stack() {
    while (!scopes.empty()) scopes.pop_back();
  }
  std::vector<Scope> scopes;
};

Stack& pushed() {
  thread_local Stack stack;
  return stack;
}

template <class T>
void push(std::unique_ptr<T> scope) {
  pushed().scopes.emplace_back(std::move(scope));
}

}  // namespace

int32_t opmux_scope_push(opmux_runtime* runtime, const opmux_policy* policy, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, policy", runtime, policy); !bad.ok()) return bad;
    auto read = opmux::runtime::read_policy(policy);
    if (!read) return read.error();
    auto scope = std::make_unique<PolicyScope>(runtime->cpp, *read);
    if (!scope->status().ok()) return scope->status();
    push(std::move(scope));
    return {};
  });
}

int32_t opmux_ambient_push(uint32_t facts, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    constexpr uint32_t kKnown = OPMUX_AMBIENT_GRAD | OPMUX_AMBIENT_CAPTURING |
                                OPMUX_AMBIENT_DETERMINISTIC | OPMUX_AMBIENT_TRAINING;
    if ((facts & ~kKnown) != 0) {
      return {Code::invalid_argument, "c.ambient",
              "facts has bits that are not OPMUX_AMBIENT_* flags"};
    }
    push(std::make_unique<AmbientScope>(
        opmux::Ambient{.grad = (facts & OPMUX_AMBIENT_GRAD) != 0,
                       .capturing = (facts & OPMUX_AMBIENT_CAPTURING) != 0,
                       .deterministic = (facts & OPMUX_AMBIENT_DETERMINISTIC) != 0,
                       .training = (facts & OPMUX_AMBIENT_TRAINING) != 0}));
    return {};
  });
}

int32_t opmux_scope_pop(opmux_error* error) {
  return guarded(error, [&]() -> Status {
    std::vector<Scope>& scopes = pushed().scopes;
    if (scopes.empty()) {
      return {Code::invalid_argument, "c.scope", "no scope was pushed on this thread"};
    }
    scopes.pop_back();
    return {};
  });
}
