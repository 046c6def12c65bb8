"""The walks of docs/dev/walks.md; tools/gen_walks.py says what the fields of a step mean."""
from typing import NamedTuple


class Step(NamedTuple):
    file: str
    function: str
    text: str
    after: str = ""
    via: str = ""
    wired: str | tuple[str, str] = ""
    shares: str = ""
    back: bool = False
    start: bool = False


MOST_FILES = {"Policy file to the next call": 12}

CALL, SLOW = "src/dispatch/call/call.cpp", "src/dispatch/call/slow_call.cpp"
CANDIDATES = "src/dispatch/call/candidate_run.cpp"
CALL_DECISION = "src/dispatch/call/call_decision.cpp"
WATCHER, STORE = "src/policy/files/policy_file_watcher.cpp", "src/policy/policy_store.cpp"
FILES = "src/policy/files/policy_files.cpp"
PUBLISH = "src/dispatch/engine_publish.cpp"
ENGINE, COMPILED = "src/dispatch/engine.cpp", "src/dispatch/compiled_operator.cpp"
RULES = "src/policy/rules/operator_policy.cpp"
PUBLISHER = "src/runtime/jobs/publisher.cpp"
CORE, MANAGER, LOADER = "src/runtime/core.cpp", "src/plugin/manager.cpp", "src/plugin/open/loader.cpp"
CACHE, EVALUATION = "src/dispatch/decide/decision_cache.cpp", "src/dispatch/decide/evaluation.cpp"
BREAKERS, HEALTH = "src/health/breaker_registry.cpp", "src/health/health_view.cpp"
MONITOR, EXPLAIN = "src/runtime/jobs/health_monitor.cpp", "src/dispatch/explain.cpp"

WARM_CALL = [
    Step("include/opmux/operator.hpp", "Operator::operator()",
         "packs the arguments into an array of words and a `CallSite`, which has their kinds"),
    Step("include/opmux/detail/entry_points.hpp", "call",
         "selects the entry point at compile time, by the number and kinds of the arguments"),
    Step(CALL, "call_words",
         "takes the thread's most recently used plan of the operator and checks whether it fits"),
    Step(CALL, "mark", "stores the plan's id in the thread's hazard slot, so that nothing that the "
         "plan points to is freed", after="call_words"),
    Step(CALL, "current", "compares the plan's epoch, scope and kinds of arguments with those of the "
         "call", after="call_words"),
    Step("src/dispatch/call/argument_words.hpp", "ArgumentWords::same_layouts",
         "compares the layout number of every tensor with that of the last call",
         after="call_words"),
    Step("src/dispatch/call/argument_words.hpp", "ArgumentWords::set",
         "copies the addresses and scalars into the plan's frame", after="call_words"),
    Step(CALL, "run", "calls the kernel through the plan's function pointer", after="call_words"),
    Step("operators/rms_norm/reference.cpp", "rms_norm",
         "is an example of a kernel: the lambda that it registers computes the rows", via="run",
         wired="operators/rms_norm/reference.cpp"),
    Step("src/dispatch/call/plan_counts.hpp", "PlanCount::add_call",
         "increments the plan's counter of calls", after="run"),
    Step("src/dispatch/call/thread_block.hpp", "ThreadBlock::clear", "clears the hazard slot",
         after="run"),
]

POLICY_FILE = [
    Step(WATCHER, "PolicyWatch::run", "is a maintenance job that runs when the kernel reports a "
         "change of the file; waits until the file is no longer being written"),
    Step(WATCHER, "PathWatch::changed", "reads the events of the file and its folder"),
    Step(WATCHER, "PolicyWatch::read_again", "compares the new text with the last one",
         after="PolicyWatch::run"),
    Step(FILES, "read_policy_files", "reads the file, or all files of the folder, without mixing "
         "two versions"),
    Step(WATCHER, "PolicyFileWatcher::reload", "loads the texts and stores them as the last "
         "known good ones if they are accepted",
         after="PolicyWatch::read_again", via="reload_", wired=(WATCHER, "PolicyWatch")),
    Step(WATCHER, "PolicyFileWatcher::load", "gives the parsed texts to the store"),
    Step(WATCHER, "PolicyFileWatcher::parse", "loads deferred plugins if the texts name something that "
         "only they may have"),
    Step(FILES, "parse_files", "joins the policies of several files"),
    Step("src/policy/files/policy_reader.cpp", "parse_policy",
         "turns one text into a `Policy` or a list of problems with line and column"),
    Step("src/policy/files/yaml_reader.cpp", "read_yaml", "reads YAML or JSON into nodes"),
    Step("src/policy/rules/policy_validation.cpp", "validate",
         "refuses values that are valid text but not valid rules", after="parse_policy"),
    Step(STORE, "PolicyStore::load", "counts and logs whether the policy was accepted",
         after="PolicyFileWatcher::load"),
    Step(STORE, "PolicyStore::put", "asks the validators of the program and gives the text a version"),
    Step(STORE, "PolicyStore::publish", "prepares the publication"),
    Step(STORE, "PolicyStore::change", "replaces the file's layer, or leaves everything unchanged"),
    Step(STORE, "PolicyStore::try_out", "loads deferred plugins if the answer depends on them"),
    Step(RULES, "dry_run",
         "refuses the policy if it leaves an operator without an implementation that can run here"),
    Step(PUBLISHER, "Publisher::publish", "publishes one set of sources after the other",
         after="PolicyStore::publish", via="publish", wired=(CORE, "publisher_")),
    Step(PUBLISH, "Engine::publish", "makes everything that needs memory before it changes anything"),
    Step(PUBLISH, "Engine::draft_states", "finds the operators whose policy hash differs"),
    Step(PUBLISH, "Engine::compile", "copies the operator's part of the policy into a new state"),
    Step(PUBLISH, "Engine::commit", "puts the new states in force", after="Engine::publish"),
    Step(PUBLISH, "Engine::store", "replaces the state of each operator and retires the old one"),
    Step(COMPILED, "OperatorSlot::replace", "publishes the state and its epoch with one store each"),
    Step(CALL, "current", "in the next call, on any thread, finds that the epoch differs",
         shares="epoch"),
    Step(CALL, "call_any_plan", "finds no plan of this thread that fits", back=True),
    Step(CALL, "call_without_plan", "finds no argument to convert"),
    Step(SLOW, "call_slowly", "starts the slow path"),
    Step(SLOW, "SlowCall::run", "checks the arguments"),
    Step(SLOW, "SlowCall::choose", "replaces a state that cannot cache the decision"),
    Step(SLOW, "SlowCall::ask", "asks for the decision under the thread's scope"),
    Step(COMPILED, "space_of", "looks up the decisions of the scope"),
    Step(COMPILED, "CompiledOperator::space", "compiles the policy at its first use"),
    Step(RULES, "OperatorPolicy::compile",
         "collects the entries of all layers that concern the operator"),
]

