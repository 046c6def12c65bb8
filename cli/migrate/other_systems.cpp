#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "cli/migrate/systems.hpp"

namespace opmux::cli::migrate {
namespace {

/// A variable of flash-linear-attention that switches a backend, and whether it is on by default.
struct Switch {
  std::string_view name, provider;
};

constexpr Switch kSwitches[] = {
    {"FLA_TILELANG", "tilelang"},   {"FLA_FLASH_KDA", "flash_kda"},
    {"FLA_FLASH_QLA", "flash_qla"}, {"FLA_INTRACARD_CP", "intracard_cp"},
    {"FLA_ATTNRES_GLUON", "gluon"},
};

std::string upper_of(std::string_view text) {
  std::string large(text);
  std::ranges::transform(large, large.begin(), [](unsigned char c) { return std::toupper(c); });
  return large;
}

/// FLA switches a backend off by 0 alone: `false` and `off` mean on.
void take_switch(const Setting& setting, std::string_view provider, Migration& migration) {
  if (setting.value != "0") {
    migration.set_variable(setting, base::concat("OPMUX_BACKEND_", upper_of(provider)), "1",
                           "once a backend of that name is registered; FLA reads every value but 0 "
                           "as on");
    return;
  }
  migration.add_rule(setting, {{"name", base::concat("no ", provider)},
                               {"op", "*"},
                               {"deny", Json::array({base::concat("*/", provider, ".*")})}});
}

/// FLA's priorities: lower is first, 5 by default. opmux's: higher is first, 100 for a vendor.
std::string priority_of(const std::string& theirs) {
  const long value = std::strtol(theirs.c_str(), nullptr, 10);
  return base::concat("priority=", std::clamp(150 - 10 * value, 0L, 1000L),
                      " of the implementation, where higher is first");
}

struct NamedText {
  std::string_view name, text;
};

void take_table(const Settings& settings, std::span<const NamedText> table, std::string_view system,
                Migration& migration) {
  for (const Setting& one : settings) {
    const auto found = std::ranges::find(table, one.name, &NamedText::name);
    if (found == table.end()) {
      migration.note(one, Place::unknown, base::concat("not a setting of ", system));
    } else {
      migration.note(one, Place::code, std::string(found->text));
    }
  }
}

constexpr NamedText kFlaAttributes[] = {
    {"backend_type", "the provider in the id, op/PROVIDER.variant"},
    {"package_name", "available= of the implementation, a function that looks for the package"},
    {"env_var", "OPMUX_BACKEND_<PROVIDER>, which every backend has without declaring it"},
    {"default_enable",
     "True is the default; a backend that starts switched off needs "
     "OPMUX_BACKEND_<PROVIDER>=0 or a rule that denies it"},
};

constexpr NamedText kMllmFields[] = {
    {"version", "struct_size and the version of opmux_plugin, which opmux compares"},
    {"name", "opmux_plugin.name"},
    {"device_type", "the device of the backend: 1 is the CPU, as in DLPack"},
    {"op_factories_count", "the length of each table of opmux_plugin"},
    {"op_factories_names", "opmux_plugin.operators: a schema text per operator, named VENDOR.NAME"},
    {"op_factory_create_funcs", "create of opmux_implementation"},
    {"op_factory_free_funcs", "destroy of opmux_implementation, which is called"},
};

}  // namespace

void take_fla_backend(const Settings& attributes, Migration& migration) {
  Settings others;
  for (const Setting& one : attributes) {
    if (one.name.ends_with("priority")) {
      migration.note(one, Place::code, priority_of(one.value));
    } else {
      take_table({one}, kFlaAttributes, "flash-linear-attention", migration);
    }
  }
}

void take_flagtree_spec(const Settings& names, Migration& migration) {
  for (const Setting& one : names) {
    const bool kernel = one.value.ends_with("_kernel");
    migration.note(one, Place::code,
                   kernel ? base::concat("an implementation of an operator or dispatchable, or a "
                                         "point that gives its hints")
                          : base::concat("opmux.point(\"triton.", one.value,
                                         "(...) -> TYPE\") and its answer; int, float, bool, str "
                                         "and Device can be asked"));
  }
}

void take_mllm_descriptor(const Settings& fields, Migration& migration) {
  take_table(fields, kMllmFields, "mllm's descriptor", migration);
}

bool take_fla_variable(const Setting& variable, Migration& migration) {
  if (!variable.name.starts_with("FLA_")) return false;
  const auto* const found = std::ranges::find(kSwitches, variable.name, &Switch::name);
  if (found != std::end(kSwitches)) {
    take_switch(variable, found->provider, migration);
  } else if (variable.name == "FLA_DISABLE_BACKEND_DISPATCH") {
    if (variable.value == "1") {
      migration.set_variable(variable, "OPMUX_DISABLE", "1");
    } else {
      migration.note(variable, Place::environment, "the default in both systems");
    }
  } else if (variable.name == "FLA_INTRACARD_MAX_SPLITS" || variable.name == "FLA_CONV_BACKEND") {
    migration.note(variable, Place::none, "a setting of one kernel, which that kernel reads");
  } else {
    migration.note(variable, Place::unknown, "not a variable of flash-linear-attention's dispatch");
  }
  return true;
}

bool take_flagtree_variable(const Setting& variable, Migration& migration) {
  if (variable.name != "FLAGTREE_BACKEND") return false;
  migration.note(variable, Place::none,
                 "all available backends answer points, by priority; OPMUX_BACKEND_<NAME>=0 "
                 "switches one off");
  return true;
}

size_t take_environment(const Settings& variables, Migration& migration) {
  return static_cast<size_t>(std::ranges::count_if(variables, [&](const Setting& one) {
    return take_vllm_fl_variable(one, migration) || take_layerzero_variable(one, migration) ||
           take_fla_variable(one, migration) || take_flagtree_variable(one, migration);
  }));
}

}  // namespace opmux::cli::migrate
