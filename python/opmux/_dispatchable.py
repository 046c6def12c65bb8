"""`@opmux.dispatchable`: a function whose own body is the meaning and the last candidate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from . import _core
from ._implementations import define, implementation
from ._ops import function_of

F = TypeVar("F", bound=Callable[..., Any])


def _without_schema(
    function: Callable[..., Any], name: str | None, backends: str | Sequence[str]
) -> _core.Dispatchable:
    from ._dispatch_family import Family, declare  # not before there is a function to make

    modules = (backends,) if isinstance(backends, str) else tuple(backends)
    family = Family(name or function.__name__, function, modules)
    made = family.function
    functools.update_wrapper(made, function)
    made.name = family.name
    made.family = family
    made.explain = family.explain
    made.stats = family.stats
    # What torch.compiler.disable leaves on a function: torch need not be imported for it. The
    # extension does the rest once a compiled function calls this one.
    made._torchdynamo_disable = True
    made._torchdynamo_disable_msg = f"{family.name} chooses among Python functions at run time"

    def register(variant: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        """Makes a function an implementation: `@f.implementation("provider.variant")`."""
        return lambda candidate: family.add(candidate, variant, **options)

    made.implementation = register
    declare(family, function)
    return made


def _with_schema(schema: str, function: Callable[..., Any]) -> Any:
    operator = define(schema)
    implementation(operator.name, "own.body", kind="reference")(function)
    return function_of(operator.name)


@overload
def dispatchable(function: F, /) -> F: ...
@overload
def dispatchable(
    schema: str | None = None, /, *, name: str | None = None, backends: str | Sequence[str] = ()
) -> Callable[[F], F]: ...
def dispatchable(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    backends: str | Sequence[str] = (),
) -> Any:
    """Lets implementations stand in for a function; its own body is `NAME/own.body`, the last
    resort.

    Without a schema it takes any arguments and returns what an implementation returns. Others
    register by `@opmux.implementation(NAME, "provider.variant")` or
    `@function.implementation("provider.variant")`; modules named by `backends`, and entry points of
    the group `opmux.plugins.NAME`, are imported when it is first called. `function.explain(...)`
    shows a decision, `function.last` who ran last, `function.stats()` counts.

    With a schema, `@opmux.dispatchable("f(out Tensor y[N], Tensor x[N])")`, it is an operator like
    any other and the body one of its implementations.
    """
    if callable(function):
        return _without_schema(function, name, backends)
    if isinstance(function, str):
        if name is not None or backends:
            raise TypeError("a schema has the name, and backends register by themselves")
        return functools.partial(_with_schema, function)
    return lambda decorated: _without_schema(decorated, name, backends)