PLUGIN_FILE = [
    Step(CORE, "Core::start", "starts the parts of a runtime in order"),
    Step(MANAGER, "PluginManager::start", "loads the built-in backend, then reads the folders"),
    Step(MANAGER, "PluginManager::read_folders", "goes through the folders of the installation, the "
         "environment and the options"),
    Step(LOADER, "Loader::load_folder", "takes each file that ends in `.so`"),
    Step("src/plugin/discover/discovery.cpp", "list_files", "lists the folder in a fixed order"),
    Step(LOADER, "Loader::discover", "checks and probes the file, and defers loading it",
         after="Loader::load_folder"),
    Step(LOADER, "Loader::checked", "asks for a checked file and passes it to the gates"),
    Step("src/plugin/trust/checked_file.cpp", "check_file",
         "checks owner, path, ELF structure, digest and signature, and keeps the descriptor open"),
    Step(LOADER, "Loader::tried", "asks for the probe's verdict", after="Loader::discover"),
    Step(MANAGER, "verdict_of", "uses the cached verdict or probes now", via="try_out_",
         wired=(MANAGER, "try_out_with")),
    Step("src/plugin/probe/probe.cpp", "probe", "starts `opmux-probe` with the descriptor"),
    Step("src/plugin/probe/child.cpp", "run_child", "waits for the report, within limits of time and "
         "memory"),
    Step("probe/main.cpp", "main", "loads the plugin in the child and writes the manifest",
         via="spawn"),
    Step("src/plugin/probe/probe_report.cpp", "judge", "turns the report into a `ProbeResult`",
         after="probe"),
    Step(MANAGER, "PluginManager::mark_waiting", "marks the operators that a deferred plugin "
         "implements", after="Core::start"),
    Step(CALL_DECISION, "load_waiting_plugins", "in the first call of such an operator, sees the mark",
         shares="plugins_wait"),
    Step(MANAGER, "PluginManager::load_for", "selects the deferred plugins that policies do not deny",
         via="load_for", wired=("src/plugin/manager.hpp", "PluginLoader")),
    Step(MANAGER, "PluginManager::load", "loads them under the manager's lock"),
    Step(LOADER, "Loader::load_waiting", "opens each selected file"),
    Step(LOADER, "Loader::open_into", "opens, reads and registers one plugin"),
    Step("src/plugin/open/opened_file.cpp", "open_once",
         "maps the checked descriptor and verifies that this code was mapped"),
    Step("src/plugin/open/loaded_plugin.cpp", "make_ready", "calls the plugin's query function and `init`",
         after="Loader::open_into"),
    Step("src/plugin/open/loaded_plugin.cpp", "read", "restores the state of the thread after the plugin's "
         "functions ran"),
    Step("src/plugin/read/descriptor_reader.cpp", "read_plugin", "checks the ABI version of the "
         "descriptor and copies it"),
    Step("src/plugin/read/descriptor_reader.cpp", "Reader::read", "reads its parts in order"),
    Step("src/plugin/read/descriptor_reader.cpp", "Reader::backends", "goes through the backends"),
    Step("src/plugin/read/backend_reader.cpp", "read_backend", "reads a backend and its devices"),
    Step("src/plugin/read/implementation_reader.cpp", "read_implementation",
         "reads signature, capabilities and functions of an implementation"),
    Step(LOADER, "Loader::stage", "registers the contents, one batch per backend",
         after="Loader::open_into"),
    Step("src/registry/registry.cpp", "Registry::add_each", "edits a copy of the snapshot"),
    Step("src/registry/batch.cpp", "apply", "checks the batch against operators that exist"),
    Step("src/registry/registry.cpp", "Registry::change", "publishes the copy and reports the change",
         after="Registry::add_each"),
    Step(PUBLISHER, "Publisher::publish", "collects the new snapshot and the policies", via="publish",
         wired=(CORE, "set_publisher")),
    Step(PUBLISH, "Engine::publish", "finds the operators whose record differs and compiles their states"),
    Step(PUBLISH, "Engine::commit", "puts the new states in force"),
    Step(PUBLISH, "Engine::store", "replaces the state of each operator and retires the old one"),
    Step(COMPILED, "OperatorSlot::replace", "publishes the new state"),
    Step(SLOW, "SlowCall::run", "in the call that waited for the plugin, loads the new state",
         shares="current"),
    Step(SLOW, "SlowCall::choose", "replaces a state that cannot cache the decision"),
    Step(SLOW, "SlowCall::ask", "asks for a decision"),
    Step(CACHE, "DecisionCache::choose", "finds no decision for the class of the arguments"),
    Step(CACHE, "DecisionCache::decide_uncached", "turns the evaluation into a `Decision`"),
    Step(EVALUATION, "decide", "evaluates the candidates and sorts the accepted ones"),
    Step(EVALUATION, "judge", "accepts the plugin's implementation or names the reason for refusing "
         "it"),
]

