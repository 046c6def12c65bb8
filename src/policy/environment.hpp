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
  std::string config, lockfile, platform, state_dir;
  std::string record;          ///< the folder of RECORD
  bool record_inputs = false;  ///< RECORD began with "inputs:"
  std::string log;             ///< debug, info, warning, error
  std::string crash_journal;   ///< off, on, with_handler
  std::string mode;            ///< static, dynamic, config, hot_reload, auto
  std::vector<std::string> plugin_path, python_plugins;
  bool disable = false;
  bool state_page = false;
  int num_threads = 0;                   ///< 0: not set
  std::map<std::string, bool> backends;  ///< OPMUX_BACKEND_<NAME>, lower case
  std::vector<Variable> seen;            ///< what was set, by name, for `config show`
};

/// Unknown OPMUX_* names fail with the nearest known one ("environment.unknown"); bad values fail
/// naming the variable, the value and what is allowed ("environment.value").
Result<Environment> parse_environment(const std::vector<Variable>& variables);

/// Those of a null-terminated block of NAME=value that start with OPMUX_, by name.
std::vector<Variable> variables_of(const char* const* block);

/// Whether the process has more rights than whoever started it (set-user-id and the like).
bool raised_privileges();

/// The process's variables that start with OPMUX_; none when it runs with raised privileges.
std::vector<Variable> process_variables(bool raised = raised_privileges());

}  // namespace opmux::policy
