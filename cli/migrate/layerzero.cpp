#include "cli/migrate/layerzero.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"

namespace opmux::cli::migrate {
namespace {

using Kind = TextNode::Kind;

std::string field_of(const TextNode& item, std::string_view key) {
  const TextNode* const value = value_of(item, key);
  return value == nullptr ? "" : value->text;
}

/// A rule of LayerZero before it is translated.
struct LzRule {
  Setting setting;
  std::string operation;  ///< empty: the operator at the end of the kernel's id
  const TextNode* conditions = nullptr;
  int rank = -1;  ///< -1: not said
};

/// Adds one rule per operator and condition. `keys` makes the keys of the rule from its operator.
template <class Keys>
void add_for_each(const LzRule& rule, std::string_view kernel, Keys keys, Migration& migration) {
  std::vector<LzTarget> targets = {{operator_of_kernel(kernel), ""}};
  if (!rule.operation.empty()) targets = targets_of(rule.operation);
  if (targets.empty()) {
    migration.note(rule.setting, Place::none,
                   base::concat("opmux has no operator for ", rule.operation));
  }
  for (const LzTarget& target : targets) {
    std::string why;
    const std::vector<std::string> conditions =
        conditions_of(rule.conditions, target, migration, why);
    if (conditions.empty()) migration.note(rule.setting, Place::none, why);
    for (const std::string& when : conditions) {
      Json one{{"name", rule.setting.name}, {"op", target.op}};
      if (targets.size() > 1) one["name"] = base::concat(rule.setting.name, " ", target.op);
      if (conditions.size() > 1) one["name"] = base::concat(rule.setting.name, " ", when);
      if (!when.empty()) one["when"] = when;
      if (rule.rank >= 0) one["rank"] = rule.rank;
      keys(target.op, std::move(one));
    }
  }
}

/// LayerZero warns of a lock on a missing kernel and goes on; `require` would leave nothing.
void add_lock(const LzRule& rule, const std::string& kernel, Migration& migration) {
  add_for_each(
      rule, kernel,
      [&](const std::string& op, Json one) {
        const Json tokens = tokens_of_kernel(kernel, op, migration);
        Json strong = one;
        strong["require"] = tokens;
        if (migration.applies(strong)) {
          migration.add_rule(rule.setting, std::move(strong));
          return;
        }
        one["prefer"] = tokens;
        migration.add_rule(rule.setting, std::move(one),
                           "prefer, because require would leave no implementation on this machine");
      },
      migration);
}

void add_deny(const LzRule& rule, const std::string& kernel, Migration& migration) {
  const auto keys = [&](const std::string& op, Json one) {
    one["deny"] = tokens_of_kernel(kernel, op, migration);
    migration.add_rule(rule.setting, std::move(one));
  };
  add_for_each(rule, kernel, keys, migration);
}

void add_prefer(const LzRule& rule, const Words& kernels, Migration& migration) {
  const auto keys = [&](const std::string& op, Json one) {
    one["prefer"] = Json::array();
    for (const std::string& kernel : kernels) {
      for (std::string& token : tokens_of_kernel(kernel, op, migration)) {
        one["prefer"].push_back(std::move(token));
      }
    }
    migration.add_rule(rule.setting, std::move(one));
  };
  add_for_each(rule, kernels.front(), keys, migration);
}

void add_boost(const LzRule& rule, const std::string& kernel, std::string_view key, double value,
               Migration& migration) {
  const auto keys = [&](const std::string& op, Json one) {
    one["boost"] = Json::array();
    for (const std::string& token : tokens_of_kernel(kernel, op, migration)) {
      one["boost"].push_back({{"impl", token}, {std::string(key), value}});
    }
    migration.add_rule(rule.setting, std::move(one));
  };
  add_for_each(rule, kernel, keys, migration);
}

/// Allows exclude every other kernel, and the reference stays because an operator without one of
/// these kernels could not be called otherwise.
void add_allows(const Setting& setting, const Words& kernels, Migration& migration) {
  Json allowed = Json::array();
  for (const std::string& kernel : kernels) {
    for (std::string& token : tokens_of_kernel(kernel, "*", migration)) {
      if (token != "reference") allowed.push_back(std::move(token));
    }
  }
  allowed.push_back("reference");
  migration.set_default(setting, "allow", std::move(allowed),
                        "and the reference, which operators without such a kernel need");
}

/// The kernel or backend of an entry, as a pattern over kernels.
std::string kernel_of(const TextNode& item) {
  if (item.is(Kind::scalar)) return item.text;
  const std::string kernel = field_of(item, "kernel");
  return kernel.empty() ? field_of(item, "backend") : kernel;
}

LzRule rule_of(const std::string& key, size_t index, const TextNode& item) {
  LzRule rule;
  rule.setting = {base::concat(key, "[", index, "]"), text_of_value(item)};
  if (!item.is(Kind::map)) return rule;
  rule.operation = field_of(item, "operation");
  rule.conditions = value_of(item, "when");
  if (rule.conditions == nullptr) rule.conditions = value_of(item, "conditions");
  return rule;
}

void take_boost(const LzRule& rule, const TextNode& item, Migration& migration) {
  const std::string kernel = kernel_of(item);
  bool some = false;
  for (const auto& [theirs, ours] :
       {std::pair{"priority_add", "add"}, std::pair{"priority_multiply", "multiply"}}) {
    const TextNode* const value = value_of(item, theirs);
    if (value == nullptr) continue;
    some = true;
    add_boost(rule, kernel, ours, policy::real_of(*value).value_or(0), migration);
  }
  if (!some) migration.note(rule.setting, Place::unknown, "a boost without a number");
}

/// A file of LayerZero and the parts that its rules share.
class LayerZeroFile {
 public:
  LayerZeroFile(const TextNode& file, Migration& migration) : file_(file), migration_(migration) {
    const TextNode* const defaults = value_of(file, "defaults");
    const TextNode* const rank =
        defaults == nullptr ? nullptr : value_of(*defaults, "default_priority");
    if (rank != nullptr) default_rank_ = static_cast<int>(policy::int_of(*rank).value_or(-1));
  }

