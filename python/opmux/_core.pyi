"""The extension module: calls of operators, and what a runtime tells about itself."""

import builtins
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, final

__version__: str

@final
class Operator:
    """An operator: call it, bind it, ask it."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def schema(self) -> str:
        """The canonical text of its schema."""

    @property
    def signature(self) -> str:
        """How it is called from Python."""

    @property
    def function(self) -> Callable[..., Any]:
        """The call as a builtin function."""

    def bind(self, *args: Any, **kwargs: Any) -> Plan:
        """Decides once for arguments like these: a plan, which is called without a lookup."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class Dispatchable:
    """A function whose calls are routed to implementations."""

    @property
    def last(self) -> str | None:
        """The id of the implementation that was called last."""

    @property
    def calls(self) -> dict[str, int]:
        """How often each implementation was called, by id."""

    @property
    def remembered(self) -> int:
        """How many decisions are remembered."""

    def __init__(self, slow: Callable[..., Any], after: Callable[..., Any], /) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __getattribute__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...

@final
class Plan:
    """One decision, kept: called without a lookup."""

    @property
    def operator(self) -> Operator:
        """The operator that it runs."""

    @property
    def function(self) -> Callable[..., Any]:
        """The call as a builtin function, which the interpreter reaches faster."""

    @property
    def state(self) -> str:
        """'current', 'stale' or 'revoked'."""

    @property
    def implementation(self) -> str:
        """The implementation that it runs."""

    @property
    def generation(self) -> int:
        """Of the snapshot that decided."""

    def refresh(self) -> None:
        """Decides anew for arguments like those it was bound with."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class Scope:
    """What surrounds calls; made by opmux.scope and its kin."""

scope_variable: ContextVar[Scope | None]

class Candidate:
    """One candidate of a decision, and what became of it."""

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
    def accepted(self) -> bool: ...

class Explanation:
    """Why an operator runs what it runs; print it, or read its fields."""

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
    """Folded counters of one implementation."""

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
    def packed_bytes(self) -> int: ...

class PluginInfo:
    """What was found where plugins are looked for."""

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

class SettingInfo:
    """One effective setting and where it came from."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def origin(self) -> str: ...

class Condition:
    """A question about a call, for a rule; joined by &, | and ~."""

    @staticmethod
    def parse(text: str) -> Condition:
        """A condition as policy files have it."""

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
    def scalar(argument: str, compare: str, value: int, /) -> Condition: ...
    @staticmethod
    def ambient(name: str, /) -> Condition: ...
    def __and__(self, arg: Condition, /) -> Condition: ...
    def __or__(self, arg: Condition, /) -> Condition: ...
    def __invert__(self) -> Condition: ...

class Boost:
    """Changes the score of the implementations that match."""

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
    """What a program or a scope wants of selection."""

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
    rules: list[Rule]

class PluginOptions:
    """Where plugins are looked for and what they must prove."""

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
    ) -> None: ...

    folders: list[str]
    trust: str
    keyring: str
    digests: list[str]
    sealed: bool
    probe: bool
    max_bytes: int

class StateOptions:
    """What a runtime keeps beyond the life of its process, and where."""

    def __init__(self, *, folder: str = "", crash_journal: str = "off") -> None: ...
    folder: str
    crash_journal: str

class QuarantineEntry:
    """An implementation that may not run: a process ended inside of it."""

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

class SuspectedEnd:
    """A process that was killed, with what it was inside of."""

    @property
    def found(self) -> int: ...
    @property
    def process(self) -> int: ...
    @property
    def implementations(self) -> list[str]: ...

class Quarantine:
    """What is quarantined, and what is suspected."""

    @property
    def entries(self) -> list[QuarantineEntry]: ...
    @property
    def suspected(self) -> list[SuspectedEnd]: ...
    def to_json(self) -> str: ...

