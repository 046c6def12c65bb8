#!/usr/bin/env python3
"""Generates the parts of the documents that repeat information from the sources.

usage: gen_docs.py [--check] [--opmux PATH] [ROOT]

The text between `<!-- generated NAME [WORD] -->` and `<!-- end -->` in a page is replaced:

    arguments OP        the argument table of operators/OP/OP.schema
    python OP           how the operator is called from Python
    dimensions OP       the arguments in which its named dimensions occur
    implementations OP  the implementations that `opmux list` shows
    operators           all operators with their backends
    reasons             the catalogue of src/registry/reason.cpp
    limits              constants from the sources
    fuzz                executions of docs/dev/fuzz_runs.tsv

The keys of a rule in docs/schemas/policy.schema.json and the attributes of Rule in
python/opmux/_core.pyi are replaced with those of src/policy/rules/rule_fields.hpp.

The site has a page for each operator; operator_page() builds it from these parts and the operator's
section of docs/operators.md.

--check changes nothing and fails if a page would change. It also fails if docs/environment.md lacks an
environment variable of the sources or docs/reasons.md a status reason, or if they list unknown ones, and
if docs/policy.md lacks a key of a rule.

The implementations are those that the command PATH lists, by default build/release/bin/opmux, which the
preset release builds.
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import fuzz_log

# Lists the implementations; a path relative to the root of the tree, or absolute.
command_path = pathlib.Path("build/release/bin/opmux")
BLOCK = re.compile(r"(<!-- generated (\w+) ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)
STATUS_FAMILIES = ("schema|plan|policy|environment|registry|plugin|point|call|dispatch|withdraw|"
                   "device|constant|c|python|trust|elf|probe|config|mode|lock|runtime|store|"
                   "journal|quarantine|health|selector|shadow|record|replay|resource|ambient|instance|tune")
# Names of fields and of files that look like reasons but are not.
NO_REASON = re.compile(r"policy\.(prefer|require|deny|allow|(allow|deny)_vendors|per_op|yaml)|ambient\.hpp")
STATUS_CODE = re.compile(rf'"((?:{STATUS_FAMILIES})\.[a-z_]+)"')
LIMITS = (
    ("arguments of one operator", "include/opmux/abi.h", "OPMUX_MAX_ARGS"),
    ("dimensions of one tensor", "include/opmux/abi.h", "OPMUX_MAX_RANK"),
    ("named dimensions of one schema", "src/schema/schema.hpp", "kMaxDims"),
    ("steps of a `where` condition", "src/schema/expressions/where.hpp", "kMaxSteps"),
    ("bytes of one part of a name", "src/schema/schema.hpp", "kMaxNameBytes"),
    ("implementations of one operator", "src/registry/batch.hpp", "kMostImplementations"),
    ("classes of one operator and scope", "src/dispatch/decide/class_table.hpp", "kCapacity"),
    ("classes without a warning", "src/dispatch/decide/class_table.hpp", "kMany"),
    ("sizes of a dimension that a recorded verifier reads without a warning",
     "src/registry/implementation/recorded_reads.hpp", "kFewSizes"),
    ("facts in the guard of a cached plan", "src/dispatch/decide/decision.hpp", "kMaxGuardFacts"),
    ("remembered declines of one operator", "src/dispatch/decide/declines.hpp", "kMost"),
    ("prepared states of one implementation", "src/dispatch/plan/prepared_cache.hpp", "kCapacity"),
    ("nested calls", "src/crash/hazard_slot.hpp", "kMarkLevels"),
    ("distinct scopes active at a time", "src/policy/rules/scope_table.hpp", "kMostAlive"),
    ("comparisons of one condition", "src/policy/conditions/condition_program.cpp", "kMostQuestions"),
    ("bundles of [measured speeds](tuning.md) in one folder", "src/tune/bundle_set.hpp", "kMostBundles"),
    ("rows of one cell, over all its ranges", "src/tune/row_index.cpp", "kMostRowsOfCell"),
    ("lost devices recorded", "src/health/device_health.hpp", "kMaxDevices"),
    ("distinct errors remembered", "src/base/event_log.hpp", "kMaxErrors"),
    ("distinct warnings remembered", "src/base/event_log.hpp", "kMaxWarnings"),
    ("distinct events of level info remembered", "src/base/event_log.hpp", "kMaxInfos"),
    ("distinct events of level debug remembered", "src/base/event_log.hpp", "kMaxDebugs"),
    ("items of any array in a plugin descriptor", "src/plugin/read/bounded_read.hpp", "kMostItems"),
)


def split_outside(text, separator=","):
    """Splits at separators outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]]]


