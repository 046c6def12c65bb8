#!/usr/bin/env python3
"""Fails on an #include that the layering rules forbid, and on a folder of src/ with too many files.

usage: check_layers.py [--count] [ROOT]

With --count it prints the size of the tree beside the size before the restructuring and the aim;
tools/tree_counts.py says how each number is counted.

The layers are the folders of src/; each public header in include/opmux belongs to one of them. A file
may include its layer and the layers listed for it in MAY_INCLUDE, and no others. A file of operators/ has
a role, which OPERATOR_ROLES maps to the rules of a backend or of a layer.
"""
import pathlib
import re
import sys

import tree_counts

MAY_INCLUDE = {
    "base": "",
    "schema": "base",
    "registry": "base schema",
    "policy": "base schema registry",
    "health": "base schema registry",
    "crash": "base schema registry",
    "verify": "base schema registry",
    "tune": "base schema registry",
    "dispatch": "base schema registry policy health crash verify tune",
    "plugin": "base schema registry policy health crash verify tune dispatch",
    "status": "base schema registry policy health crash verify tune dispatch",
    "shadow": "base schema registry policy health crash verify tune dispatch",
    "replay": "base schema registry policy health crash verify tune dispatch",
    "runtime": "base schema registry policy health crash verify tune dispatch plugin status shadow"
               " replay",
    "c_api": "base schema registry policy health crash verify tune dispatch plugin status shadow"
             " replay runtime",
    "conformance": "base schema registry verify runtime",
    "tuner": "base schema registry verify tune replay conformance runtime",
}

# The layer of every public header. A new header needs a line here.
PUBLIC = {
    "abi.h": "base",
    "abi/values.h": "base",
    "plugin.hpp": "base",
    "plugin/backend.hpp": "base",
    "plugin/call.hpp": "base",
    "plugin/caps.hpp": "base",
    "plugin/entry.hpp": "base",
    "plugin/facts.hpp": "base",
    "plugin/implementation.hpp": "base",
    "plugin/outcome.hpp": "base",
    "plugin/tensor_arg.hpp": "base",
    "reader.h": "base",
    "options.hpp": "base",
    "status.hpp": "base",
    "version.h": "base",
    "tensor.hpp": "schema",
    "device.hpp": "registry",
    "implementation.hpp": "registry",
    "state_page.hpp": "status",
    "health.hpp": "registry",
    "policy.hpp": "policy",
    "replay.hpp": "replay",
    "explanation.hpp": "dispatch",
    "detail/arguments.hpp": "runtime",
    "detail/call_site.hpp": "schema",
    "detail/entered_call.hpp": "runtime",
    "detail/entry_points.hpp": "runtime",
    "detail/export.hpp": "base",
    "detail/function.hpp": "base",
    "detail/hot_plan.hpp": "dispatch",
    "detail/opaque_call.hpp": "dispatch",
    "detail/pointer.hpp": "base",
    "detail/time.hpp": "base",
    "operator.hpp": "runtime",
    "instance.hpp": "runtime",
    "opmux.h": "c_api",
    "c/call.h": "c_api",
    "c/common.h": "c_api",
    "c/health.h": "c_api",
    "c/points.h": "c_api",
    "c/policy.h": "c_api",
    "c/query.h": "c_api",
    "c/runtime.h": "c_api",
    "opmux.hpp": "runtime",
    "points.hpp": "runtime",
    "runtime.hpp": "runtime",
    "tuning.hpp": "runtime",
    "typed.hpp": "runtime",
    "conformance.hpp": "conformance",
}

# Roles of operators/NAME/ROLE.cpp and operators/common/ROLE/*: which rules such a file follows. A file may
# also include the headers of operators/common/ROLE.
OPERATOR_ROLES = {
    "reference": "backends/reference",
    "tolerance": "src/verify",
    "cases": "src/conformance",
}