class CrashJournalState:
    """What became of a runtime's crash journal."""

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
    """Where policy comes from besides code, and how it is followed."""

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
    """What runs for one class of calls of one operator."""

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
    """Choices that were made once and are to be made again; `str()` gives the text of the file."""

    @property
    def policy_hash(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def choices(self) -> list[LockedChoice]: ...
    @staticmethod
    def parse(text: str, name: str = "opmux.lock") -> Lockfile:
        """Reads a text; fails with file and line for what is no lockfile or was changed by hand."""

    @staticmethod
    def read(path: str) -> Lockfile:
        """Reads a file."""

    def write(self, path: str) -> None:
        """Replaces the file as a whole."""

class PolicyState:
    """The policy text in force, and what became of those before and after it."""

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
    """A text that came into force, or did not."""

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
    """Something about a policy that would apply, but perhaps not as meant."""

    @property
    def code(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def text(self) -> str: ...

class DecisionChange:
    """What is tried first for an operator now, and what would be."""

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
    """What check_policy found."""

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
    """One class of calls of an implementation that failed lately."""

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
    def next_probe_ms(self) -> int: ...
    @property
    def why(self) -> str: ...

class BreakerEvent:
    """A breaker that changed its state."""

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
    def open_for_ms(self) -> int: ...
    @property
    def why(self) -> str: ...

class BackendHealth:
    """How a backend is doing, and why."""

    @property
    def name(self) -> str: ...
    @property
    def health(self) -> _Health: ...
    @property
    def reason(self) -> str: ...

class DeviceState:
    """How a device is doing, and why."""

    @property
    def device(self) -> str: ...
    @property
    def health(self) -> _Health: ...
    @property
    def reason(self) -> str: ...

class ShadowMismatch:
    """An element that was computed otherwise than by the reference."""

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
    """What the shadow check found about an implementation."""

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
    """The shadow check of a runtime."""

    @property
    def every(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def implementations(self) -> list[ShadowInfo]: ...

class HealthReport:
    """For a server's own health endpoint."""

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
    def to_json(self) -> str: ...

class Constant:
    """A tensor with an owner: packed once, by the first call that can."""

    def changed(self) -> None:
        """The data are others now: packed copies are dropped."""

    @property
    def version(self) -> int: ...
    @property
    def packs(self) -> int: ...
    @property
    def packed_bytes(self) -> int: ...
    @property
    def tensor(self) -> Any: ...

class Runtime:
    """Operators, implementations and policy."""

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
        sink: Callable[[str, str, str, str, str], object] | None = None,
    ) -> None: ...
    def op(self, name: str) -> Operator:
        """The operator of that name."""

    def define(self, schema: str, *, data_checked: bool = False) -> None: ...
    def set_policy(self, policy: Policy, /) -> None: ...
    def policy(self) -> Policy: ...
    def reset_policy(self) -> None: ...
    def set_selector(
        self,
        function: Callable[[str, list[Candidate], dict[str, Any]], Candidate | str | None] | None,
        reads: Sequence[str] = ...,
        name: str = "selector",
    ) -> None:
        """Asks the function when something is decided; None takes it back."""

    def lock(self) -> Lockfile:
        """The choices that were made so far outside of scopes."""

    def freeze(self, lock: Lockfile | None = None, name: str = "opmux.lock") -> Lockfile:
        """Takes no more changes; chooses as so far, or as a lockfile says."""

    def check_lock(self, lock: Lockfile, name: str = "opmux.lock") -> None:
        """Raises with all differences if freeze would not take that lockfile."""

    @property
    def frozen(self) -> bool: ...
    def load_policy(self, text: str, name: str = "policy") -> None:
        """Puts the text of a policy file in force; one that is refused changes nothing."""

    def check_policy(
        self,
        text: str,
        name: str = "policy",
        *,
        strict_names: bool = False,
        machine: Sequence[OperatorInfo] = ...,
    ) -> PolicyCheck:
        """What would become of a text: what is odd about it, which decisions change."""

    def rollback(self) -> None:
        """Goes back to the text before."""

    def policy_state(self) -> PolicyState: ...
    def add_validator(self, function: Callable[[Policy], str | bool | None]) -> None:
        """Asks function(policy) before each text; a text as answer, or an exception, refuses."""

    def on_policy(self, function: Callable[[PolicyChange], object]) -> None:
        """Tells function(change) of each text that is loaded or refused."""

    def health(self) -> HealthReport:
        """How everything is doing, in one verdict and in detail."""

    def force_breaker(self, implementation: str, what: Literal["open", "close", "isolate"]) -> None:
        """Opens, closes or isolates an implementation by hand."""

    def on_breaker(self, function: Callable[[BreakerEvent], object]) -> None:
        """Tells function(event) of each breaker that changes its state."""

    def tick(self, now: float) -> None:
        """Does what is due at `now`, in seconds, on this thread."""

    def warm_up(self) -> None:
        """Loads the plugins that wait until a decision could use them."""

    def enable_backend(self, name: str, on: bool = True) -> None: ...
    def use_openmp(self) -> None:
        """Runs calls on the threads of the OpenMP runtime that the process has, as torch does."""

    def list(self) -> builtins.list[OperatorInfo]: ...
    def plugins(self) -> builtins.list[PluginInfo]: ...
    def stats(self) -> builtins.list[CallStats]: ...
    def settings(self) -> builtins.list[SettingInfo]: ...
    def quarantine(self) -> Quarantine:
        """What may not run because processes ended inside of it, and what is suspected."""

    def clear_quarantine(self, implementation: str = "") -> int:
        """Lets an implementation, or all, run again; returns how often it was listed."""

    def crash_journal(self) -> CrashJournalState: ...
    def constant(self, tensor: Any) -> Constant: ...
    @property
    def packed_bytes(self) -> int: ...
    @property
    def parameters(self) -> int:
        """How many parameters of torch modules are remembered as constants."""

    @property
    def generation(self) -> int: ...
    @property
    def disabled(self) -> bool: ...

class ThreadScope:
    """A policy for this thread that C++ code called from it sees too."""

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
    reports: list[dict[str, Any]] | None = None,
) -> Scope: ...

class FactsView:
    """What a verifier may ask, while it runs."""

    def get(self, kind: int, name: str, /) -> int | None: ...

class BorrowedTensor:
    """A tensor of a call that did not come from Python."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Registration:
    """Keeps an implementation registered."""

    def withdraw(self) -> None:
        """Unpublishes it, and returns when no call is inside any more."""

    def keep(self) -> None:
        """Keeps it for as long as the runtime lives."""

def implement(
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
) -> Registration: ...
def keep_registration(runtime: Runtime, id: str, registration: Registration) -> None: ...
def withdraw(runtime: Runtime, id: str) -> bool: ...
def implement_nothing(runtime: Runtime, id: str) -> Registration: ...
def set_adopt_hook(hook: Callable[[BorrowedTensor], Any], /) -> None: ...
def declare_point(runtime: Runtime, signature: str, /) -> None: ...
def ask_point(runtime: Runtime, signature: str, /, *args: Any) -> tuple[Any] | None: ...
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
    /,
) -> None: ...

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
def dispatchable_attach(function: Dispatchable, runtime: Runtime, decides: bool, /) -> None: ...
def dispatchable_remember(
    function: Dispatchable,
    id: str,
    scope: int,
    generation: int,
    questions: list[tuple[int, tuple[int, ...], int, int, str | None]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    /,
) -> bool: ...
def dispatchable_find(
    function: Dispatchable, scope: int, args: tuple[Any, ...], kwargs: dict[str, Any], /
) -> str | None: ...
def dispatchable_note_call(function: Dispatchable, id: str, /) -> None: ...
def dispatchable_clear(function: Dispatchable, /) -> None: ...
def forget_decisions() -> None: ...
def implement_marker(
    runtime: Runtime, id: str, kind: str, vendor: str, priority: int, flags: int, /
) -> Registration: ...
def revise_explanation(
    explanation: Explanation,
    arguments: str,
    refusals: dict[str, tuple[str, str]],
    depends_on: list[str],
    /,
) -> Explanation: ...
def scope_around(runtime: Runtime, /) -> tuple[int, bool]: ...
def report_call(runtime: Runtime, fields: dict[str, Any], /) -> None: ...
def call_nothing(*args: Any, **kwargs: Any) -> None: ...
def exchange_three(*args: Any, **kwargs: Any) -> None: ...