class Argument:
    """One argument of a schema."""

    def __init__(self, text):
        declared, _, self.default = (part.strip() for part in text.partition(" = "))
        match = re.fullmatch(
            r"(?:(inout|out|in) )?(const )?(Tensor|enum\{.*?\}|\w+)(\?)? (\w+)(\[.*\])?", declared)
        if match is None:
            raise ValueError(f"cannot parse the argument '{text}'")
        access, constant, kind, optional, self.name, self.shape = match.groups()
        self.access = access or "in"
        self.type = (constant or "") + kind
        self.optional = optional is not None

    def row(self):
        """A table row: name, access, type, shape, default."""
        default = f"`{self.default}`" if self.default else "absent" if self.optional else "required"
        shape = f"`{self.shape}`" if self.shape else ""
        return f"| `{self.name}` | {self.access} | `{self.type}` | {shape} | {default} |"

    def dims(self):
        """Names of dimensions in the shape, including `...`."""
        return re.findall(r"\.\.\.|[A-Z]\w*", self.shape or "")


class Schema:
    """Parsed operators/OP/OP.schema."""

    def __init__(self, root, op):
        lines = (root / "operators" / op / f"{op}.schema").read_text().splitlines()
        self.op = op
        self.text = [line for line in lines if not line.startswith("#")]
        self.summary = " ".join(line[2:] for line in lines if line.startswith("# "))
        self.data_checked = "#! data_checked" in lines
        match = re.fullmatch(rf"{op}\((.*)\)(?: where (.*))?",
                             " ".join(line.strip() for line in self.text))
        if match is None:
            raise ValueError(f"cannot parse operators/{op}/{op}.schema")
        self.arguments = [Argument(part) for part in split_outside(match[1])]
        self.where = match[2] or ""

    def outputs(self):
        return [a for a in self.arguments if a.access == "out"]

    def inputs(self):
        return [a for a in self.arguments if a.access != "out"]

    def inferable(self):
        """Whether inputs determine all dimensions of the outputs, directly or by `D == ...`."""
        known = {dim for a in self.inputs() for dim in a.dims()}
        for condition in self.where.split(" && "):
            left, equal, right = condition.partition(" == ")
            names = set(re.findall(r"[A-Z]\w*", left + " " + right))
            if equal and len(names - known) == 1:
                known |= names
        return all(dim in known for a in self.outputs() for dim in a.dims())


def operators(root):
    return sorted(path.stem for path in (root / "operators").glob("*/*.schema"))


def arguments_table(root, op):
    schema = Schema(root, op)
    table = ["| argument | access | type | shape | default |", "|---|---|---|---|---|"]
    table += [argument.row() for argument in schema.arguments]
    if schema.where:
        table += ["", f"Required for every call: `{schema.where}`."]
    return table


def python_default(argument):
    if not argument.default:
        return "None"
    if argument.type == "bool":
        return argument.default.capitalize()
    return f'"{argument.default}"' if argument.type.startswith("enum") else argument.default


def python_signature(root, op):
    """Inputs in schema order, outputs as `out`; only trailing parameters have defaults."""
    schema, words, defaults = Schema(root, op), [], True
    for argument in reversed(schema.inputs()):
        defaults = defaults and bool(argument.default or argument.optional)
        words.insert(0, argument.name + (f"={python_default(argument)}" if defaults else ""))
    if schema.outputs():
        words += ["*", "out=None" if schema.inferable() else "out"]
    call, margin = f"opmux.ops.{op}(", " " * len(f"opmux.ops.{op}(")
    for word, end in zip(words, [", "] * (len(words) - 1) + [")"]):
        if len(call.splitlines()[-1]) + len(word) > 96:
            call = call.rstrip() + "\n" + margin
        call += word + end
    return ["```python", *call.splitlines(), "```", "", python_result(schema)]


