#include <array>
#include <vector>

#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"

using opmux::Code;
using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::str_of;
using opmux::runtime::view_of;

int32_t opmux_policy_load(opmux_runtime* runtime, opmux_str text, opmux_str name,
                          opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.load_policy(view_of(text), view_of(name));
  });
}

int32_t opmux_policy_rollback(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.rollback();
  });
}

int32_t opmux_policy_on_change(opmux_runtime* runtime,
                               void (*tell)(void* context, const opmux_policy_change* change),
                               void* context, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, tell", runtime, tell); !bad.ok()) return bad;
    runtime->cpp.on_policy([tell, context](const opmux::PolicyChange& change) {
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
    runtime->cpp.add_validator([judge, context](const opmux::Policy& next) -> Status {
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
