#!/usr/bin/env python3
"""Writes the parts of the documents that repeat what the sources say.

usage: gen_docs.py [--check] [ROOT]

A page holds `<!-- generated NAME [WORD] -->` ... `<!-- end -->`; what stands between is replaced:

    arguments OP   the argument table of operators/OP.schema
    reasons        the catalogue of src/registry/reason.cpp
    limits         numbers that stand in the sources

--check changes nothing and fails if a page would change. It also fails if docs/environment.md or
docs/reasons.md leaves out, or invents, a variable or a status reason of the sources.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"(<!-- generated (\w+) ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)
STATUS_FAMILIES = ("schema|plan|policy|environment|registry|plugin|point|call|dispatch|withdraw|"
                   "device|constant|c")
# Names of fields, and a file's, that look like reasons.
NO_REASON = re.compile(r"policy\.(prefer|require|deny|allow|(allow|deny)_vendors|per_op|yaml)")
STATUS_CODE = re.compile(rf'"((?:{STATUS_FAMILIES})\.[a-z_]+)"')
LIMITS = (
    ("arguments of one operator", "include/opmux/abi.h", "OPMUX_MAX_ARGS"),
    ("dimensions of one tensor", "include/opmux/abi.h", "OPMUX_MAX_RANK"),
    ("named dimensions of one schema", "src/registry/schema.hpp", "kMaxDims"),
    ("steps of a `where` condition", "src/registry/where.hpp", "kMaxSteps"),
    ("bytes of one part of a name", "src/registry/schema_names.hpp", "kMaxNameBytes"),
    ("implementations of one operator", "src/registry/batch.hpp", "kMostImplementations"),
    ("classes of one operator and scope", "src/dispatch/class_table.hpp", "kCapacity"),
    ("of these without a warning", "src/dispatch/class_table.hpp", "kMany"),
    ("facts in the guard of a kept plan", "src/dispatch/choice.hpp", "kMaxGuardFacts"),
    ("remembered declines of one operator", "src/dispatch/operator_state.hpp", "kMaxDeclines"),
    ("prepared states of one implementation", "src/dispatch/prepared_cache.hpp", "kCapacity"),
    ("calls inside calls", "src/dispatch/thread_block.hpp", "kMaxDepth"),
    ("different scopes alive at a time", "src/policy/scope_table.hpp", "kMostAlive"),
    ("comparisons of one condition", "src/policy/condition_check.cpp", "kMostQuestions"),
    ("lost devices that are remembered", "src/health/device_health.hpp", "kMaxDevices"),
    ("distinct events that are told", "src/telemetry/event_log.hpp", "kMaxDistinct"),
    ("items of any array of a plugin", "src/plugin/bounded_read.hpp", "kMostItems"),
)


def split_outside(text, separator=","):
    """Splits where no bracket is open."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]]]


def argument_row(text):
    """One argument as the cells name, access, type, shape, default."""
    declared, _, default = (part.strip() for part in text.partition(" = "))
    match = re.fullmatch(r"(?:(inout|out|in) )?(const )?(Tensor|enum\{.*?\}|\w+)(\?)? (\w+)(\[.*\])?",
                         declared)
    if match is None:
        raise ValueError(f"cannot read the argument '{text}'")
    access, constant, kind, optional, name, shape = match.groups()
    if not default:
        default = "absent" if optional else "required"
    cells = (f"`{name}`", access or "in", f"`{constant or ''}{kind}`", f"`{shape}`" if shape else "",
             f"`{default}`" if default not in ("absent", "required") else default)
    return "| " + " | ".join(cells) + " |"


def arguments_table(root, op):
    lines = (root / "operators" / f"{op}.schema").read_text().splitlines()
    text = " ".join(line.strip() for line in lines if not line.startswith("#"))
    match = re.fullmatch(rf"{op}\((.*)\)(?: where (.*))?", text)
    if match is None:
        raise ValueError(f"cannot read operators/{op}.schema")
    table = ["| argument | access | type | shape | default |", "|---|---|---|---|---|"]
    table += [argument_row(part) for part in split_outside(match[1])]
    if match[2]:
        table += ["", f"Holds on every call: `{match[2]}`."]
    return table


def reasons_table(root, _):
    text = (root / "src/registry/reason.cpp").read_text()
    rows = re.findall(r'ReasonInfo\{Reason::\w+,\s*"([^"]*)",\s*"([^"]*)"\s*\}', text)
    if len(rows) != text.count("ReasonInfo{"):
        raise ValueError("cannot read src/registry/reason.cpp")
    return ["| code | meaning |", "|---|---|"] + [f"| `{c}` | {t} |" for c, t in rows if c]


def limits_table(root, _):
    table = ["| what | at most |", "|---|---|"]
    for what, file, name in LIMITS:
        match = re.search(rf"\b{name}\b\s*=?\s*([0-9']+)", (root / file).read_text())
        if match is None:
            raise ValueError(f"{file} has no number {name}")
        number = int(match[1].replace("'", ""))
        table.append(f"| {what} | {number:,} |")
    return table


TABLES = {"arguments": arguments_table, "reasons": reasons_table, "limits": limits_table}


def regenerated(root, text):
    def fill(match):
        return match[1] + "\n".join(TABLES[match[2]](root, match[3])) + "\n" + match[4]
    return BLOCK.sub(fill, text)


def source_text(root):
    files = sorted(p for p in (root / "src").rglob("*") if p.suffix in (".cpp", ".hpp"))
    return "\n".join(p.read_text() for p in files)


def differences(what, page, said, meant):
    return [f"{page}: leaves out the {what} {x}" for x in sorted(meant - said)] + \
           [f"{page}: {x} is no {what} of the sources" for x in sorted(said - meant)]


def check_names(root):
    """Pages written by hand that must name all of something and nothing else."""
    environment = (root / "src/policy/environment.cpp").read_text()
    variables = set(re.findall(r'\{"(OPMUX_[A-Z_]+)"', environment)) | {"OPMUX_BACKEND_<NAME>"}
    page = (root / "docs/environment.md").read_text()
    problems = differences("variable", "docs/environment.md",
                           set(re.findall(r"^\| `(OPMUX_[A-Z_<>]+)`", page, re.M)), variables)
    sources = source_text(root)
    codes = {code for code in STATUS_CODE.findall(sources) if not NO_REASON.fullmatch(code)}
    codes |= {f"plugin.{word}" for word in re.findall(r'malformed\("([a-z_]+)"', sources)}
    catalogue = set(STATUS_CODE.findall((root / "src/registry/reason.cpp").read_text()))
    page = (root / "docs/reasons.md").read_text().partition("<!-- end -->")[2]
    said = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", page, re.M))
    return problems + differences("reason", "docs/reasons.md", said, codes - catalogue)


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    check = len(words) < len(sys.argv) - 1
    root = pathlib.Path(words[0] if words else pathlib.Path(__file__).parents[1]).resolve()
    problems, count = [], 0
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = page.read_text()
        wanted = regenerated(root, text)
        count += len(BLOCK.findall(text))
        if wanted == text:
            continue
        if check:
            problems.append(f"{page.relative_to(root)}: out of date; run tools/gen_docs.py")
        else:
            page.write_text(wanted)
            print(f"wrote {page.relative_to(root)}")
    problems += check_names(root) if check else []
    for problem in problems:
        print(problem)
    print(f"generated parts: {count}, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
