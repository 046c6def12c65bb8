#include "policy/rules/origin_report.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "policy/rules/operator_policy.hpp"

namespace opmux::policy {
namespace {

using Tokens = std::vector<std::string>;

constexpr std::string_view kBuiltIn = "built-in";

/// Collects the lines of the report from the layers, strongest first.
class Report {
 public:
  explicit Report(const PolicySet& set) {
    for (PolicyLayerPtr layer : set.layers) {
      for (; layer; layer = layer->outer()) layers_.push_back(layer);
    }
  }

  /// Adds one line for the strongest layer that sets the list.
  void ordering(const char* field, Tokens Policy::* list, std::string_view otherwise) {
    for (const PolicyLayerPtr& layer : layers_) {
      const Tokens& tokens = layer->policy().*list;
      if (!tokens.empty()) return line(field, base::join(tokens, ","), *layer, field);
    }
    if (!otherwise.empty())
      lines_.push_back({field, std::string(otherwise), std::string(kBuiltIn)});
  }

  void strict() {
    for (const PolicyLayerPtr& layer : layers_) {
      const auto& flag = layer->policy().strict;
      if (flag) return line("strict", *flag ? "true" : "false", *layer, "strict");
    }
    lines_.push_back({"strict", "false", std::string(kBuiltIn)});
  }

  void tuning() {
    for (const PolicyLayerPtr& layer : layers_) {
      const auto& tuning = layer->policy().tuning;
      if (tuning) return line("tuning", std::string(name_of(*tuning)), *layer, "tuning");
    }
  }

  void allow_none() {
    for (const PolicyLayerPtr& layer : layers_) {
      if (layer->policy().allow_none) line("allow_none", "true", *layer, "allow_none");
    }
  }

  /// Adds one line per layer that sets the list, because constraints of all layers apply.
  void constraint(const char* field, Tokens Policy::* list) {
    for (const PolicyLayerPtr& layer : layers_) {
      const Tokens& tokens = layer->policy().*list;
      if (!tokens.empty()) line(field, base::join(tokens, ","), *layer, field);
    }
  }

  void orders() {
    std::set<std::string> told;
    for (const PolicyLayerPtr& layer : layers_) {
      for (const auto& [op, order] : layer->policy().per_op) {
        if (!told.insert(op).second) continue;
        line("order." + op, base::join(order, ","), *layer, "order");
      }
    }
  }

  void rules() {
    for (const PolicyLayerPtr& layer : layers_) {
      const auto& rules = layer->policy().rules;
      if (rules.empty()) continue;
      const auto expired =
          std::count_if(rules.begin(), rules.end(), [](const Rule& rule) { return rule.expired; });
      const std::string note = expired > 0 ? base::concat(" (", expired, " expired)") : "";
      line("rules", base::concat(rules.size(), note), *layer, "rules");
    }
  }

  std::vector<Setting> take() { return std::move(lines_); }

 private:
  void line(std::string key, std::string value, const PolicyLayer& layer, const char* field) {
    lines_.push_back({std::move(key), std::move(value), describe(Origin{&layer, nullptr, field})});
  }

  std::vector<PolicyLayerPtr> layers_;
  std::vector<Setting> lines_;
};

}  // namespace

std::vector<Setting> effective_settings(const PolicySet& set) {
  Report report(set);
  report.ordering("prefer", &Policy::prefer, "by priority");
  report.strict();
  report.tuning();
  report.ordering("allow", &Policy::allow, "");
  report.ordering("transforms", &Policy::transforms, "");
  report.constraint("require", &Policy::require);
  report.constraint("deny", &Policy::deny);
  report.ordering("allow_vendors", &Policy::allow_vendors, "");
  report.constraint("deny_vendors", &Policy::deny_vendors);
  report.allow_none();
  report.orders();
  report.rules();
  return report.take();
}

std::vector<Setting> process_settings(const Environment& environment) {
  std::vector<Setting> lines;
  const auto add = [&](std::string key, std::string value, std::string_view variable) {
    const std::string origin = base::concat("OPMUX_", variable, " (environment)");
    if (!value.empty()) lines.push_back({std::move(key), std::move(value), origin});
  };
  add("config", environment.config, "CONFIG");
  add("platform", environment.platform, "PLATFORM");
  add("state_dir", environment.state_dir, "STATE_DIR");
  add("crash_journal", environment.crash_journal, "CRASH_JOURNAL");
  add("record", (environment.record_inputs ? "inputs:" : "") + environment.record, "RECORD");
  add("tuning_bundles", environment.tuning, "TUNING");
  add("log", environment.log, "LOG");
  add("plugin_path", base::join(environment.plugin_path, ":"), "PLUGIN_PATH");
  add("python_plugins", base::join(environment.python_plugins, ","), "PYTHON_PLUGINS");
  add("cpu_mask", base::join(environment.cpu_mask, ","), "CPU_MASK");
  if (environment.num_threads > 0) {
    add("num_threads", std::to_string(environment.num_threads), "NUM_THREADS");
  }
  if (environment.state_page) add("state_page", "true", "STATE_PAGE");
  if (environment.disable) add("disable", "true", "DISABLE");
  for (const auto& [name, on] : environment.backends) {
    std::string variable = "BACKEND_" + name;
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    add("backend." + name, on ? "on" : "off", variable);
  }
  return lines;
}

namespace {

std::string variable_of(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kVariables{
      {{"prefer", "OPMUX_PREFER"},
       {"strict", "OPMUX_STRICT"},
       {"order", "OPMUX_PER_OP"},
       {"allow_vendors", "OPMUX_ALLOW_VENDORS"},
       {"deny_vendors", "OPMUX_DENY_VENDORS"}}};
  for (const auto& [name, variable] : kVariables) {
    if (name == field) return std::string(variable);
  }
  return std::string(field);
}

std::string describe_rule(const PolicyLayer& layer, const Rule& rule) {
  std::vector<std::string> details{rule.where.empty() ? layer.name() : rule.where};
  if (!rule.owner.empty()) details.push_back(rule.owner);
  if (!rule.expires.empty()) {
    details.push_back((rule.expired ? "expired " : "until ") + rule.expires);
  }
  const std::string name =
      rule.name.empty() ? base::concat("rule for ", rule.op) : base::concat("\"", rule.name, "\"");
  return base::concat(name, " (", base::join(details, ", "), rule.reason.empty() ? "" : "; ",
                      rule.reason, ")");
}

}  // namespace

std::string describe(const Origin& origin) {
  if (origin.layer == nullptr) return "built-in";
  const PolicyLayer& layer = *origin.layer;
  if (origin.rule != nullptr) return describe_rule(layer, *origin.rule);
  switch (layer.source()) {
    case Source::scope: return "scope";
    case Source::environment: return variable_of(origin.field) + " (environment)";
    case Source::builtin: return "built-in";
    case Source::code: return base::concat(layer.name(), " (code)");
    case Source::file:
    case Source::platform: break;
  }
  return base::concat(origin.field, " (", layer.name(), ")");
}

}  // namespace opmux::policy
