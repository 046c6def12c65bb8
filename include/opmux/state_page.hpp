#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/export.hpp>
#include <opmux/status.hpp>

/// What processes tell of themselves while they run. A runtime that is asked to (OPMUX_STATE_PAGE,
/// StateOptions::state_page) keeps a small file up to date, which these functions read from outside
/// without disturbing it. Nothing here needs a runtime.
namespace opmux {

/// A policy source in force.
struct PolicySourceState {
  std::string source;  ///< "code", "file", "environment", "platform", "built-in"
  std::string name;    ///< "policy.yaml", "set_policy"
  uint64_t rules = 0;
};

/// A backend as far as it is known without asking it.
struct BackendPageState {
  std::string name;
  std::string state;  ///< "healthy", "degraded", "unhealthy", "fatal", "unavailable", "off",
                      ///< "lost by a fork", "not loaded"
  std::string reason;
};

struct ImplementationPageState {
  std::string id, kind;
  int64_t priority = 0;
  uint64_t calls = 0;     ///< that ended ok
  uint64_t stood_in = 0;  ///< of them: in the place of another one
  uint64_t declined = 0, failed = 0, resource = 0;
  std::string code;    ///< why it cannot run, whatever it is called with; empty if it can
  std::string reason;  ///< the same as a sentence
};

/// One operator with all that implement it.
struct OperatorPageState {
  std::string name;
  std::vector<ImplementationPageState> implementations;  ///< by id
  uint64_t calls() const {
    uint64_t all = 0;
    for (const ImplementationPageState& each : implementations) all += each.calls;
    return all;
  }
};

/// What runs for one class of calls outside of scopes.
struct ChoicePageState {
  std::string op;
  std::string when;                   ///< "dtype(x) == bf16 && H % 16 == 0", "always"
  std::vector<std::string> accepted;  ///< ids: the first runs, the others stand in for it
  std::string rests;                  ///< who would be first, but failed too often; may be empty
  std::string note;                   ///< a preference that was not met, a deviation from a lock
  uint64_t generation = 0;            ///< in which it was decided
};

/// A class of calls whose breaker is not closed.
struct BreakerPageState {
  std::string implementation, what, state, why;
  uint64_t openings = 0;
};

/// One runtime of a process.
struct RuntimeState {
  uint64_t number = 0;   ///< the first that the process made with a page is 1
  int64_t since = 0;     ///< when it was made; seconds since 1970
  int64_t written = 0;   ///< when the page was; milliseconds since 1970
  uint64_t updates = 0;  ///< how often it was written
  std::string version;   ///< of opmux
  std::string mode;      ///< "dynamic", "config", "hot_reload", "static"
  bool frozen = false, disabled = false;
  uint64_t generation = 0;

  std::string policy_name;    ///< of the policy text in force; empty if there is none
  std::string policy_digest;  ///< SHA-256 of it
  std::string policy_origin;  ///< "file", "last known good", "load_policy", "rollback"
  uint64_t policy_version = 0, policy_rules = 0, policies_refused = 0;
  std::string last_refusal;  ///< why the last text that did not come into force did not
  std::vector<PolicySourceState> sources;  ///< strongest first

  std::string health;  ///< "healthy", "degraded", "fatal"
  std::vector<BackendPageState> backends;
  std::vector<OperatorPageState> operators;
  std::vector<ChoicePageState> choices;  ///< by operator, then class
  std::vector<BreakerPageState> breakers;
  uint64_t left_out = 0;  ///< choices and implementations for which the page has no room

  /// Calls of one implementation that ended ok; 0 if there is none of that id.
  OPMUX_API uint64_t calls(std::string_view implementation) const;
};

struct ProcessState {
  int64_t pid = 0;
  std::string name;                    ///< as the kernel has it
  int64_t started = 0;                 ///< seconds since 1970
  bool alive = false;                  ///< it still writes the page
  bool elsewhere = false;              ///< in another pid namespace: `pid` is the number there
  std::vector<RuntimeState> runtimes;  ///< by number
};

/// Where processes keep their pages: `state_dir`/run, or what OPMUX_STATE_DIR and the defaults say
/// if that is empty.
OPMUX_API std::string state_page_folder(const std::string& state_dir = {});

/// One page. Fails with "state_page.read", "state_page.damaged", or "state_page.version" if another
/// version of opmux wrote it.
OPMUX_API Result<ProcessState> open_state_page(const std::string& path);

/// A living process and its runtimes. Fails with `not_found`: "state_page.process" if it has ended,
/// "state_page.none" if it keeps no page.
OPMUX_API Result<ProcessState> process_state(int64_t pid, const std::string& state_dir = {});

/// Every living process of this user that keeps a page, by pid. What cannot be read is passed over.
OPMUX_API std::vector<ProcessState> process_states(const std::string& state_dir = {});

/// As docs/schemas/process_state.json describes it; a list as {"processes": [...]}.
OPMUX_API std::string to_json(const ProcessState& state);
OPMUX_API std::string to_json(const std::vector<ProcessState>& states);

}  // namespace opmux