BACKEND_PUBLIC = {"abi.h", "plugin.hpp"}
COMMON_PUBLIC = {"abi.h"}
CLI_INTERNAL = {  # compiled into the command as well
    "src/base/system/clock.hpp",
    "src/base/crypto.hpp",
    "src/base/system/files.hpp",
    "src/base/system/machine_facts.hpp",
    "src/base/line_records.hpp",
    "src/base/text.hpp",
    "src/base/thread_pool.hpp",
    "src/plugin/probe/child.hpp",
    "src/plugin/probe/probe.hpp",
    "src/plugin/trust/checked_file.hpp",
    "src/plugin/trust/signature.hpp",
    "src/policy/files/problems.hpp",
    "src/policy/files/yaml_reader.hpp",
    "src/replay/recording.hpp",
    "src/tune/bundle.hpp",
    "src/tune/bundle_file.hpp",
    "src/tune/race/system_noise.hpp",
    "src/tuner/aged_rows.hpp",
    "src/tuner/bundle_writer.hpp",
    "src/tuner/external_kernels.hpp",
    "src/tuner/measure/cell_race.hpp",
    "src/tuner/measure/cell_spec.hpp",
    "src/tuner/measure/recorded_call.hpp",
    "src/tuner/measure/tuning_run.hpp",
    "src/tuner/measured_point.hpp",
    "src/tuner/merge.hpp",
    "src/tuner/overlay.hpp",
    "src/tuner/rows_picture.hpp",
    "src/tuner/tuning_text.hpp",
}
PYTHON_INTERNAL = {
    "src/policy/rules/rule_fields.hpp",  # a table without code of the library
    # A separate library, which the module contains.
    "src/base/system/clock.hpp",
    "src/tune/race/race.hpp",
    "src/tune/race/system_noise.hpp",
}

# The folders that may include a third-party library, which is a folder of headers or one header.
THIRD_PARTY = {
    "CL": ("backends/opencl",),
    "CLI": ("cli",),
    "hwy": ("backends/simd",),
    "nanobind": ("python",),
    "nlohmann": ("cli",),
    "oneapi": ("backends/onednn",),
    "sodium": ("src/base",),
    "sqlite3.h": ("src/tuner",),
    "yaml.h": ("src/policy",),
}
TORCH_READER = pathlib.Path("python/opmux/torch/_reader.cpp")  # built against torch only
SYSTEM_FOLDERS = {"sys", "linux", "asm", "arpa"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".hpp", ".c", ".cpp"}


def role_of(path):
    """The role of a file of operators/, or None if its name has no role."""
    in_common = path.parts[1] == "common" and len(path.parts) > 3
    role = path.parts[2] if in_common else path.stem
    return role if role in OPERATOR_ROLES else None


def unit_of(path):
    """The unit of a file: src/schema, backends/simd, cli, python, include/opmux. A file of operators/ has
    the unit of its role."""
    parts = path.parts
    if parts[0] == "operators":
        return OPERATOR_ROLES[role_of(path)]
    depth = 1 if parts[0] in ("cli", "python") else 2
    return "/".join(parts[:depth])


def resolve(root, path, name):
    """The file in the tree that `name` refers to when included from `path`, or None."""
    for folder in (path.parent, pathlib.Path("."), pathlib.Path("src"), pathlib.Path("backends")):
        candidate = folder / name
        if (root / candidate).is_file():
            return pathlib.Path(*[part for part in candidate.parts if part != "."])
    return None


def judge_layer(own, other):
    if own == other or other in MAY_INCLUDE[own].split():
        return None
    return f"{own} may not include {other}"


def judge_public(path, header):
    """Why `path` may not include <opmux/header>; None if it may."""
    if header not in PUBLIC:
        return f"unknown public header opmux/{header}: give it a layer in PUBLIC of check_layers.py"
    unit = unit_of(path)
    if unit in ("cli", "python"):
        return None
    if unit.startswith("backends/"):
        allowed = COMMON_PUBLIC if unit == "backends/common" else BACKEND_PUBLIC
        return None if header in allowed else f"backends may not include opmux/{header}"
    return judge_layer(layer_of(path), PUBLIC[header])