def python_result(schema):
    written = [f"`{a.name}`" for a in schema.inputs() if a.access == "inout"]
    given = [f"`{a.name}`" for a in schema.outputs()]
    text = f"Modifies {' and '.join(written)} in place." if written else ""
    if given:
        text += f" Returns {' and '.join(given)}"
        text += ", written into `out` if you pass it." if schema.inferable() else \
            f", which you must pass as `out` because no input determines the shape of {given[0]}."
        text += f" `out` is a tuple of {len(given)}." if len(given) > 1 else ""
    else:
        text += " Returns `None`."
    between = [f"`{a.name}`" for a, b in zip(schema.inputs(), schema.inputs()[1:])
               if a.optional and not (b.optional or b.default)]
    return (text + (f" {' and '.join(between)} may be `None`." if between else "")).strip()


def dimensions_table(root, op):
    places = {}
    for argument in Schema(root, op).arguments:
        for dim in argument.dims():
            places.setdefault(dim, []).append(f"`{argument.name}`")
    rows = [f"| `{dim}` | {', '.join(dict.fromkeys(names))} |" for dim, names in places.items()]
    return ["| dimension | used in |", "|---|---|", *rows]


@functools.cache
def implementations(root):
    """(id, kind, vendor, priority) of the implementations that `opmux list` shows, by operator."""
    command = root / command_path
    if not command.exists():
        sys.exit(f"{command_path} lists the implementations, and it is not built; build the preset release")
    run = subprocess.run([command, "list", "--json"], capture_output=True, text=True, check=True,
                         env={"PATH": os.environ["PATH"]})
    found = {op["name"]: [(i["id"], i["kind"], i["vendor"], i["priority"]) for i in op["implementations"]]
             for op in json.loads(run.stdout)["operators"]}
    built = {row[0].partition("/")[2].partition(".")[0] for rows in found.values() for row in rows}
    missing = {path.parent.name for path in root.glob("backends/*/plugin.cpp")} - built
    if missing:
        sys.exit(f"{command_path} was built without {', '.join(sorted(missing))}; run tools/setup, then build it again")
    return found


def implementations_table(root, op):
    rows = sorted(implementations(root).get(op, []), key=lambda row: (-row[3], row[0]))
    table = ["| implementation | kind | vendor | priority |", "|---|---|---|---|"]
    return table + [f"| `{i}` | {kind} | {vendor} | {rank} |" for i, kind, vendor, rank in rows]


def operators_table(root, _):
    table = ["| operator | description | backends |", "|---|---|---|"]
    known = implementations(root)
    for op in operators(root):
        backends = sorted({row[0].partition("/")[2].partition(".")[0] for row in known.get(op, [])})
        table.append(f"| [{op}](operators.md#{op}) | {Schema(root, op).summary} | "
                     f"{', '.join(backends)} |")
    return table


def sections(root):
    """Each operator's section of docs/operators.md, without the generated parts."""
    parts = re.split(r"^## (.+)\n", (root / "docs/operators.md").read_text(), flags=re.MULTILINE)
    prose = [re.sub(r"<!-- generated .*?<!-- end -->\n*", "", part, flags=re.DOTALL).strip()
             for part in parts]
    return dict(zip(parts[1::2], prose[2::2]))


