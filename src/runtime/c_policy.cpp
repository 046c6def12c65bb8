#include "runtime/c_policy.hpp"

#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"

namespace opmux::runtime {
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
  if (Status bad = read_sized(*policy, sizeof(from), "policy", from); !bad.ok()) return bad;
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
  if (Status bad = read_orders(from, to); !bad.ok()) return bad;
  return to;
}

}  // namespace opmux::runtime

using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::read_policy;

int32_t opmux_policy_set(opmux_runtime* runtime, const opmux_policy* policy, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, policy", runtime, policy); !bad.ok()) return bad;
    auto read = read_policy(policy);
    return read ? runtime->cpp.set_policy(*read) : read.error();
  });
}

int32_t opmux_policy_reset(opmux_runtime* runtime, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    return runtime->cpp.reset_policy();
  });
}
