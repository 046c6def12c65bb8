#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"
#include "cli/migrate/systems.hpp"
#include "cli/migrate/vllm_fl.hpp"

namespace opmux::cli::migrate {
namespace {

using Kind = TextNode::Kind;

/// A token of FL in opmux's words. FL's ids of implementations, such as vendor.acme, name a kind.
std::string token_of_fl(std::string_view theirs) {
  std::string_view word = theirs;
  if (word.starts_with("impl:")) word.remove_prefix(5);
  if (word == "flagos" || word == "flaggems" || word.starts_with("default.")) return "default";
  if (word.starts_with("reference.")) return "reference";
  if (word.starts_with("vendor.")) return base::concat("vendor:", word.substr(7));
  return std::string(word);
}

Json tokens_of_fl(const Words& words) {
  Json tokens = Json::array();
  for (const std::string& word : words) tokens.push_back(token_of_fl(word));
  return tokens;
}

bool is_true(std::string_view text) {
  return text == "1" || text == "true" || text == "True" || text == "on" || text == "yes";
}

void take_prefer(const Setting& setting, Migration& migration) {
  const std::string kind = token_of_fl(setting.value);
  if (kind != "default" && kind != "vendor" && kind != "reference") {
    migration.note(setting, Place::unknown, "its values are flagos, vendor and reference");
    return;
  }
  migration.set_default(setting, "prefer", Json::array({kind}));
}

void take_strict(const Setting& setting, Migration& migration) {
  migration.set_default(setting, "strict", is_true(setting.value),
                        "1 returns the first failure, as since March 2026; earlier versions of "
                        "vllm-plugin-FL fell back with 1");
}

void take_order(const Setting& setting, std::string_view op, const Words& words,
                Migration& migration) {
  for (const std::string& name : operators_of_fl(op)) {
    if (migration.has_operator(name)) {
      migration.add_rule(setting, {{"name", base::concat("order of ", name)},
                                   {"op", name},
                                   {"order", tokens_of_fl(words)}});
    } else {
      migration.note(setting, Place::none,
                     base::concat("opmux has no operator '", name,
                                  "'; a plugin that defines one calls it VENDOR.", name));
    }
  }
}

/// FL lets vendors through by name and touches no other kind.
void take_allowed(const Setting& setting, const Words& vendors, Migration& migration) {
  if (vendors.empty()) {
    migration.note(setting, Place::policy, "an empty list allows all vendors in both systems");
    return;
  }
  Json allowed = Json::array({"default", "reference"});
  for (const std::string& vendor : vendors) allowed.push_back(base::concat("vendor:", vendor));
  migration.set_default(setting, "allow", std::move(allowed));
}

void take_denied(const Setting& setting, const Words& vendors, Migration& migration) {
  Json denied = Json::array();
  for (const std::string& vendor : vendors) denied.push_back(base::concat("vendor:", vendor));
  if (vendors.empty()) {
    migration.note(setting, Place::policy, "an empty list denies no vendor in both systems");
  } else {
    migration.add_rule(setting, {{"name", "denied vendors"}, {"op", "*"}, {"deny", denied}});
  }
}

constexpr char kTorchOperator[] =
    "an operator of torch that opmux does not dispatch; leave it out of FlagGems itself";

Json without_flaggems(const std::string& op) {
  return {{"name", base::concat("no FlagGems for ", op)},
          {"op", op},
          {"deny", Json::array({base::concat(op, "/flaggems.*")})}};
}

void take_blacklist(const Setting& setting, const Words& names, Migration& migration) {
  if (names.empty()) migration.note(setting, Place::policy, "an empty list denies nothing");
  for (const std::string& one : names) {
    const Setting item{base::concat(setting.name, "[", one, "]"), one};
    for (const std::string& op : operators_of_fl(one)) {
      if (migration.has_operator(op)) {
        migration.add_rule(item, without_flaggems(op), "for a provider named flaggems");
      } else {
        migration.note(item, Place::none, kTorchOperator);
      }
    }
  }
}

void take_whitelist(const Setting& setting, const Words& names, Migration& migration) {
  Words kept;
  for (const std::string& one : names) {
    const Setting item{base::concat(setting.name, "[", one, "]"), one};
    for (const std::string& op : operators_of_fl(one)) {
      kept.push_back(op);
      const bool here = migration.has_operator(op);
      migration.note(item, here ? Place::policy : Place::none,
                     here ? "the other operators deny the provider flaggems" : kTorchOperator);
    }
  }
  for (const OperatorInfo& op : migration.operators()) {
    if (std::ranges::find(kept, op.name) != kept.end()) continue;
    migration.add_rule({base::concat(setting.name, "[not ", op.name, "]"), op.name},
                       without_flaggems(op.name));
  }
}

/// The kind of vLLM's layers, for additional_config.
std::string_view layer_kind(std::string_view name) {
  if (name == "silu_and_mul" || name == "gelu_and_mul") return "activation";
  if (name == "rms_norm") return "norm";
  if (name == "rotary_embedding") return "rotary";
  return name == "fused_moe" || name == "unquantized_fused_moe_method" ? "moe" : "";
}

void take_layers(const Setting& setting, const Words& names, bool replaced, Migration& migration) {
  Words kinds;
  for (const std::string_view kind :
       {"norm", "activation", "rotary", "linear", "attention", "moe"}) {
    const bool listed = std::ranges::any_of(
        names, [&](const std::string& name) { return layer_kind(name) == kind; });
    if (listed == replaced) kinds.push_back(base::concat("\"", kind, "\""));
  }
  Words others;
  for (const std::string& name : names) {
    if (layer_kind(name).empty()) others.push_back(name);
  }
  if (!others.empty()) {
    migration.note(setting, Place::none,
                   base::concat("opmux replaces no layer named ", base::join(others, ", ")));
  }
  if (names.empty()) {
    migration.note(setting, Place::code, "an empty list; all kinds of layers are replaced");
  } else if (others.size() < names.size()) {
    migration.note(setting, Place::code,
                   base::concat("vLLM's additional_config={\"opmux\": {\"kinds\": [",
                                base::join(kinds, ", "), "]}}"));
  }
}

/// A key of a platform's file.
void take_key(const std::string& key, const TextNode& value, Migration& migration) {
  const Setting setting{key, text_of_value(value)};
  if (key == "prefer") return take_prefer({key, value.text}, migration);
  if (key == "strict") return take_strict({key, value.text}, migration);
  if (key == "allow_vendors") return take_allowed(setting, words_of(value, ','), migration);
  if (key == "deny_vendors") return take_denied(setting, words_of(value, ','), migration);
  if (key == "flagos_blacklist") return take_blacklist(setting, words_of(value, ','), migration);
  if (key == "flagos_whitelist") return take_whitelist(setting, words_of(value, ','), migration);
  if (key == "oot_blacklist") return take_layers(setting, words_of(value, ','), false, migration);
  if (key == "op_backends" && value.is(Kind::map)) {
    for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
      const std::string& op = value.items[i].text;
      take_order({base::concat(key, ".", op), text_of_value(value.items[i + 1])}, op,
                 words_of(value.items[i + 1], '|'), migration);
    }
    return;
  }
  if (key == "io_dump" && value.is(Kind::map)) {
    for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
      const std::string& part = value.items[i].text;
      take_dump(part, {base::concat(key, ".", part), dump_text(value.items[i + 1])}, migration);
    }
    return;
  }
  if (key == "action") {
    return migration.note(setting, Place::none, "opmux does not measure times and choose by them");
  }
  migration.note(setting, Place::unknown, "not a key of vllm-plugin-FL's files");
}

