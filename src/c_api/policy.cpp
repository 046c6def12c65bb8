#include "c_api/policy.hpp"

#include <array>
#include <cstddef>
#include <variant>
#include <vector>

#include "c_api/error.hpp"
#include "c_api/handles.hpp"
#include "runtime/core.hpp"

namespace opmux::c_api {
namespace {

struct ListField {
  const char* name;
  opmux_str_list opmux_policy::* from;
  std::vector<std::string> Policy::* to;
};

constexpr ListField kLists[] = {
    {"policy.prefer", &opmux_policy::prefer, &Policy::prefer},
    {"policy.require", &opmux_policy::require, &Policy::require},
    {"policy.deny", &opmux_policy::deny, &Policy::deny},
    {"policy.allow", &opmux_policy::allow, &Policy::allow},
    {"policy.allow_vendors", &opmux_policy::allow_vendors, &Policy::allow_vendors},
    {"policy.deny_vendors", &opmux_policy::deny_vendors, &Policy::deny_vendors},
    {"policy.transforms", &opmux_policy::transforms, &Policy::transforms},
};

Status read_orders(const opmux_policy& from, Policy& to) {
  if (from.per_op_count == 0) return {};
  if (Status bad = none_null("policy.per_op", from.per_op); !bad.ok()) return bad;
  const char* at = reinterpret_cast<const char*>(from.per_op);
  for (uint32_t i = 0; i < from.per_op_count; ++i, at += from.per_op_stride) {
    opmux_op_order entry{};
    const auto& given = *reinterpret_cast<const opmux_op_order*>(at);
    if (Status bad = read_sized(given, sizeof(entry), "policy.per_op", entry); !bad.ok())
      return bad;
    if (from.per_op_stride < given.struct_size) {
      return {Code::invalid_argument, "c.stride", "policy.per_op_stride is smaller than an entry"};
    }
    auto order = read_list(entry.order, "policy.per_op");
    if (!order) return order.error();
    to.per_op[std::string(view_of(entry.op))] = *std::move(order);
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> read_list(const opmux_str_list& list, const char* what) {
  std::vector<std::string> words;
  if (list.count == 0) return words;
  if (Status bad = none_null(what, list.items); !bad.ok()) return bad;
  for (size_t i = 0; i < list.count; ++i) words.emplace_back(view_of(list.items[i]));
  return words;
}

Result<Policy> read_policy(const opmux_policy* policy) {
  if (Status bad = none_null("policy", policy); !bad.ok()) return bad;
  opmux_policy from{};
  constexpr size_t kLeast = offsetof(opmux_policy, allow_none);
  if (Status bad = read_sized(*policy, kLeast, "policy", from); !bad.ok()) return bad;
  Policy to;
  for (const ListField& field : kLists) {
    auto words = read_list(from.*field.from, field.name);
    if (!words) return words.error();
    to.*field.to = *std::move(words);
  }
  if (from.strict > OPMUX_STRICT_OFF) {
    return Status(Code::invalid_argument, "c.strict", "policy.strict is not an OPMUX_STRICT_*");
  }
  if (from.strict != OPMUX_STRICT_UNSET) to.strict = from.strict == OPMUX_STRICT_ON;
  to.allow_none = from.allow_none != 0;
  if (from.tuning > OPMUX_TUNING_ONLINE_APPLY) {
    return Status(Code::invalid_argument, "c.tuning", "policy.tuning is not an OPMUX_TUNING_*");
  }
  if (from.tuning != OPMUX_TUNING_UNSET)
    to.tuning = static_cast<Tuning>(from.tuning - OPMUX_TUNING_OFF);
  if (Status bad = read_orders(from, to); !bad.ok()) return bad;
  return to;
}

}  // namespace opmux::c_api

using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::read_policy;

int32_t opmux_policy_set(opmux_runtime* runtime, const opmux_policy* policy, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, policy", runtime, policy); !bad.ok()) return bad;
    auto read = read_policy(policy);
    return read ? runtime->cpp.policy().set(*read) : read.error();
  });
}

int32_t opmux_policy_reset(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.policy().reset();
  });
}

