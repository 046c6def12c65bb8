#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux::policy {

/// The words of OPMUX_MODE and Options::mode.
inline constexpr std::array<std::string_view, 5> kModes{"static", "dynamic", "config", "hot_reload",
                                                        "auto"};

/// An environment variable.
struct Variable {
  std::string name, value;
};

/// The OPMUX_* environment variables, strictly parsed. An empty variable counts as unset.
struct Environment {
  Policy policy;  ///< PREFER, STRICT, PER_OP, ALLOW_VENDORS, DENY_VENDORS
  std::string config, lockfile, platform, state_dir;
  std::string record;          ///< folder from RECORD
  bool record_inputs = false;  ///< RECORD began with "inputs:"
  std::string dump;            ///< op:layer:step
  std::string tuning;          ///< a bundle, or a folder with bundles
  std::string log;             ///< debug, info, warning, error
  std::string crash_journal;   ///< off, on, with_handler
  std::string mode;            ///< static, dynamic, config, hot_reload, auto
  std::vector<std::string> plugin_path, python_plugins;
  std::vector<std::string> cpu_mask;  ///< names of features, or patterns over them
  bool disable = false;
  bool state_page = false;
  int num_threads = 0;  ///< 0 = not set
  std::optional<int> rank, tp_size;
  std::map<std::string, bool> backends;  ///< from OPMUX_BACKEND_<NAME>; names in lower case
  std::vector<Variable> seen;            ///< variables that are set, by name, for `config show`
  std::vector<std::string> of_services;  ///< names set by Kubernetes for a service, ignored
};

/// Fails with "environment.unknown" for an unknown OPMUX_* variable and suggests the nearest name.
/// Ignores variables that Kubernetes sets for a service named opmux, which have a fixed form.
/// Fails with "environment.value" for an invalid value; the message has the variable, its value and
/// the allowed values.
Result<Environment> parse_environment(const std::vector<Variable>& variables);

/// The variables of a null-terminated NAME=value block that start with OPMUX_, sorted by name.
std::vector<Variable> variables_of(const char* const* block);

/// Whether the process has more privileges than the process that started it (set-user-ID programs
/// and similar).
bool raised_privileges();

/// The process's variables that start with OPMUX_; empty if it runs with raised privileges.
std::vector<Variable> process_variables(bool raised = raised_privileges());

}  // namespace opmux::policy