void take_per_op(const Setting& setting, Migration& migration) {
  for (const std::string& one : split(setting.value, ';')) {
    const size_t sign = std::min(one.find('='), one.size());
    const std::string op(trimmed(std::string_view(one).substr(0, sign)));
    const std::string order = sign < one.size() ? one.substr(sign + 1) : "";
    take_order({base::concat(setting.name, "[", op, "]"), order}, op, split(order, '|'), migration);
  }
}

void take_op_config(const Setting& setting, Migration& migration) {
  const Json map = Json::parse(setting.value, nullptr, false);
  if (!map.is_object()) {
    return migration.note(setting, Place::unknown, "its value is a JSON object of words");
  }
  for (const auto& [op, word] : map.items()) {
    const std::string text = word.is_string() ? word.get<std::string>() : word.dump();
    take_order({base::concat(setting.name, "[", op, "]"), text}, op, {text}, migration);
  }
}

void take_log_level(const Setting& setting, Migration& migration) {
  std::string level = lowered(setting.value);
  if (level == "critical") level = "error";
  migration.set_variable(setting, "OPMUX_LOG", level);
}

struct Variable {
  std::string_view name;
  Take take;
};

constexpr char kFile[] = "run `opmux migrate` on that file too";
constexpr char kOnePath[] = "every call takes one path; there is no other to turn off";
constexpr char kOpList[] = "`opmux list --pid PID` shows which implementations ran";
constexpr char kOwn[] = "a setting of FlagCX, which opmux does not use";
constexpr char kAudit[] =
    "no list of operators that run the reference; the shadow check compares calls with it";
constexpr char kLearning[] = "opmux does not measure times and choose by them";
constexpr char kOnDefault[] = "the default in both systems";

template <bool allowed>
void take_list_of_vendors(const Setting& setting, Migration& migration) {
  (allowed ? take_allowed : take_denied)(setting, split(setting.value, ','), migration);
}

void take_modules(const Setting& setting, Migration& migration) {
  migration.set_variable(setting, "OPMUX_PYTHON_PLUGINS", setting.value,
                         "a module defines register(runtime)");
}