def without_operators(root, text):
    """docs/operators.md without the sections of the operators, which get separate pages."""
    names = "|".join(operators(root))
    return re.sub(rf"^## (?:{names})\n.*?(?=^## |\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def operator_page(root, op):
    """The site's page for one operator, with links relative to docs/."""
    schema, prose = Schema(root, op), sections(root)
    if not prose.get(op):
        raise ValueError(f"docs/operators.md has no section about {op}")
    words = ", ".join(argument.name for argument in schema.arguments)
    checked = ["", "`data_checked`: kernels check the contents of tensors, and an error they find "
               "is [final](concepts.md#outcomes)."] if schema.data_checked else []
    return "\n".join([
        f"# {op}", "", schema.summary, "", "```", *schema.text, "```", "",
        "## Meaning", "", prose[op], "", "[Rules for all operators](operators.md).", "",
        "## Python", "", *python_signature(root, op), "",
        "## C++", "", "```cpp", f'opmux::Operator {op} = runtime.op("{op}").value();',
        f"opmux::Status status = {op}({words});", "```", "",
        "## Arguments", "", *arguments_table(root, op), *checked, "",
        "## Dimensions", "", *dimensions_table(root, op), "",
        "## Implementations", "", *implementations_table(root, op), "",
        f"`opmux list {op}` shows which of them this machine has; `opmux explain {op} ...` shows which "
        "one a call gets and why."]) + "\n"


def reasons_table(root, _):
    text = (root / "src/registry/reason.cpp").read_text()
    rows = re.findall(r'ReasonInfo\{Reason::\w+,\s*"([^"]*)",\s*"([^"]*)"\s*\}', text)
    if len(rows) != text.count("ReasonInfo{"):
        raise ValueError("cannot parse src/registry/reason.cpp")
    return ["| code | meaning |", "|---|---|"] + [f"| `{c}` | {t} |" for c, t in rows if c]


def limits_table(root, _):
    table = ["| quantity | at most |", "|---|---|"]
    for what, file, name in LIMITS:
        match = re.search(rf"\b{name}\b\s*=?\s*([0-9']+)", (root / file).read_text())
        if match is None:
            raise ValueError(f"{file} does not define {name}")
        number = int(match[1].replace("'", ""))
        table.append(f"| {what} | {number:,} |")
    return table


TABLES = {"arguments": arguments_table, "python": python_signature, "dimensions": dimensions_table,
          "implementations": implementations_table, "operators": operators_table,
          "reasons": reasons_table, "limits": limits_table,
          "fuzz": lambda root, _: fuzz_log.table(root)}


def regenerated(root, text):
    def fill(match):
        return match[1] + "\n".join(TABLES[match[2]](root, match[3])) + "\n" + match[4]
    return BLOCK.sub(fill, text)


class RuleField:
    """One entry of kRuleFields in src/policy/rules/rule_fields.hpp."""

    def __init__(self, text):
        found = re.findall(r'\.(\w+)\s*=\s*((?:"(?:[^"\\]|\\.)*"\s*)+|[^,"]+)', text)
        values = {name: self.value_of(value.strip()) for name, value in found}
        self.key, self.member = values["key"], values["member"]
        self.form, self.role = values.get("form", "text"), values.get("role", "about")
        self.in_files = values.get("in_files") != "false"
        self.python, self.help = values.get("python", ""), values.get("help", "")
        self.least, self.most = int(values.get("least", 0)), int(values.get("most", 0))

    @staticmethod
    def value_of(text):
        """A string without its quotes, or the last part of a name: `&Rule::deny`, `Form::tokens`."""
        if text.startswith('"'):
            return "".join(json.loads(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"', text))
        return text.rpartition("::")[2]

    def schema(self, default):
        """The JSON schema of the value; `default` is the initial value in policy.hpp."""
        schema = json.loads(FORMS[self.form])
        if self.form == "integer":
            schema |= {"minimum": self.least, "maximum": self.most}
            schema |= {"default": int(default)} if default else {}
        return schema | ({"description": self.help} if self.help else {})


FORMS = {  # the JSON schema of each Form
    "text": '{"$ref": "#/$defs/text"}',
    "op": '{"type": "string", "pattern": "^[a-z0-9_.*]+$"}',
    "condition": '{"type": "string", "maxLength": 4096}',
    "token": '{"$ref": "#/$defs/token"}',
    "tokens": '{"$ref": "#/$defs/tokens"}',
    "boosts": '{"type": "array", "items": {"$ref": "#/$defs/boost"}}',
    "transforms": '{"$ref": "#/$defs/transforms"}',
    "flag": '{"type": "boolean"}',
    "breaker": '{"$ref": "#/$defs/breaker"}',
    "integer": '{"type": "integer"}',
    "date": '{"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}',
}


def rule_fields(root):
    text = (root / "src/policy/rules/rule_fields.hpp").read_text()
    table = text[text.index("kRuleFields{"):]
    table = table[:table.index("\n};")]
    entries = re.findall(r'RuleField\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}', table)
    if len(entries) != table.count("RuleField{"):
        raise ValueError("cannot parse src/policy/rules/rule_fields.hpp")
    return [RuleField(entry) for entry in entries]


def replaced(pattern, text, fill):
    text, count = pattern.subn(fill, text)
    if count != 1:
        raise ValueError(f"{count} places match {pattern.pattern}")
    return text


def rule_schema(root, text):
    """docs/schemas/policy.schema.json with the keys of rule_fields.hpp."""
    header = (root / "include/opmux/policy.hpp").read_text()
    fields = [field for field in rule_fields(root) if field.in_files]
    effects = [f'        {{"required": ["{field.key}"]}}' for field in fields if field.role != "about"]
    keys = []
    for field in fields:
        default = re.search(rf"^  int {field.member} = (\d+);", header, re.MULTILINE)
        schema = json.dumps(field.schema(default and default[1]))
        keys.append(f'        "{field.key}": {schema}')
    rule = re.compile(r'("rule": \{.*?"anyOf": \[\n).*?(\n      \],\n      "properties": \{\n).*?(\n      \}\n)',
                      re.DOTALL)
    return replaced(rule, text, lambda match: match[1] + ",\n".join(effects) + match[2] +
                    ",\n".join(keys) + match[3])


def rule_stub(root, text):
    """python/opmux/_core.pyi with the attributes of rule_fields.hpp."""
    lines = [f"    {field.key}: {field.python}\n" for field in rule_fields(root) if field.python]
    stub = re.compile(r"(^class Rule:\n.*?def __init__\(self\) -> None: \.\.\.\n\n).*?(?=\nclass )",
                      re.DOTALL | re.MULTILINE)
    return replaced(stub, text, lambda match: match[1] + "".join(lines))


FILES = {"docs/schemas/policy.schema.json": rule_schema, "python/opmux/_core.pyi": rule_stub}


def source_text(root):
    files = sorted(p for folder in ("src", "probe", "python/src", "python/opmux")
                   for p in (root / folder).rglob("*") if p.suffix in (".cpp", ".hpp", ".py"))
    return "\n".join(p.read_text() for p in files)


def differences(what, page, said, meant):
    return [f"{page}: lacks the {what} {x}" for x in sorted(meant - said)] + \
           [f"{page}: {x} is not a {what} in the sources" for x in sorted(said - meant)]


def check_names(root):
    """Checks that hand-written pages list exactly the variables and reasons of the sources."""
    environment = (root / "src/policy/rules/environment.cpp").read_text()
    variables = set(re.findall(r'\{"(OPMUX_[A-Z_]+)"', environment)) | {"OPMUX_BACKEND_<NAME>"}
    page = (root / "docs/environment.md").read_text()
    problems = differences("variable", "docs/environment.md",
                           set(re.findall(r"^\| `(OPMUX_[A-Z_<>]+)`", page, re.M)), variables)
    sources = source_text(root)
    codes = {code for code in STATUS_CODE.findall(sources) if not NO_REASON.fullmatch(code)}
    codes |= {f"plugin.{word}" for word in re.findall(r'malformed\("([a-z_]+)"', sources)}
    codes |= {f"trust.{word}" for word in re.findall(r'no_trust\("([a-z_]+)"', sources)}
    codes |= {f"elf.{word}" for word in re.findall(r'bad_elf\(\s*"([a-z_]+)"', sources)}
    catalogue = set(STATUS_CODE.findall((root / "src/registry/reason.cpp").read_text()))
    page = (root / "docs/reasons.md").read_text().partition("<!-- end -->")[2]
    said = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", page, re.M))
    problems += differences("reason", "docs/reasons.md", said, codes - catalogue)
    page = (root / "docs/policy.md").read_text()
    keys = [field.key for field in rule_fields(root) if field.in_files]
    return problems + [f"docs/policy.md: lacks the key {key} of a rule" for key in keys
                       if not re.search(rf"`{key}`|\b{key}: ", page)]


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    check = len(words) < len(sys.argv) - 1
    if "--opmux" in words:
        global command_path
        at = words.index("--opmux")
        command_path = pathlib.Path(words[at + 1]).resolve()
        del words[at:at + 2]
    root = pathlib.Path(words[0] if words else pathlib.Path(__file__).parents[1]).resolve()
    problems, count = [], len(FILES)
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    for page in [*pages, *(root / name for name in FILES)]:
        text = page.read_text()
        write = FILES.get(str(page.relative_to(root)), regenerated)
        wanted = write(root, text)
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
    return 1 if problems or count == len(FILES) else 0


if __name__ == "__main__":
    sys.exit(main())
