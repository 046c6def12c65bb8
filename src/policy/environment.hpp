#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux::policy {

/// One variable as it was found.
struct Variable {
  std::string name, value;
};

/// The OPMUX_* variables, parsed strictly. Unset and empty are the same.
struct Environment {
  Policy policy;  ///< PREFER, STRICT, PER_OP, ALLOW_VENDORS, DENY_VENDORS
  std::string config, mode, platform, state_dir, record, log;
  std::vector<std::string> plugin_path, python_plugins;
  bool disable = false;
  std::map<std::string, bool> backends;  ///< OPMUX_BACKEND_<NAME>, lower case
  std::vector<Variable> seen;            ///< what was set, in order, for `config show`
};

/// Unknown OPMUX_* names fail with the nearest known one ("environment.unknown"); bad values fail
/// naming the variable, the value and what is allowed ("environment.value").
Result<Environment> parse_environment(const std::vector<Variable>& variables);

/// The process's variables that start with OPMUX_; none when it runs with raised privileges.
std::vector<Variable> process_variables();

}  // namespace opmux::policy