void take_enabled(const Setting& setting, Migration& migration) {
  if (is_true(setting.value)) return migration.note(setting, Place::environment, kOnDefault);
  migration.set_variable(setting, "OPMUX_DISABLE", "1");
}

void take_debug(const Setting& setting, Migration& migration) {
  if (!is_true(setting.value)) return migration.note(setting, Place::environment, kOnDefault);
  migration.set_variable(setting, "OPMUX_LOG", "debug",
                         "`opmux list` and `opmux explain` show more");
}

void take_platform(const Setting& setting, Migration& migration) {
  migration.set_variable(setting, "OPMUX_PLATFORM", setting.value,
                         "a policy file in share/opmux/platforms, or a path");
}

void take_oot(const Setting& setting, Migration& migration) {
  migration.note(setting, Place::environment,
                 is_true(setting.value) ? kOnDefault : "VLLM_PLUGINS with a list without opmux");
}

void take_flaggems(const Setting& setting, Migration& migration) {
  if (is_true(setting.value)) return migration.note(setting, Place::policy, kOnDefault);
  migration.add_rule(setting, {{"name", "no FlagGems"}, {"op", "*"}, {"deny", {"*/flaggems.*"}}});
}

void take_flaggems_attention(const Setting& setting, Migration& migration) {
  if (!is_true(setting.value)) return migration.note(setting, Place::policy, kOnDefault);
  migration.add_rule(setting, {{"name", "attention of FlagGems"},
                               {"op", "attention"},
                               {"prefer", {"attention/flaggems.*"}}});
}

template <bool whitelist>
void take_gems_list(const Setting& setting, Migration& migration) {
  (whitelist ? take_whitelist : take_blacklist)(setting, split(setting.value, ','), migration);
}

template <bool replaced>
void take_layer_list(const Setting& setting, Migration& migration) {
  take_layers(setting, split(setting.value, ','), replaced, migration);
}

void take_dump_variable(const Setting& setting, Migration& migration) {
  std::string part = lowered(setting.name.substr(std::string_view("VLLM_FL_IO_DUMP").size()));
  part.erase(0, part.starts_with('_') ? 1 : 0);
  take_dump(part, setting, migration);
}

/// A name that ends in '*' stands for all that begin so. The first that fits counts.
constexpr Variable kVariables[] = {
    {"VLLM_FL_PREFER", take_prefer},
    {"VLLM_FL_PREFER_ENABLED", take_enabled},
    {"VLLM_FL_STRICT", take_strict},
    {"VLLM_FL_ALLOW_VENDORS", take_list_of_vendors<true>},
    {"VLLM_FL_DENY_VENDORS", take_list_of_vendors<false>},
    {"VLLM_FL_PER_OP", take_per_op},
    {"VLLM_FL_OP_CONFIG", take_op_config},
    {"VLLM_FL_PLUGIN_MODULES", take_modules},
    {"VLLM_FL_LOG_LEVEL", take_log_level},
    {"VLLM_FL_DISPATCH_DEBUG", take_debug},
    {"VLLM_FL_CONFIG", say<Place::environment, kFile>},
    {"VLLM_FL_PLATFORM", take_platform},
    {"VLLM_FL_OP_FAST_PATH", say<Place::none, kOnePath>},
    {"VLLM_FL_FLAGOS_WHITELIST", take_gems_list<true>},
    {"VLLM_FL_FLAGOS_BLACKLIST", take_gems_list<false>},
    {"VLLM_FL_OOT_ENABLED", take_oot},
    {"VLLM_FL_OOT_WHITELIST", take_layer_list<true>},
    {"VLLM_FL_OOT_BLACKLIST", take_layer_list<false>},
    {"VLLM_FL_USE_FLAGGEMS_ATTN", take_flaggems_attention},
    {"VLLM_FL_IO_DUMP*", take_dump_variable},
    {"VLLM_FL_REFERENCE_*", say<Place::none, kAudit>},
    {"USE_FLAGGEMS", take_flaggems},
    {"FLAGGEMS_ENABLE_OPLIST_PATH", say<Place::none, kOpList>},
    {"FLAGCX_PATH", say<Place::none, kOwn>},
    {"ADAPTIVE_*", say<Place::none, kLearning>},
    {"GEMS_*", say<Place::none, kLearning>},
};

bool named(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

void take_vllm_fl(const TextNode& file, Migration& migration) {
  for (size_t i = 0; i + 1 < file.items.size(); i += 2) {
    take_key(file.items[i].text, file.items[i + 1], migration);
  }
}

bool take_vllm_fl_variable(const Setting& variable, Migration& migration) {
  for (const Variable& one : kVariables) {
    if (!named(one.name, variable.name)) continue;
    one.take(variable, migration);
    return true;
  }
  if (!variable.name.starts_with("VLLM_FL_")) return false;
  migration.note(variable, Place::unknown, "not a variable of vllm-plugin-FL");
  return true;
}

}  // namespace opmux::cli::migrate
