"""`@opmux.dispatchable`: a function whose body is both the reference and the last fallback."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from . import _core
from ._implementations import define, function_options, implementation
from ._ops import function_of

F = TypeVar("F", bound=Callable[..., Any])


def _without_schema(
    function: Callable[..., Any], name: str | None, backends: str | Sequence[str], pure: bool
) -> _core.Dispatchable:
    from ._dispatch_family import Family, declare  # imported lazily to keep `import opmux` fast

    modules = (backends,) if isinstance(backends, str) else tuple(backends)
    family = Family(name or function.__name__, function, modules, pure)
    made = family.function
    functools.update_wrapper(made, function)
    made.name = family.name
    made.family = family
    made.explain = family.explain
    made.stats = family.stats
    # The attributes that torch.compiler.disable sets, set here without importing torch. The
    # extension does the rest when compiled code first calls this function.
    made._torchdynamo_disable = True
    made._torchdynamo_disable_msg = f"{family.name} chooses among Python functions at run time"

    def register(variant: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        """Registers a function as an implementation: `@f.implementation("provider.variant")`."""
        made = function_options(variant, **options)
        return lambda candidate: family.add(candidate, variant, **made)

    made.implementation = register
    declare(family, function)
    return made


def _with_schema(schema: str, function: Callable[..., Any]) -> Any:
    operator = define(schema)
    # The body runs where the promise is required, because it would run without opmux too.
    implementation(
        operator.name, "own.body", kind="reference", deterministic=True, capture_safe=True
    )(function)
    return function_of(operator.name)


@overload
def dispatchable(function: F, /) -> F: ...
@overload
def dispatchable(
    schema: str | None = None,
    /,
    *,
    name: str | None = None,
    backends: str | Sequence[str] = (),
    pure: bool = False,
) -> Callable[[F], F]: ...
def dispatchable(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    backends: str | Sequence[str] = (),
    pure: bool = False,
) -> Any:
    """Routes calls of a function to registered implementations. The function's body is the
    implementation `NAME/own.body`, the last fallback.

    Without a schema, the function takes any arguments and returns whatever the implementation
    returns. Register implementations with `@opmux.implementation(NAME, "provider.variant")` or
    `@function.implementation("provider.variant")`. The first call imports the modules named in
    `backends` and the entry points of the group `opmux.plugins.NAME`. `function.explain(...)` shows
    a decision, `function.last` is the id of the last implementation called, and `function.stats()`
    returns counters. `pure` says that the body changes nothing, so that the shadow check may run it
    to compare the results of implementations that are pure too.

    With a schema, `@opmux.dispatchable("f(out Tensor y[N], Tensor x[N])")`, the function becomes an
    operator and its body one of the operator's implementations.
    """
    if callable(function):
        return _without_schema(function, name, backends, pure)
    if isinstance(function, str):
        if name is not None or backends or pure:
            raise TypeError("name=, backends= and pure= cannot be combined with a schema")
        return functools.partial(_with_schema, function)
    return lambda decorated: _without_schema(decorated, name, backends, pure)