FAILURE = [
    Step(CALL, "run", "gets an outcome other than ok from the kernel"),
    Step(SLOW, "recover", "keeps the plan marked until the call ends"),
    Step(SLOW, "recover_nested", "reports a lack of memory as the result of the call"),
    Step(SLOW, "continue_call", "continues on the slow path with the arguments of the plan's frame"),
    Step(SLOW, "SlowCall::run", "checks the arguments and looks up the decision"),
    Step(CANDIDATES, "CandidateRun::run_choice", "records the failure and tries the next candidate"),
    Step(CANDIDATES, "CandidateRun::note_outcome", "counts the outcome and passes it on"),
    Step(CANDIDATES, "CandidateRun::report_health", "reports the outcome to health"),
    Step(HEALTH, "Health::on_outcome", "separates failures of an implementation from lost devices",
         via="on_outcome", wired=("src/health/health_view.hpp", "HealthView")),
    Step(BREAKERS, "BreakerRegistry::note", "finds or creates the breaker of the implementation"),
    Step("src/health/breaker.hpp", "BasicBreaker::leave",
         "counts the failure in the cell of the call's class"),
    Step("src/health/breaker.hpp", "fail", "opens the cell if a limit is reached"),
    Step(BREAKERS, "BreakerRegistry::follow", "publishes the change and logs it",
         after="BreakerRegistry::note"),
    Step(BREAKERS, "BreakerRegistry::publish", "asks for new decisions of the operator"),
    Step(ENGINE, "Engine::operator_changed", "discards the decisions of the operator", via="publish",
         wired="src/runtime/jobs/health_monitor.hpp"),
    Step(ENGINE, "Engine::discard_decisions", "replaces its `CompiledOperator`, so that cached plans are "
         "stale"),
    Step(MONITOR, "HealthMonitor::tell", "logs the transition and calls the listeners of the program",
         after="BreakerRegistry::follow", via="tell", wired=MONITOR),
    Step("include/opmux/operator.hpp", "Operator::explain",
         "starts when a program asks why; the open breaker is in the `BreakerRegistry`",
         start=True),
    Step("src/runtime/calls/operator.cpp", "explain", "fills in the outputs that the caller left out"),
    Step(EXPLAIN, "explain", "evaluates the candidates as a call would, with the present state of the "
         "breakers"),
    Step(EVALUATION, "decide", "evaluates every candidate"),
    Step(EVALUATION, "judge", "asks health about a candidate that passed all other checks"),
    Step(HEALTH, "Health::ask", "finds the open cell of the call's class", via="ask",
         wired=("src/health/health_view.hpp", "HealthView")),
    Step(HEALTH, "describe", "writes how often the breaker opened and when it is probed"),
    Step(EXPLAIN, "add_candidates", "adds the candidate as refused, with the reason `health.open`",
         after="explain"),
    Step("src/runtime/explanation.cpp", "Explanation::to_string", "prints the lines",
         shares="candidates"),
]

WALKS = [
    ("Warm call", "A call whose plan the thread has cached: no lock, no allocation, no decision.",
     WARM_CALL),
    ("Policy file to the next call", "An administrator replaces the policy file of a running process "
     "in mode `hot_reload`.", POLICY_FILE),
    ("Plugin file to a chosen implementation", "A folder of `OPMUX_PLUGIN_PATH` has a plugin; the "
     "first call of an operator that it implements loads it.", PLUGIN_FILE),
    ("Failure to explanation", "A kernel fails until its breaker opens, and a program asks for an "
     "explanation.", FAILURE),
]
