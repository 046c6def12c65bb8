"""Lists the switches of the public surface: every input that a user, an operator or a plugin can set.

A switch has a kind and a name:

  option       a member of a public options struct, `Options.threads`
  policy       a member of Policy, Rule and the structs in them, `Rule.prefer`
  key          a key of a policy file, `a rule.prefer`
  environment  a variable, `OPMUX_LOG`
  abi          a member of a struct that a plugin fills in, or one of its flags
  c            a member of a struct that a C program fills in, or one of its flags
  command      a flag of the command line, with its source file: `check_command --strict`
  python       a keyword argument of a public Python function, `implementation.available`; see tools/surface_python.py

The lists are read from the sources, so that a new switch cannot be forgotten.
"""
import collections
import pathlib
import re

import surface_python

ROOT = pathlib.Path(__file__).resolve().parents[1]
Switch = collections.namedtuple("Switch", "kind name")

OPTIONS = {"Options", "PluginOptions", "SourceOptions", "StateOptions", "RecordOptions", "CallOptions",
           "DefineOptions", "ReplayOptions", "PolicyCheckOptions", "Implementation", "KernelFunctions", "Definition",
           "Selector", "Ambient"}
POLICY = {"Policy", "Rule", "Boost", "BreakerOptions", "ShadowOptions"}
ABI = ("opmux_fact opmux_dim_rule opmux_dtype_rule opmux_tensor_rule opmux_scalar_rule opmux_caps opmux_hint opmux_impl "
       "opmux_device_table opmux_backend opmux_schema_text opmux_point opmux_plugin").split()
C = ("opmux_call_options opmux_selector opmux_record_options opmux_replay_options opmux_op_order opmux_policy "
     "opmux_plugin_options opmux_source_options opmux_state_options opmux_options").split()
FLAG = re.compile(r"#define (OPMUX_(?:IMPL|CAPS|BACKEND|TENSOR|PLUGIN|PLUGINS|SOURCE|OPTION|DEFINE|RECORD|REPLAY|CHECK"
                  r"|AMBIENT|PLAN_FOR)_[A-Z_]+) \d+u")