  void take() {
    for (size_t i = 0; i + 1 < file_.items.size(); i += 2) {
      take_key(file_.items[i].text, file_.items[i + 1]);
    }
  }

 private:
  template <class Take>
  void each(const std::string& key, const TextNode& list, Take take) {
    if (!list.is(Kind::list)) {
      migration_.note({key, text_of_value(list)}, Place::unknown, "a list is expected");
    }
    for (size_t i = 0; list.is(Kind::list) && i < list.items.size(); ++i) {
      take(rule_of(key, i, list.items[i]), list.items[i]);
    }
  }

  /// The kernels of the fallback chain of an operation.
  Words chain_of(std::string_view operation) const {
    const TextNode* const chains = value_of(file_, "fallback_chains");
    const TextNode* const chain = chains == nullptr ? nullptr : value_of(*chains, operation);
    return chain == nullptr ? Words{} : words_of(*chain, ',');
  }

  void take_dispatch_rule(LzRule rule, const TextNode& item) {
    const TextNode* const rank = value_of(item, "priority");
    rule.rank = rank == nullptr ? default_rank_
                                : static_cast<int>(policy::int_of(*rank).value_or(default_rank_));
    Words kernels{kernel_of(item)};
    for (const std::string& kernel : chain_of(rule.operation)) {
      if (kernel != kernels.front()) kernels.push_back(kernel);
    }
    add_prefer(rule, kernels, migration_);
  }

  /// A map of operations: locks, kernels or fallback chains.
  template <class Take>
  void each_operation(const std::string& key, const TextNode& map, Take take) {
    for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
      const std::string& operation = map.items[i].text;
      LzRule rule;
      rule.setting = {base::concat(key, ".", operation), text_of_value(map.items[i + 1])};
      rule.operation = operation;
      take(std::move(rule), map.items[i + 1]);
    }
  }

