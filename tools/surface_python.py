"""The switches of the Python package: lists keyword arguments, and rewrites modules so that one can be removed.

Functions in Python get two lines per argument that set it to its default. The classes of the extension module are read
from its stub, _core.pyi; an argument of theirs is taken out of the call before the class sees it.
"""
import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Folders with public functions, and the prefix of the names of these functions.
PACKAGES = {"python/opmux": "", "python/opmux/transformers": "transformers.",
            "python/opmux/torch_backend": "torch_backend."}
# Functions whose arguments users give to another one: `f.implementation("acme.v1", pure=True)` of a dispatchable f.
PASSED_ON = {"python/opmux": {"function_options"}}
STUB = "python/opmux/_core.pyi"
# Asks the ancestors too, as tools/surface_mutant.hpp does.
HEAD = """
def _surface_switch() -> str:
    import os
    import pathlib
    import re

    process = os.getpid()
    while process > 1:
        folder = pathlib.Path(f"/proc/{process}")
        if not os.access(folder / "environ", os.R_OK):
            break
        found = re.search(rb"(?:^|\\0)SURFACE_MUTANT=([^\\0]+)", (folder / "environ").read_bytes())
        if found:
            return found[1].decode()
        process = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return ""


_surface_name = _surface_switch()


def _surface_removed(name: str) -> bool:
    return _surface_name == name

"""
# Goes to the start of opmux/__init__.py. Values of `listed`: names of the parameters, whether the function is static.
EXTENSION = '''
def _surface_extension(listed):
    from . import _core

    switch = _surface_name
    if switch not in listed:
        return
    names, static = listed[switch]
    owner, function, argument = switch.removeprefix("python:").split(".")
    kind, place = getattr(_core, owner), names.index(argument) if argument in names else len(names)

    def without(called):
        def call(*given, **named):
            named.update(zip(names[place + 1 :], given[place + 1 :]))
            named.pop(argument, None)
            return called(*given[:place], **named)

        return call

    class Maker:
        """Stands for a class whose constructor ignores an argument."""

        __call__ = staticmethod(without(kind))

        def __getattr__(self, name):
            return getattr(kind, name)

        def __instancecheck__(self, value):
            return isinstance(value, kind)

    if function == "__init__":
        setattr(_core, owner, Maker())
    else:
        changed = without(getattr(kind, function))
        setattr(kind, function, staticmethod(changed) if static else changed)


_surface_extension({listed})
'''


def exported(folder):
    """Names that the package in a folder offers."""
    tree = ast.parse((ROOT / folder / "__init__.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return {ast.literal_eval(item) for item in node.value.elts} | PASSED_ON.get(folder, set())
    raise ValueError(f"{folder}/__init__.py has no __all__")


def arguments_with_default(function):
    """(name, default) of the parameters of a function that have a default."""
    given = function.args
    positional = given.posonlyargs + given.args
    pairs = [*zip(positional[len(positional) - len(given.defaults):], given.defaults),
             *((a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults) if d is not None)]
    yield from ((argument.arg, default) for argument, default in pairs if not argument.arg.startswith("_"))


def functions(tree, wanted):
    """(qualified name, node) of the public functions and methods of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in wanted and not is_overload(node):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and node.name in wanted:
            for method in node.body:
                public = isinstance(method, ast.FunctionDef) and (
                    method.name == "__init__" or not method.name.startswith("_"))
                if public and not is_overload(method):
                    yield f"{node.name}.{method.name}", method


def is_overload(function):
    return any(getattr(d, "id", getattr(d, "attr", "")) == "overload" for d in function.decorator_list)


def modules():
    """(path, prefix, names that the package offers) of the modules with public functions."""
    for folder, prefix in PACKAGES.items():
        wanted = exported(folder)
        for path in sorted((ROOT / folder).glob("_*.py")):
            yield path, prefix, wanted


def of_extension():
    """{switch: (names of the parameters, whether the function is static)} of the classes of the extension module."""
    tree = ast.parse((ROOT / STUB).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {}
    for name, function in functions(ast.Module(classes, []), exported("python/opmux")):
        static = any(getattr(d, "id", "") == "staticmethod" for d in function.decorator_list)
        names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
        names = names[1:] if function.name == "__init__" else names
        found.update((f"{name}.{argument}", (names, static)) for argument, _ in arguments_with_default(function))
    return found


def names():
    """The switches, in the order of the sources."""
    for path, prefix, wanted in modules():
        for name, function in functions(ast.parse(path.read_text()), wanted):
            yield from (f"{prefix}{name}.{argument}" for argument, _ in arguments_with_default(function))
    yield from of_extension()


def is_rewritten(name):
    """Whether `rewritten` changes the file of that name."""
    folder, _, file = name.rpartition("/")
    return folder in PACKAGES and file.startswith("_") and file.endswith(".py")


def rewritten(path, prefix, wanted):
    """The text of a module whose switches can be removed."""
    text = path.read_text()
    lines, tree = text.split("\n"), ast.parse(text)
    places = []
    for name, function in functions(tree, wanted):
        body = function.body
        documented = len(body) > 1 and isinstance(getattr(body[0], "value", None), ast.Constant)
        first = body[1] if documented else body[0]
        places += [(first.lineno, first.col_offset, f"python:{prefix}{name}.{argument}", argument, ast.unparse(default))
                   for argument, default in arguments_with_default(function)]
    for line, column, name, argument, default in sorted(places, reverse=True):
        pad = " " * column
        lines[line - 1:line - 1] = [f'{pad}if _surface_removed("{name}"):', f"{pad}    {argument} = {default}"]
    changed = re.sub(r'os\.environ\.get\("(OPMUX_\w+)", ""\)',
                     r'("" if _surface_removed("environment:\1") else \g<0>)', "\n".join(lines))
    if changed == text and path != ROOT / "python/opmux/__init__.py":
        return text
    head = HEAD
    if path == ROOT / "python/opmux/__init__.py":
        head += EXTENSION.replace("{listed}", repr({f"python:{k}": v for k, v in of_extension().items()}))
    future = "from __future__ import annotations\n"
    assert changed.count(future) == 1, f"{path} does not import annotations from __future__"
    return changed.replace(future, future + head)