# Members that cannot have a reader to remove, with the reason.
NOT_SWITCHES = {
    "struct_size": "says which members the caller knows; without a reader no member would be read",
    "reserved": "must be zero until a version gives it a meaning",
    "abi_major": "the version of the ABI, checked before anything else is read",
    "abi_minor": "the version of the ABI, checked before anything else is read",
    "Rule.expired": "set by the library",
    "Rule.where": "set by the library",
    "Policy.outer": "set by the library",
}


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def closing(text, start):
    """Index after the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError("a brace is not closed")


def split(text, separator):
    """Parts between separators outside of brackets."""
    parts, depth = [""], 0
    for c in text.replace("<<", "  "):
        depth += {"(": 1, "{": 1, "[": 1, "<": 1, ")": -1, "}": -1, "]": -1, ">": -1}.get(c, 0)
        if c == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def bodies(text):
    """(name, body) of the structs of a header, without nested ones."""
    for found in re.finditer(r"\bstruct (?:\[\[\w+\]\] )?(?:OPMUX_API )?(\w+) \{", text):
        end = closing(text, found.end() - 1)
        yield found[1], text[found.end():end - 1]


def members(body):
    """Names of the data members declared in the body of a struct, in order."""
    for declaration in split(re.sub(r"\bstruct \w+ \{.*?\};", "", body, flags=re.S), ";"):
        declaration = re.sub(r"->", "  ", declaration).strip()
        pointer = re.search(r"\(\*(\w+)\)\s*\(", declaration)
        if pointer:
            yield pointer[1]
            continue
        plain = re.split(r"=|\{", declaration)[0]
        if not declaration or "(" in re.sub(r"<.*>", "", plain) or re.match(
                r"(friend|static|using|template|struct|enum|explicit|public:|private:)\b", declaration):
            continue
        first, *others = split(declaration, ",")
        for part in (first, *others):
            names = re.findall(r"\w+", re.sub(r"\[.*?\]", "", re.split(r"=|\{", part)[0]))
            if names:
                yield names[-1]


def of_structs(kind, names, headers):
    for header in headers:
        text = without_comments((ROOT / header).read_text())
        for struct, body in bodies(text):
            if struct not in names:
                continue
            yield from (Switch(kind, f"{struct}.{member}") for member in members(body))


def function_members():
    """Names of members that hold a function."""
    found = set()
    for header in (*public_headers(), *c_headers(), "include/opmux/abi.h"):
        text = without_comments((ROOT / header).read_text())
        found.update(re.findall(r"\(\*(\w+)\)\s*\(", text))
        found.update(re.findall(r"\b(?:Function<.*>|EventSink|UtcClock|opmux_parallel_for_fn) (\w+)(?: =|;)", text))
    return found


def public_headers():
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "include/opmux").glob("*.hpp")
                  if path.name != "conformance.hpp")


def c_headers():
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "include/opmux/c").glob("*.h"))


def environment():
    text = (ROOT / "src/policy/rules/environment.cpp").read_text()
    for name in re.findall(r'\{"(OPMUX_\w+)",', text):
        yield Switch("environment", name)
    yield Switch("environment", "OPMUX_BACKEND_<NAME>")


def keys():
    table = re.split(r"RuleField\{\s*\.key = ", (ROOT / "src/policy/rules/rule_fields.hpp").read_text())[1:]
    for entry in table:
        if "in_files = false" not in entry:
            yield Switch("key", "a rule." + re.match(r'"(\w+)"', entry)[1])
    for file in ("policy_reader.cpp", "policy_values.cpp"):
        text = (ROOT / "src/policy/files" / file).read_text()
        for found in re.finditer(r"\{\"(\w+)\",\s*\[", text):
            after = re.search(r'read_map\(node, "([\w ]+)"', text[found.end():])
            function = text.rfind("fields() {", 0, found.start())
            what = after[1] if after else "?"
            if function > 0 and text.find("\n  }\n", function) > found.start():
                what = "a policy"
            if found[1] != "opmux":  # the version of the format
                yield Switch("key", f"{what}.{found[1]}")


def of_c(kind, names, headers):
    """Members of structs of C, and flags."""
    yield from of_structs(kind, names, headers)
    for header in headers:
        yield from (Switch(kind, flag) for flag in FLAG.findall((ROOT / header).read_text()))


def command_flags():
    for path in sorted((ROOT / "cli").glob("*.cpp")):
        for flag in re.findall(r'\(\s*"(?:-\w,)?(--[a-z-]+)",\s*[\w>.-]+[,)]', path.read_text()):
            if path.stem != "check_worker":  # makes the command line of a worker
                yield Switch("command", f"{path.stem} {flag}")


def python_keywords():
    yield from (Switch("python", name) for name in surface_python.names())


def reason_without_reader(switch):
    """The reason why the reader of a member cannot be removed, or ""."""
    return NOT_SWITCHES.get(switch.name) or NOT_SWITCHES.get(switch.name.rsplit(".", 1)[-1], "")


def members_and_words():
    """All inputs, each once, by kind and in the order of the sources."""
    found = [*of_structs("option", OPTIONS, public_headers()),
             *of_structs("policy", POLICY, public_headers()),
             *keys(), *environment(), *of_c("abi", ABI, ["include/opmux/abi.h"]), *of_c("c", C, c_headers()),
             *command_flags(), *python_keywords()]
    return list(dict.fromkeys(found))


def switches():
    """The inputs whose reader can be removed."""
    return [found for found in members_and_words() if not reason_without_reader(found)]


def exceptions():
    """{input: why its reader cannot be removed}."""
    return {found: reason for found in members_and_words() if (reason := reason_without_reader(found))}



if __name__ == "__main__":
    for switch in switches():
        print(f"{switch.kind}\t{switch.name}")