  void take_key(const std::string& key, const TextNode& value) {
    const Setting setting{key, text_of_value(value)};
    const auto lock = [&](const LzRule& rule, const TextNode& item) {
      add_lock(rule, kernel_of(item), migration_);
    };
    if (key == "version") {
      migration_.note(setting, Place::policy, "opmux: 1, the version of opmux's own format");
    } else if (key == "locks") {
      each(key, value, lock);
    } else if (key == "deny" || key == "kernel_denies") {
      each(key, value, [&](const LzRule& rule, const TextNode& item) {
        add_deny(rule, kernel_of(item), migration_);
      });
    } else if (key == "allow" || key == "kernel_allows") {
      take_allows(key, value);
    } else if (key == "boosts") {
      each(key, value,
           [&](const LzRule& rule, const TextNode& item) { take_boost(rule, item, migration_); });
    } else if (key == "dispatch_rules") {
      each(key, value,
           [&](const LzRule& rule, const TextNode& item) { take_dispatch_rule(rule, item); });
    } else if (key == "kernel_locks" || key == "kernels") {
      each_operation(key, value, lock);
    } else if (key == "fallback_chains") {
      each_operation(key, value, [&](LzRule rule, const TextNode& item) {
        rule.rank = 0;  // after every rule for the operation
        add_prefer(rule, words_of(item, ','), migration_);
      });
    } else if (key == "defaults" || key == "dispatch") {
      each_operation(key, value, [&](const LzRule& rule, const TextNode&) {
        take_layerzero_option(rule.operation, rule.setting, migration_);
      });
    } else {
      take_layerzero_option(key, setting, migration_);
    }
  }

  void take_allows(const std::string& key, const TextNode& value) {
    Words kernels;
    each(key, value, [&](const LzRule& rule, const TextNode& item) {
      if (rule.conditions != nullptr) {
        migration_.note(rule.setting, Place::none, "an allow list has no condition");
      } else {
        kernels.push_back(kernel_of(item));
      }
    });
    if (!kernels.empty()) add_allows({key, text_of_value(value)}, kernels, migration_);
  }

  const TextNode& file_;
  Migration& migration_;
  int default_rank_ = -1;
};

}  // namespace

void take_layerzero(const TextNode& file, Migration& migration) {
  LayerZeroFile(file, migration).take();
}

bool take_layerzero_variable(const Setting& variable, Migration& migration) {
  std::string_view name = variable.name;
  if (!name.starts_with("LAYERZERO_")) return false;
  name.remove_prefix(std::string_view("LAYERZERO_").size());
  LzRule rule;
  rule.setting = variable;
  if (name.starts_with("LOCK_")) {
    rule.operation = lowered(name.substr(5));
    // The variable writes norm.rms as norm_rms; names that contain '_' stay as they are.
    if (targets_of(rule.operation).empty()) {
      std::ranges::replace(rule.operation, '_', '.');
    }
    add_lock(rule, variable.value, migration);
  } else if (name == "DENY") {
    for (const std::string& kernel : split(variable.value, ',')) {
      rule.setting = {base::concat(variable.name, "[", kernel, "]"), kernel};
      add_deny(rule, kernel, migration);
    }
  } else if (name == "ALLOW") {
    add_allows(variable, split(variable.value, ','), migration);
  } else if (name.starts_with("BOOST_")) {
    const std::string kernel = lowered(name.substr(6));
    const bool times = variable.value.starts_with('*') || variable.value.starts_with('x');
    add_boost(rule, kernel, times ? "multiply" : "add",
              std::strtod(variable.value.c_str() + (times ? 1 : 0), nullptr), migration);
  } else {
    take_layerzero_option(lowered(name), variable, migration);
  }
  return true;
}

}  // namespace opmux::cli::migrate