using opmux::Code;
using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::str_of;
using opmux::c_api::view_of;

int32_t opmux_policy_load(opmux_runtime* runtime, opmux_str text, opmux_str name,
                          opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.policy().load(view_of(text), view_of(name));
  });
}

int32_t opmux_policy_rollback(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.policy().rollback();
  });
}

int32_t opmux_policy_on_change(opmux_runtime* runtime,
                               void (*tell)(void* context, const opmux_policy_change* change),
                               void* context, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, tell", runtime, tell); !bad.ok()) return bad;
    runtime->cpp.policy().on_change([tell, context](const opmux::PolicyChange& change) {
      const std::string why(change.status.message());
      const opmux_policy_change plain{sizeof(opmux_policy_change),
                                      static_cast<int32_t>(change.status.code()),
                                      str_of(change.name),
                                      str_of(change.digest),
                                      str_of(change.origin),
                                      str_of(why),
                                      change.version,
                                      change.generation};
      tell(context, &plain);
    });
    return {};
  });
}

int32_t opmux_policy_add_validator(opmux_runtime* runtime,
                                   int32_t (*judge)(void* context, const opmux_rule_info* rules,
                                                    size_t count, opmux_error* why),
                                   void* context, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, judge", runtime, judge); !bad.ok()) return bad;
    runtime->cpp.policy().add_validator([judge, context](const opmux::Policy& next) -> Status {
      std::vector<opmux_rule_info> rules;
      for (const opmux::Rule& rule : next.rules) {
        rules.push_back({str_of(rule.name), str_of(rule.op), str_of(rule.reason),
                         str_of(rule.owner), str_of(rule.expires), str_of(rule.where)});
      }
      std::array<char, 512> text{};
      opmux_error why = opmux_error_of(text.data(), text.size());
      const int32_t outcome = judge(context, rules.data(), rules.size(), &why);
      if (outcome == OPMUX_OK) return {};
      return {static_cast<Code>(outcome), "policy.validator", text.data()};
    });
    return {};
  });
}

int32_t opmux_tick(opmux_runtime* runtime, uint64_t now_ns, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    runtime->cpp.tick(std::chrono::nanoseconds(now_ns));
    return {};
  });
}

using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::view_of;

int32_t opmux_runtime_freeze(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.lockfile().freeze().error();
  });
}

int32_t opmux_runtime_freeze_by(opmux_runtime* runtime, opmux_str lockfile, opmux_str name,
                                opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    const auto lock = opmux::Lockfile::parse(view_of(lockfile), view_of(name));
    return lock ? runtime->cpp.lockfile().freeze(*lock, view_of(name)) : lock.error();
  });
}

int32_t opmux_runtime_frozen(const opmux_runtime* runtime) {
  return runtime != nullptr && runtime->cpp.lockfile().frozen() ? 1 : 0;
}

using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;
using opmux::c_api::str_of;
using opmux::c_api::view_of;

namespace {

std::optional<size_t> ask(const opmux_selector& selector, const opmux::Selection& asked) {
  std::vector<opmux_str> accepted;
  for (const opmux::Candidate& each : asked.accepted) accepted.push_back(str_of(each.id));
  std::vector<opmux_selector_fact> facts;
  for (const opmux::SelectorFact& fact : asked.facts) {
    facts.push_back(
        {str_of(fact.name), str_of(fact.text), fact.number.value_or(0), fact.number ? 1 : 0});
  }
  const opmux_selection plain{sizeof(opmux_selection),
                              0,
                              str_of(asked.op),
                              accepted.data(),
                              accepted.size(),
                              facts.data(),
                              facts.size()};
  const int64_t picked = selector.pick(selector.context, &plain);
  if (picked < 0) return std::nullopt;
  return static_cast<size_t>(picked);
}

}  // namespace

