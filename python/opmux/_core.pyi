"""The extension module: calls of operators, and access to runtimes and their state."""

import builtins
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, final

__version__: str

def features() -> list[str]: ...
def name_device_type(type: int, name: str) -> None: ...

@final
class Operator:
    """An operator. Call it, or bind it to get a plan."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def schema(self) -> str:
        """The canonical text of the operator's schema."""

    @property
    def signature(self) -> str:
        """The Python call signature as text."""

    @property
    def function(self) -> Callable[..., Any]:
        """The operator as a builtin function."""

    def bind(self, *args: Any, **kwargs: Any) -> Plan:
        """Decides once for arguments like these and returns a plan, whose calls skip the lookup."""

    def instance(self, **fixed: Any) -> Instance:
        """Fixes arguments by name and returns an instance, in which implementations keep state."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Instance:
    """An operator with some arguments fixed, and the state that implementations keep for it; made
    by Operator.instance()."""

    @property
    def operator(self) -> Operator:
        """The operator."""

    @property
    def arguments(self) -> list[str]:
        """Names of the arguments that calls pass."""

    @property
    def states(self) -> list[dict[str, Any]]:
        """The kept objects: dicts with implementation, bytes and attributes."""

    def reset(self) -> None:
        """Destroys the state: the next call makes a new one."""

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Returns the decision that a call with these arguments would make."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the operator with the fixed arguments and these."""

@final
class Dispatchable:
    """A function whose calls are dispatched to registered implementations."""

    @property
    def last(self) -> str | None:
        """The id of the implementation that was called last."""

    @property
    def calls(self) -> dict[str, int]:
        """The number of calls of each implementation, by id."""

    @property
    def remembered(self) -> int:
        """The number of cached decisions."""

    def __init__(self, slow: Callable[..., Any], /) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __getattribute__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...

@final
class Plan:
    """A bound decision: calls run its implementation without a lookup."""

    @property
    def operator(self) -> Operator:
        """The operator of the plan."""

    @property
    def function(self) -> Callable[..., Any]:
        """The plan as a builtin function, which CPython calls faster than the object."""

    @property
    def state(self) -> str:
        """'current', 'stale' or 'revoked'."""

    @property
    def implementation(self) -> str:
        """The id of the implementation that the plan runs."""

    @property
    def generation(self) -> int:
        """The generation of the snapshot that the decision was made in."""

    def refresh(self) -> None:
        """Decides again for arguments like those the plan was bound with."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class Scope:
    """The policy, options and reports of calls in a block; made by opmux.scope and similar."""

scope_variable: ContextVar[Scope | None]

class Hint:
    """The priority of an implementation for calls in which a dimension is in a range."""

    def __init__(
        self, dim: str, *, priority: int, least: int = 0, most: int | None = None
    ) -> None: ...
    @property
    def dim(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def least(self) -> int: ...
    @property
    def most(self) -> int | None: ...

class Candidate:
    """One candidate of a decision and its verdict."""

    @property
    def id(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def transforms(self) -> str: ...
    @property
    def hint(self) -> Hint | None: ...
    @property
    def measured(self) -> Measurement | None: ...
    @property
    def accepted(self) -> bool: ...

class Explanation:
    """The reasons for a decision. Print it, or read its fields."""

    @property
    def op(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def chosen(self) -> str: ...
    @property
    def strict(self) -> bool: ...
    @property
    def candidates(self) -> list[Candidate]: ...
    @property
    def depends_on(self) -> list[str]: ...
    @property
    def independent(self) -> list[str]: ...
    @property
    def note(self) -> str: ...
    def to_json(self) -> str: ...
    def to_text(self) -> str: ...
    def _repr_html_(self) -> str: ...

class ArgumentInfo:
    """One argument of an operator's schema."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def optional(self) -> bool: ...
    @property
    def output(self) -> bool: ...
    @property
    def updated(self) -> bool: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def any_shape(self) -> bool: ...
    @property
    def dims(self) -> list[str]: ...
    @property
    def dtype_variable(self) -> str: ...
    @property
    def may_alias(self) -> str: ...
    @property
    def constant(self) -> bool: ...
    @property
    def default_text(self) -> str: ...
    @property
    def integer(self) -> bool: ...