def public_name(path):
    """The include path of a public header, without "opmux/"."""
    return "/".join(path.parts[2:])


def layer_of(path):
    if path.parts[0] == "include":
        return PUBLIC.get(public_name(path))
    return unit_of(path).split("/")[1]


def judge_operators(path, target):
    """Why `path` may not include `target`, a file of operators/; None if it may."""
    role = role_of(target)
    if target.parts[1] != "common" or role is None:
        return f"{path.parts[0]} may not include operators/{target.parts[1]}"
    from_operators = path.parts[0] == "operators"
    if OPERATOR_ROLES[role] == unit_of(path) and (from_operators or role == "reference"):
        return None
    who = role_of(path) if from_operators else unit_of(path)
    return f"{who} may not include operators/common/{role}"


def judge_internal(path, target):
    """Why `path` may not include `target`, a file of the tree outside include/; None if it may."""
    if target.parts[0] == "operators":
        return judge_operators(path, target)
    own, other = unit_of(path), unit_of(target)
    if own == other and own != "include/opmux":
        return None
    if own.startswith("backends/") and own != "backends/common" and other == "backends/common":
        return None
    if own == "cli" and str(target) in CLI_INTERNAL:
        return None
    if own == "python" and str(target) in PYTHON_INTERNAL:
        return None
    if own.startswith("src/") and other.startswith("src/"):
        return judge_layer(layer_of(path), layer_of(target))
    return f"{own} may not include {other}"


def judge_third_party(path, name):
    folder, _, rest = name.partition("/")
    standard = not rest and folder not in THIRD_PARTY
    if standard or folder in SYSTEM_FOLDERS:
        return None
    if path == TORCH_READER and folder in ("ATen", "c10", "torch"):
        return None
    if folder in THIRD_PARTY and unit_of(path) in THIRD_PARTY[folder]:
        return None
    return f"{unit_of(path)} may not include the library {folder}"


def judge(root, path, bracket, name):
    """Why `path` may not include `name`; None if it may."""
    if name.startswith("opmux/"):
        return judge_public(path, name.removeprefix("opmux/"))
    target = resolve(root, path, name) if bracket == '"' else None
    if target is not None:
        return judge_internal(path, target)
    if bracket == '"' and "/" not in name:
        return f'"{name}" is not in the tree'
    return judge_third_party(path, name)


def check_file(root, path):
    if path.parts[0] == "include" and public_name(path) not in PUBLIC:
        yield f"{path}: unknown public header: give it a layer in PUBLIC of check_layers.py"
        return
    if path.parts[0] == "src" and path.parts[1] not in MAY_INCLUDE:
        yield f"{path}: unknown layer: give it a line in MAY_INCLUDE of check_layers.py"
        return
    if path.parts[0] == "operators" and role_of(path) is None:
        if path.name != "test.cpp":
            yield f"{path}: unknown role: give it a line in OPERATOR_ROLES of check_layers.py"
        return
    text = (root / path).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        problem = match and judge(root, path, match[1], match[2])
        if problem:
            yield f"{path}:{number}: {problem}"


def sources(root):
    for top in ("include", "src", "backends", "operators", "cli", "python"):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root)
            if file.suffix in SUFFIXES and (len(path.parts) > 2 or top == "cli"):
                yield path


def check_tree(root):
    files = list(sources(root))
    return files, [*(problem for path in files for problem in check_file(root, path)), *tree_counts.wide_folders(root)]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[1]).resolve()
    if len(arguments) < len(sys.argv) - 1:
        problems = tree_counts.print_table(root)
        for problem in problems:
            print(problem)
        return 1 if problems else 0
    files, problems = check_tree(root)
    for problem in problems:
        print(problem)
    if not files:
        problems = [f"no sources under {root}"]
    print(f"layers: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