int32_t opmux_selector_set(opmux_runtime* runtime, const opmux_selector* selector,
                           opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    if (selector == nullptr) return runtime->cpp.reset_selector();
    opmux_selector from{};
    if (Status bad = opmux::c_api::read_sized(*selector, sizeof(from), "selector", from);
        !bad.ok()) {
      return bad;
    }
    auto reads = opmux::c_api::read_list(from.reads, "selector.reads");
    if (!reads) return reads.error();
    opmux::Selector made;
    if (from.name.size != 0) made.name = view_of(from.name);
    made.reads = *std::move(reads);
    if (from.pick != nullptr) {
      made.pick = [from](const opmux::Selection& asked) { return ask(from, asked); };
    }
    return runtime->cpp.set_selector(made);
  });
}

namespace {

using opmux::AmbientScope;
using opmux::Code;
using opmux::PolicyScope;
using opmux::Status;
using opmux::c_api::guarded;
using opmux::c_api::none_null;

using Scope = std::variant<std::unique_ptr<PolicyScope>, std::unique_ptr<AmbientScope>>;

/// The scopes that were pushed from C on a thread. A thread that ends pops them.
struct Stack final : opmux::dispatch::ThreadObject {
  ~Stack() override;
  std::vector<Scope> scopes;
};
/// Null before the first scope of the thread. Belongs to the thread's block.
thread_local constinit Stack* pushed __attribute__((tls_model("initial-exec"))) = nullptr;

Stack::~Stack() {
  while (!scopes.empty()) scopes.pop_back();
  pushed = nullptr;
}

/// The stack of the calling thread, with room for one more scope.
std::vector<Scope>& stack_with_room() {
  if (pushed == nullptr) {
    // The objects of a thread are destroyed in reverse order, and the stack uses those of scopes.
    opmux::runtime::make_room_for_scopes();
    auto made = std::make_unique<Stack>();
    pushed = made.get();
    opmux::dispatch::own_thread_block().keep_object(std::move(made));
  }
  std::vector<Scope>& scopes = pushed->scopes;
  if (scopes.size() == scopes.capacity()) scopes.reserve(2 * scopes.size() + 4);
  return scopes;
}

}  // namespace

int32_t opmux_scope_push(opmux_runtime* runtime, const opmux_policy* policy, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, policy", runtime, policy); !bad.ok()) return bad;
    auto read = opmux::c_api::read_policy(policy);
    if (!read) return read.error();
    std::vector<Scope>& scopes = stack_with_room();
    auto scope = std::make_unique<PolicyScope>(runtime->cpp, *read);
    if (!scope->status().ok()) return scope->status();
    scopes.emplace_back(std::move(scope));
    return {};
  });
}

int32_t opmux_ambient_push(uint32_t facts, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    constexpr uint32_t kKnown = OPMUX_AMBIENT_GRAD | OPMUX_AMBIENT_CAPTURING |
                                OPMUX_AMBIENT_DETERMINISTIC | OPMUX_AMBIENT_TRAINING |
                                OPMUX_AMBIENT_INFERENCE | OPMUX_AMBIENT_AUTOCAST;
    if ((facts & ~kKnown) != 0) {
      return {Code::invalid_argument, "c.ambient",
              "facts has bits that are not OPMUX_AMBIENT_* flags"};
    }
    stack_with_room().emplace_back(std::make_unique<AmbientScope>(
        opmux::Ambient{.grad = (facts & OPMUX_AMBIENT_GRAD) != 0,
                       .capturing = (facts & OPMUX_AMBIENT_CAPTURING) != 0,
                       .deterministic = (facts & OPMUX_AMBIENT_DETERMINISTIC) != 0,
                       .training = (facts & OPMUX_AMBIENT_TRAINING) != 0,
                       .inference = (facts & OPMUX_AMBIENT_INFERENCE) != 0,
                       .autocast = (facts & OPMUX_AMBIENT_AUTOCAST) != 0}));
    return {};
  });
}

int32_t opmux_scope_pop(opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (pushed == nullptr || pushed->scopes.empty()) {
      return {Code::invalid_argument, "c.scope", "no scope was pushed on this thread"};
    }
    pushed->scopes.pop_back();
    return {};
  });
}