def arguments(op: Operator, /) -> list[ArgumentInfo]: ...

class ImplementationInfo:
    """One implementation."""

    @property
    def id(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def available(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def breaker(self) -> str: ...
    @property
    def promises(self) -> list[str]: ...
    @property
    def instance(self) -> dict[str, str]: ...
    @property
    def hints(self) -> list[Hint]: ...

class OperatorInfo:
    """One operator with its implementations."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def implementations(self) -> list[ImplementationInfo]: ...

class CallStats:
    """Counters of one implementation, summed over all threads."""

    @property
    def implementation(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def declined(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def resource(self) -> int: ...
    @property
    def invalid_argument(self) -> int: ...
    @property
    def device_lost(self) -> int: ...
    @property
    def stood_in(self) -> int: ...
    @property
    def decided_each_time(self) -> int: ...
    @property
    def packed_bytes(self) -> int: ...

class PointCandidate:
    """A backend that can answer a point."""

    @property
    def backend(self) -> str: ...
    @property
    def plugin(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def verdict(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str: ...

class PointInfo:
    """A specialization point and its answers."""

    @property
    def name(self) -> str: ...
    @property
    def signature(self) -> str: ...
    @property
    def declared(self) -> bool: ...
    @property
    def candidates(self) -> list[PointCandidate]: ...
    @property
    def answer(self) -> str: ...

class PluginInfo:
    """A plugin that was found, and whether it was loaded."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def loaded(self) -> bool: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def backends(self) -> list[str]: ...
    @property
    def implementations(self) -> list[str]: ...
    @property
    def found_in(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def signer(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...

class Measurement:
    """A measured speed of an implementation that applies to a call."""

    @property
    def verdict(self) -> str: ...
    @property
    def baseline(self) -> str: ...
    @property
    def speed(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def rigor(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def cell(self) -> str: ...
    @property
    def range(self) -> str: ...
    @property
    def bundle(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def found_in(self) -> str: ...
    @property
    def machine(self) -> str: ...
    @property
    def aged(self) -> bool: ...

class TuningProposal:
    """A faster implementation that a runtime found by measuring a call."""

    @property
    def op(self) -> str: ...
    @property
    def implementation(self) -> str:
        """Id of the faster one."""

    @property
    def baseline(self) -> str:
        """Id of the one that calls ran."""

    @property
    def cell(self) -> str: ...
    @property
    def speed(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def time(self) -> int: ...
    @property
    def applied(self) -> bool: ...
    @property
    def why_not(self) -> str: ...

class TuningBundle:
    """A bundle of measured speeds that was found, or a file that was refused."""

    @property
    def path(self) -> str: ...
    @property
    def found_in(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def signer(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def aged(self) -> int: ...
    @property
    def foreign(self) -> int: ...
    @property
    def stale(self) -> int: ...
    @property
    def damaged(self) -> int: ...

class SettingInfo:
    """One effective setting and its origin."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def origin(self) -> str: ...

class Condition:
    """A condition of a rule on a call; combine conditions with &, | and ~."""

    @staticmethod
    def parse(text: str) -> Condition:
        """Parses a condition in the syntax of policy files."""

    @staticmethod
    def dim(name: str, compare: str, value: int, /) -> Condition: ...
    @staticmethod
    def rows(compare: str, value: int, /) -> Condition: ...
    @staticmethod
    def dtype(argument: str, dtype: str, /) -> Condition: ...
    @staticmethod
    def rank(argument: str, compare: str, value: int, /) -> Condition: ...
    @staticmethod
    def present(argument: str, /) -> Condition: ...
    @staticmethod
    def contiguous(argument: str, /) -> Condition: ...
    @staticmethod
    def aligned(argument: str, bytes: int, /) -> Condition: ...
    @staticmethod
    def layout(argument: str, name: str, /) -> Condition: ...
    @staticmethod
    def scalar(argument: str, compare: str, value: float, /) -> Condition: ...
    @staticmethod
    def ambient(name: str, /) -> Condition: ...
    def __and__(self, arg: Condition, /) -> Condition: ...
    def __or__(self, arg: Condition, /) -> Condition: ...
    def __invert__(self) -> Condition: ...

class Boost:
    """Changes the score of the matching implementations."""

    def __init__(self, impl: str, add: float = 0.0, multiply: float = 1.0) -> None: ...

    impl: str
    add: float
    multiply: float

class Rule:
    """One rule of a policy."""

    def __init__(self) -> None: ...

    name: str
    op: str
    when: Condition | None
    require: list[str]
    prefer: list[str]
    order: list[str]
    deny: list[str]
    allow: list[str]
    boost: list[Boost]
    transforms: list[str]
    strict: bool | None
    rank: int
    reason: str
    owner: str
    expires: str
    allow_none: bool

class Policy:
    """Preferences and constraints for choosing implementations."""

    def __init__(self) -> None: ...

    prefer: list[str]
    require: list[str]
    deny: list[str]
    allow: list[str]
    strict: bool | None
    allow_vendors: list[str]
    deny_vendors: list[str]
    per_op: dict[str, list[str]]
    transforms: list[str]
    allow_none: bool
    tuning: str | None
    rules: list[Rule]

class PluginOptions:
    """The folders to search for plugins, and the trust that they need."""

    def __init__(
        self,
        *,
        folders: Sequence[str] = ...,
        trust: str = "any",
        keyring: str = "",
        digests: Sequence[str] = ...,
        sealed: bool = False,
        probe: bool = True,
        max_bytes: int = ...,
        require_confinement: bool = False,
    ) -> None: ...

    folders: list[str]
    trust: str
    keyring: str
    digests: list[str]
    sealed: bool
    probe: bool
    max_bytes: int
    require_confinement: bool

class StateOptions:
    """The state files that a runtime writes, and their folder."""

    def __init__(
        self, *, folder: str = "", crash_journal: str = "off", state_page: bool = False
    ) -> None: ...
    folder: str
    crash_journal: str
    state_page: bool

class PolicySourceState:
    """A policy source that is in force."""

    @property
    def source(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def rules(self) -> int: ...

class BackendPageState:
    """A backend of a process and its last known state."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str: ...

class ImplementationPageState:
    """An implementation of a process: its counters, or why it cannot run."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def stood_in(self) -> int: ...
    @property
    def decided_each_time(self) -> int: ...
    @property
    def declined(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def resource(self) -> int: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def instance(self) -> str: ...

class OperatorPageState:
    """An operator of a process with its implementations."""

    @property
    def name(self) -> str: ...
    @property
    def implementations(self) -> list[ImplementationPageState]: ...
    @property
    def calls(self) -> int: ...

class ChoicePageState:
    """The implementations chosen for one class of calls of a process."""

    @property
    def op(self) -> str: ...
    @property
    def when(self) -> str: ...
    @property
    def accepted(self) -> list[str]: ...
    @property
    def rests(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def generation(self) -> int: ...

class CellPageState:
    """Calls of a process with the same types, sizes and threads, estimated from sampled calls."""

    @property
    def op(self) -> str: ...
    @property
    def tensors(self) -> str: ...
    @property
    def dims(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def error_ns(self) -> int: ...

class BreakerPageState:
    """A breaker of a process that is not closed, for one class of calls."""

    @property
    def implementation(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def openings(self) -> int: ...

class RuntimeState:
    """One runtime of a process."""

    @property
    def number(self) -> int: ...
    @property
    def since(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def updates(self) -> int: ...
    @property
    def version(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def frozen(self) -> bool: ...
    @property
    def disabled(self) -> bool: ...
    @property
    def generation(self) -> int: ...
    @property
    def policy_name(self) -> str: ...
    @property
    def policy_digest(self) -> str: ...
    @property
    def policy_origin(self) -> str: ...
    @property
    def policy_version(self) -> int: ...
    @property
    def policy_rules(self) -> int: ...
    @property
    def policies_refused(self) -> int: ...
    @property
    def last_refusal(self) -> str: ...
    @property
    def sources(self) -> list[PolicySourceState]: ...
    @property
    def health(self) -> str: ...
    @property
    def backends(self) -> list[BackendPageState]: ...
    @property
    def operators(self) -> list[OperatorPageState]: ...
    @property
    def choices(self) -> list[ChoicePageState]: ...
    @property
    def cells(self) -> list[CellPageState]: ...
    @property
    def proposals(self) -> list[TuningProposal]: ...
    @property
    def breakers(self) -> list[BreakerPageState]: ...
    @property
    def without_candidates(self) -> list[OperatorWithoutCandidates]: ...
    @property
    def left_out(self) -> int: ...
    def calls(self, implementation: str) -> int:
        """Returns the number of successful calls of an implementation."""

class ProcessState:
    """The state of a running process, read from its status file."""

    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def started(self) -> int: ...
    @property
    def alive(self) -> bool: ...
    @property
    def elsewhere(self) -> bool: ...
    @property
    def runtimes(self) -> list[RuntimeState]: ...
    def to_json(self) -> str: ...

def process_state(pid: int, state_dir: str = "") -> ProcessState:
    """Returns the state of a running process that publishes a status file."""

def process_states(state_dir: str = "") -> list[ProcessState]:
    """Returns the state of every running process that publishes a status file."""

class RecordOptions:
    """Where failed and diverging calls are recorded, and how much of each."""

    def __init__(
        self,
        *,
        folder: str = "",
        inputs: bool = False,
        max_files: int = 64,
        max_bytes: int = ...,
        dump: str = "",
    ) -> None: ...
    folder: str
    inputs: bool
    max_files: int
    max_bytes: int
    dump: str

class RecordState:
    """The folder and counters of recorded calls."""

    @property
    def folder(self) -> str: ...
    @property
    def inputs(self) -> bool: ...
    @property
    def written(self) -> int: ...
    @property
    def known(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def problem(self) -> str: ...

class ReplayDifference:
    """The first element that differs from the reference."""

    @property
    def argument(self) -> str: ...
    @property
    def index(self) -> list[int]: ...
    @property
    def got(self) -> float: ...
    @property
    def expected(self) -> float: ...
    @property
    def allowed(self) -> float: ...

class ReplayedImplementation:
    """The result of one implementation on a recorded call."""

    @property
    def id(self) -> str: ...
    @property
    def verdict(self) -> Literal["agrees", "differs", "fails", "cannot"]: ...
    @property
    def text(self) -> str: ...
    @property
    def difference(self) -> ReplayDifference | None: ...

class ReplayReport:
    """The result of replaying a recorded call."""

    @property
    def op(self) -> str: ...
    @property
    def recorded(self) -> str: ...
    @property
    def cause(self) -> Literal["failed", "diverged"]: ...
    @property
    def reason(self) -> str: ...
    @property
    def says(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def other_values(self) -> bool: ...
    @property
    def implementations(self) -> list[ReplayedImplementation]: ...
    @property
    def smaller(self) -> bytes:
        """The minimized call, as the bytes of a replay file."""

    @property
    def smaller_arguments(self) -> str: ...
    @property
    def tried(self) -> int: ...
    @property
    def verdict(self) -> Literal["agrees", "differs", "fails", "cannot"]: ...
    def to_json(self) -> str: ...

class QuarantineEntry:
    """A quarantined implementation: a process crashed inside it."""

    @property
    def implementation(self) -> str: ...
    @property
    def build(self) -> str: ...
    @property
    def how(self) -> str: ...
    @property
    def since(self) -> int: ...
    @property
    def expires(self) -> int: ...
    @property
    def here(self) -> bool: ...
    @property
    def phase(self) -> str: ...
    @property
    def deferred(self) -> bool: ...

class SuspectedEnd:
    """A process that was killed, with the implementations that were running."""

    @property
    def found(self) -> int: ...
    @property
    def process(self) -> int: ...
    @property
    def implementations(self) -> list[str]: ...

class Quarantine:
    """The quarantined implementations, and the processes that were killed inside one."""

    @property
    def entries(self) -> list[QuarantineEntry]: ...
    @property
    def suspected(self) -> list[SuspectedEnd]: ...
    def to_json(self) -> str: ...

class CrashJournalState:
    """The state of a runtime's crash journal."""

    @property
    def on(self) -> bool: ...
    @property
    def handler(self) -> bool: ...
    @property
    def path(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def ends(self) -> int: ...
    @property
    def damaged(self) -> int: ...
    @property
    def other_version(self) -> int: ...
    @property
    def unnoted(self) -> int: ...
    @property
    def threads_left_out(self) -> int: ...

class SourceOptions:
    """The sources of policy besides code, and how they are watched."""

    def __init__(self) -> None: ...

    mode: str
    config: str
    platform: str
    lockfile: str
    freeze_at_start: bool
    last_known_good: bool
    own_thread: bool
    look_at_files: bool

class LockedChoice:
    """The implementation locked for one class of calls of an operator."""

    @property
    def op(self) -> str: ...
    @property
    def when(self) -> str: ...
    @property
    def implementation(self) -> str: ...
    @property
    def build_id(self) -> str: ...
    @property
    def schema_hash(self) -> str: ...

class Lockfile:
    """Choices that another runtime can repeat; `str()` gives the text of the file."""

    @property
    def policy_hash(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def choices(self) -> list[LockedChoice]: ...
    @staticmethod
    def parse(text: str, name: str = "opmux.lock") -> Lockfile:
        """Parses a lockfile; the error names the line if it is invalid or was edited by hand."""

    @staticmethod
    def read(path: str) -> Lockfile:
        """Reads a lockfile."""

    def write(self, path: str) -> None:
        """Writes the lockfile, replacing the file atomically."""

class PolicyState:
    """The policy text in force, and counters of loaded and refused texts."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def rules(self) -> int: ...
    @property
    def expired(self) -> int: ...
    @property
    def unmatched(self) -> int: ...
    @property
    def unmatched_rules(self) -> list[str]: ...
    @property
    def previous_version(self) -> int: ...
    @property
    def loaded(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def rolled_back(self) -> int: ...
    @property
    def lapsed(self) -> int: ...
    @property
    def last_refusal(self) -> str: ...
    def to_json(self) -> str: ...

class PolicyChange:
    """A policy text that was put in force or refused."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def in_force(self) -> bool: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str: ...

class PolicyFinding:
    """A warning about a valid policy that may not do what its author meant."""

    @property
    def code(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def text(self) -> str: ...

class DecisionChange:
    """The first implementation of an operator before and after a policy change."""

    @property
    def op(self) -> str: ...
    @property
    def when(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def by(self) -> str: ...

class PolicyCheck:
    """The result of check_policy."""

    @property
    def rules(self) -> int: ...
    @property
    def findings(self) -> list[PolicyFinding]: ...
    @property
    def changes(self) -> list[DecisionChange]: ...
    def to_json(self) -> str: ...

_Health = Literal["healthy", "degraded", "unhealthy", "fatal"]
_BreakerState = Literal["closed", "open", "half open", "isolated"]

class BreakerInfo:
    """The breaker of an implementation for one class of calls that failed recently."""

    @property
    def implementation(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def state(self) -> _BreakerState: ...
    @property
    def failures_in_a_row(self) -> int: ...
    @property
    def openings(self) -> int: ...
    @property
    def change(self) -> int: ...
    @property
    def next_probe_ms(self) -> int: ...
    @property
    def why(self) -> str: ...

class BreakerEvent:
    """A state change of a breaker."""

    @property
    def implementation(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def before(self) -> _BreakerState: ...
    @property
    def after(self) -> _BreakerState: ...
    @property
    def openings(self) -> int: ...
    @property
    def change(self) -> int: ...
    @property
    def open_for_ms(self) -> int: ...
    @property
    def why(self) -> str: ...

class BackendHealth:
    """The health of a backend, with the reason."""

    @property
    def name(self) -> str: ...
    @property
    def health(self) -> _Health: ...
    @property
    def reason(self) -> str: ...

class DeviceState:
    """The health of a device, with the reason."""

    @property
    def device(self) -> str: ...
    @property
    def health(self) -> _Health: ...
    @property
    def reason(self) -> str: ...

class ShadowMismatch:
    """An element that differs from the reference's result."""

    @property
    def what(self) -> str: ...
    @property
    def element(self) -> str: ...
    @property
    def got(self) -> float: ...
    @property
    def expected(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def text(self) -> str: ...

class ShadowInfo:
    """The results of the shadow check for an implementation."""

    @property
    def implementation(self) -> str: ...
    @property
    def compared(self) -> int: ...
    @property
    def mismatches(self) -> int: ...
    @property
    def not_finite(self) -> int: ...
    @property
    def skipped(self) -> dict[str, int]: ...
    @property
    def last(self) -> ShadowMismatch | None: ...

class ShadowReport:
    """The settings and results of a runtime's shadow check."""

    @property
    def every(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def implementations(self) -> list[ShadowInfo]: ...

class OperatorWithoutCandidates:
    """An operator whose calls fail, because nothing that can run is left."""

    @property
    def op(self) -> str: ...
    @property
    def when(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def allowed(self) -> bool: ...

class HealthReport:
    """The health of a runtime, for a server's health endpoint."""

    @property
    def verdict(self) -> _Health: ...
    @property
    def reasons(self) -> list[str]: ...
    @property
    def backends(self) -> list[BackendHealth]: ...
    @property
    def devices(self) -> list[DeviceState]: ...
    @property
    def breakers(self) -> list[BreakerInfo]: ...
    @property
    def shadow(self) -> ShadowReport: ...
    @property
    def without_candidates(self) -> list[OperatorWithoutCandidates]: ...
    @property
    def refused_policies(self) -> int: ...
    @property
    def last_refusal(self) -> str: ...
    def to_json(self) -> str: ...

class Constant:
    """A tensor that implementations may pack once; the packed copies belong to it."""

    def changed(self) -> None:
        """Drops the packed copies; call it after changing the tensor's data."""

    @property
    def version(self) -> int: ...
    @property
    def packs(self) -> int: ...
    @property
    def packed_bytes(self) -> int: ...
    @property
    def tensor(self) -> Any: ...

class Runtime:
    """A runtime: operators, implementations and policy."""

    def __init__(
        self,
        *,
        environment: Sequence[tuple[str, str]] | None = None,
        plugins: PluginOptions = ...,
        backends: bool = True,
        policy: Policy = ...,
        sources: SourceOptions = ...,
        threads: int = 0,
        state: StateOptions = ...,
        record: RecordOptions = ...,
        sink: Callable[[str, str, str, str, str], object] | None = None,
        policy_trust: str = "warn",
    ) -> None: ...
    def op(self, name: str) -> Operator:
        """Returns the operator with that name."""

    def define(self, schema: str, *, data_checked: bool = False) -> None: ...
    def define_all(self, schemas: Sequence[str], *, data_checked: bool = False) -> None:
        """Defines several operators in one step: all of them, or none if one is refused."""
    def set_policy(self, policy: Policy, /) -> None: ...
    def policy(self) -> Policy: ...
    def reset_policy(self) -> None: ...
    def set_selector(
        self,
        function: Callable[[str, list[Candidate], dict[str, Any]], Candidate | str | None] | None,
        reads: Sequence[str] = ...,
        name: str = "selector",
    ) -> None:
        """Calls function(op, accepted, facts) for each decision; None removes the selector."""

    def lock(self) -> Lockfile:
        """Returns the choices made so far outside of scopes."""

    def freeze(self, lock: Lockfile | None = None, name: str = "opmux.lock") -> Lockfile:
        """Freezes the runtime with the choices made so far, or with those of a lockfile."""

    def check_lock(self, lock: Lockfile, name: str = "opmux.lock") -> None:
        """Raises an error that lists all differences if freeze would reject the lockfile."""

    @property
    def frozen(self) -> bool: ...
    def load_policy(self, text: str, name: str = "policy") -> None:
        """Puts the text of a policy file in force; a refused text changes nothing."""

    def check_policy(
        self,
        text: str,
        name: str = "policy",
        *,
        strict_names: bool = False,
        machine: Sequence[OperatorInfo] = ...,
    ) -> PolicyCheck:
        """Checks a policy text without loading it: returns warnings and changed decisions."""

    def rollback(self) -> None:
        """Restores the previous policy text."""

    def policy_state(self) -> PolicyState: ...
    def add_validator(self, function: Callable[[Policy], str | bool | None]) -> None:
        """Calls function(policy) before each load; a str or an exception refuses the policy."""

    def on_policy(self, function: Callable[[PolicyChange], object]) -> None:
        """Calls function(change) for each policy text that is loaded or refused."""

    def health(self) -> HealthReport:
        """Returns the health verdict and its details."""

    def force_breaker(self, implementation: str, what: Literal["open", "close", "isolate"]) -> None:
        """Opens, closes or isolates the breaker of an implementation by hand."""

    def on_breaker(self, function: Callable[[BreakerEvent], object]) -> None:
        """Calls function(event) for each breaker state change."""

    def tick(self, now: float) -> None:
        """Runs the maintenance due at `now`, in seconds, on the calling thread."""

    def warm_up(self) -> None:
        """Loads the deferred plugins now."""

    def enable_backend(self, name: str, on: bool = True) -> None: ...
    def set_architecture(self, device: str, architecture: str) -> None: ...
    def set_rank(self, rank: int | None, tp_size: int | None) -> None:
        """States the place of this process, for `rank` and `tp_size` in conditions of rules."""

    def use_openmp(self) -> None:
        """Runs calls on the threads of the process's OpenMP runtime, which torch also uses."""

    def list(self) -> builtins.list[OperatorInfo]: ...
    def load_plugin(self, path: str) -> PluginInfo:
        """Loads the plugin of one file now, with the checks of the plugin options."""
    def plugins(self) -> builtins.list[PluginInfo]: ...
    def stats(self) -> builtins.list[CallStats]: ...
    def settings(self) -> builtins.list[SettingInfo]: ...
    def tuning(self) -> builtins.list[TuningBundle]: ...
    def proposals(self) -> builtins.list[TuningProposal]:
        """Faster implementations that the runtime found by measuring sampled calls."""

    def check_tuning(self) -> None:
        """Reads the measured speeds of all operators, so that tuning() counts them."""

    def reload_tuning(self) -> None:
        """Uses the bundles that are in the places of the start now."""

    def sample_all_calls(self, on: bool) -> None:
        """Starts or ends sampling of all calls, whose cells write_state_page() writes."""

    def write_state_page(self, path: str) -> None:
        """Writes the state of the runtime to a file once."""

    def quarantine(self) -> Quarantine:
        """Returns the quarantined implementations and the processes that were killed inside one."""

    def clear_quarantine(self, implementation: str = "") -> int:
        """Clears the quarantine of one implementation or of all; returns the entries removed."""

    def crash_journal(self) -> CrashJournalState: ...
    def recordings(self) -> RecordState:
        """Returns where failed and diverging calls are recorded, and how many were."""

    def replay(
        self, path: str, implementations: Sequence[str] = ..., minimize: bool = False
    ) -> ReplayReport:
        """Repeats a recorded call and compares the outputs with the reference."""

    def constant(self, tensor: Any) -> Constant: ...
    @property
    def packed_bytes(self) -> int: ...
    @property
    def parameters(self) -> int:
        """The number of torch parameters that are cached as constants."""

    @property
    def generation(self) -> int: ...
    @property
    def disabled(self) -> bool: ...

class ThreadScope:
    """A policy for this thread that also applies to C++ code called from it."""

    def __init__(self, runtime: Runtime, policy: Policy, /) -> None: ...
    def __enter__(self) -> ThreadScope: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

def decide(op: Operator, *args: Any, **kwargs: Any) -> str: ...
def explain(op: Operator, *args: Any, **kwargs: Any) -> Explanation: ...
def make_scope(
    runtime: Runtime,
    policy: Policy,
    outer: Scope | None,
    tag: str | None = None,
    max_threads: int | None = None,
    ambient: int = 0,
    reports: list[dict[str, Any]] | None = None,
) -> Scope: ...
def ambient(runtime: Runtime) -> int: ...

class FactsView:
    """The facts that a verifier may read while it runs."""

    def get(self, kind: int, name: str, /) -> int | None: ...

class BorrowedTensor:
    """A tensor that a C++ caller passed, for a Python implementation."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Registration:
    """The registration of an implementation."""

    def withdraw(self) -> None:
        """Removes the implementation; returns when no call is running it."""

    def keep(self) -> None:
        """Keeps the implementation registered as long as the runtime lives."""

class ImplementationDraft:
    """An implementation that is not registered yet."""

def draft(
    runtime: Runtime,
    id: str,
    function: Callable[..., Any],
    verifier: Callable[[FactsView], str | None] | None,
    kind: str,
    vendor: str,
    priority: int,
    caps: dict[str, Any],
    reads: Sequence[tuple[int, str]],
    flags: int,
    available: Callable[[], str | None] | None = None,
    default_enable: bool | None = None,
    stream: bool = False,
    hints: Sequence[Hint] = (),
    build: str = "",
) -> ImplementationDraft: ...
def implement(runtime: Runtime, draft: ImplementationDraft) -> None: ...
def implement_together(runtime: Runtime, drafts: list[ImplementationDraft]) -> None: ...
def withdraw(runtime: Runtime, id: str) -> bool: ...
def check_caps(caps: dict[str, Any], /) -> None: ...
def implement_function(
    runtime: Runtime,
    id: str,
    kind: str,
    vendor: str,
    priority: int,
    caps: dict[str, Any],
    flags: int,
    default_enable: bool | None,
) -> Registration: ...
def implement_nothing(runtime: Runtime, id: str) -> Registration: ...
def set_adopt_hook(hook: Callable[[BorrowedTensor], Any], /) -> None: ...
def declare_point(runtime: Runtime, signature: str, /) -> None: ...
def ask_point(runtime: Runtime, signature: str, /, *args: Any) -> tuple[Any] | None: ...
def list_points(runtime: Runtime, /) -> list[PointInfo]: ...
def explain_point(runtime: Runtime, signature: str, /, *args: Any) -> PointInfo: ...
def answer_point(
    runtime: Runtime, signature: str, backend: str, function: Callable[..., Any], /
) -> Registration: ...
def learn_torch(
    tensor: type,
    parameter: type,
    is_grad_enabled: Callable[[], bool],
    is_inference_mode_enabled: Callable[[], bool],
    mode_flags: dict[str, Any],
    count_modes: Callable[[], int],
    is_deterministic: Callable[[], bool],
    is_any_autocast_enabled: Callable[[], bool],
    is_capturing: Callable[[], bool] | None,
) -> None: ...
def torch_ambient() -> int: ...
def call_watched(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    note: Callable[[str], None],
) -> Any: ...
def watch_reads_of(environ_codes: tuple[object, ...], torch: object | None) -> None: ...

reader_version: int

def use_torch_reader(capsule: object | None) -> None: ...
def readings() -> list[tuple[str, str, str]]: ...
def read_path(type: type, /) -> int: ...
def set_error_type(code: int, type: type[BaseException], /) -> None: ...
def set_allocate_hook(hook: Callable[[Any, tuple[int, ...], str, int, int], Any], /) -> None: ...
def set_reroute_hook(hook: Callable[[str, tuple[Any, ...], dict[str, Any]], Any], /) -> None: ...
def release_gil_from() -> int: ...
def set_release_gil_from(elements: int, /) -> None: ...
def dispatchable_add(
    function: Dispatchable, id: str, implementation: Callable[..., Any], body: bool, /
) -> None: ...
def dispatchable_attach(
    function: Dispatchable,
    runtime: Runtime,
    decides: bool,
    name: str,
    parameters: list[tuple[int, str]],
    /,
) -> None: ...
def dispatchable_call(
    function: Dispatchable, asked: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /
) -> Any: ...
def dispatchable_explain(
    function: Dispatchable, asked: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /
) -> Explanation: ...
def dispatchable_clear(function: Dispatchable, /) -> None: ...
def forget_decisions() -> None: ...
def revise_explanation(
    explanation: Explanation,
    arguments: str,
    refusals: dict[str, tuple[str, str]],
    depends_on: list[str],
    /,
) -> Explanation: ...

class RaceStanding:
    """The result of one function of a race."""

    @property
    def verdict(self) -> str: ...
    @property
    def log_ratio(self) -> float:
        """log(its time / time of the first function)."""

    @property
    def low(self) -> float:
        """Lower bound of log_ratio."""

    @property
    def high(self) -> float:
        """Upper bound of log_ratio."""

    @property
    def rounds(self) -> int:
        """Rounds in which it was compared with the first one."""

class RaceResult:
    """The result of race()."""

    @property
    def standings(self) -> list[RaceStanding]: ...
    @property
    def winner(self) -> int: ...
    @property
    def ended_by_time(self) -> bool: ...
    @property
    def dropped(self) -> int: ...
    @property
    def noise(self) -> str: ...

def race(functions: list[Callable[[int], None]], threads: int, most_seconds: float) -> RaceResult:
    """Finds the fastest of 2 to 16 functions, each called with the number of its calls. Raises
    what one of them raises."""

def call_nothing(*args: Any, **kwargs: Any) -> None: ...
def exchange_three(*args: Any, **kwargs: Any) -> None: ...
