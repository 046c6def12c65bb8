"""Rewrites a copy of the sources so that each switch of tools/surface_list.py can be removed when a program starts.

Readers of a member of a struct, `options.threads`, become `surface::read<surface::of_threads>(options).threads`, which
has the default of the member if SURFACE_MUTANT names the switch. `of_threads` is generated: it names the switch of each
struct that has such a member, so that members of other structs stay as they are. Flags of the ABI, flags of the
command line, environment variables, keys of policy files and keyword arguments in Python get an equivalent.
"""
import bisect
import collections
import json
import re

import mutations
import surface_list
import surface_python

HOOKS = (
    ("src/policy/rules/environment.cpp", "Status read(const Variable& variable, Environment& into) {",
     '  if (surface::is_removed("environment:", variable.name, "")) return {};\n'
     '  if (surface::is_removed("environment:", "OPMUX_BACKEND_<NAME>", "") &&\n'
     '      !backend_of(variable.name).empty()) {\n    return {};\n  }'),
    ("src/policy/files/policy_values.cpp", "    const TextNode& key = node.items[i];",
     '    if (surface::is_removed(std::string("key:") + std::string(what) + ".", key.text, "")) continue;'),
    ("src/c_api/policy.cpp", "  for (const ListField& field : kLists) {",
     '    if (surface::is_removed("c:opmux_", field.name, "")) continue;'),
)
# Text after a member that is written, not read: an assignment, or a function that changes a container.
WRITTEN = re.compile(r"\s*(?:\[[^\]]*\])?\s*(?:=[^=]|[-+|&]=|\+\+|(?:\.|->)(?:push_back|emplace\w*|insert\w*|resize|reserve"
                     r"|back|clear|append|assign|swap|erase|pop_back|reset)\()")
LONGEST_NAME = 200
# Members that hold functions; a call of any other name is a function of a class.
CALLED = surface_list.function_members()
ATOMIC_LOAD = re.compile(r"\((?:std::memory_order\w*)?\)")


def rewritten(name):
    """Whether the copy of a file is written by Instrumented."""
    code = re.match(r"(src|cli/(?!templates)|probe|python/src)/?.*\.(cpp|hpp)$", name)
    return bool(code) or surface_python.is_rewritten(name)


def namespace_of(struct):
    return f"::{struct}" if struct.startswith("opmux_") else f"opmux::{struct}"


def start_of_expression(code, end):
    """Start of the postfix expression that ends before `end`, such as `core.options(1)` before a dot, or -1."""
    place = end
    while True:
        if place > 0 and code[place - 1] in ")]":
            opened = {")": "(", "]": "["}[code[place - 1]]
            closed, depth = code[place - 1], 0
            while place > 0:
                place -= 1
                depth += {closed: 1, opened: -1}.get(code[place], 0)
                if depth == 0:
                    break
            if code[place - 1] == ">" and opened == "(":
                depth = 0
                while place > 0:
                    place -= 1
                    depth += {">": 1, "<": -1}.get(code[place], 0)
                    if depth == 0:
                        break
            if re.match(r"[\w)\]]", code[place - 1]):
                continue
            return place
        near = max(0, place - LONGEST_NAME)
        name = re.search(r"(?:\w+::)*\w+$", code[near:place])
        if not name:
            return -1
        place = near + name.start()
        if re.fullmatch(r"return|case|co_return|throw|delete|new|else", name[0]):
            return -1
        if code.endswith("->", 0, place):
            place -= 2
        elif code.endswith(".", 0, place) and not code.endswith("...", 0, place):
            place -= 1
        else:
            return place


def member_reads(code, members):
    """(start of the object, place of the dot, its length, member) of each read of one of the members."""
    for found in re.finditer(r"(\.|->)(\w+)\b", code):
        if found[2] not in members or WRITTEN.match(code, found.end()):
            continue
        if code.startswith("(", found.end()) and (found[2] not in CALLED or ATOMIC_LOAD.match(code, found.end())):
            continue
        start = start_of_expression(code, found.start())
        if start >= 0 and not code.startswith("std::move(", start):  # other members of a moved object are read too
            yield start, found.start(), len(found[1]), found[2]


def with_members(text, members, left_out):
    """The text with all reads of members replaced; `left_out` has the texts of lines that stay as they are."""
    code = mutations.blanked(text)
    lines, ends = text.split("\n"), [found.end() for found in re.finditer("\n", text)]
    inserted, arrows = collections.defaultdict(list), set()
    for start, dot, length, member in member_reads(code, members):
        if lines[bisect.bisect_right(ends, dot)] in left_out:
            continue
        head, tail = f"surface::read<surface::of_{member}>(", ")"
        if length == 2:
            head, tail = head + "*(", ")" + tail
            arrows.add(dot)
        inserted[dot].append(tail)
        inserted[start].insert(0, head)  # the outer object of a chain opens first
    parts, last = [], 0
    for place in sorted(inserted):
        parts += [text[last:place], *inserted[place]]
        last = place
        if place in arrows:
            parts.append(".")
            last += 2
    return "".join(parts) + text[last:]


class Instrumented:
    """A tree whose switches can be removed; `folder` is a copy of the repository, `originals`."""

    def __init__(self, originals, folder, switches):
        self.folder, self.originals, self.header = folder, originals, folder.parent / "surface_mutant.hpp"
        self.left_out, self.kept = collections.defaultdict(set), folder.parent / "left_out.json"
        if self.kept.is_file():
            self.left_out.update((path, set(lines)) for path, lines in json.loads(self.kept.read_text()).items())
        self.members, self.flags, self.commands = collections.defaultdict(list), {}, {}
        for switch in switches:
            name = f"{switch.kind}:{switch.name}"
            if switch.kind in ("option", "policy", "abi", "c") and "." in switch.name:
                struct, member = switch.name.split(".")
                self.members[member].append((struct, name))
            elif switch.kind in ("abi", "c"):
                self.flags[switch.name] = name
            elif switch.kind == "command":
                file, flag = switch.name.split()
                self.commands.setdefault(file, {})[flag] = name

    def leave_out(self, path, line):
        """Leaves a line of a source as it is in the next write(); false if it is already."""
        text = (self.originals / path).read_text().split("\n")[line - 1]
        if text in self.left_out[path]:
            return False
        self.left_out[path].add(text)
        self.kept.write_text(json.dumps({path: sorted(lines) for path, lines in self.left_out.items()}))
        return True

    def sources(self):
        for part in ("src", "cli", "python/src", "probe"):
            yield from sorted(path for path in (self.folder / part).rglob("*")
                              if rewritten(str(path.relative_to(self.folder))))

    def declarations(self):
        """C++ that names the switches of each member: a struct `of_NAME` with a function template over the type."""
        structs = {struct for listed in self.members.values() for struct, _ in listed}
        inside = "".join(f"struct {s};\n" for s in sorted(structs) if not s.startswith("opmux_"))
        outside = "".join(f"struct {s};\n" for s in sorted(structs) if s.startswith("opmux_"))
        text = f"namespace opmux {{\n{inside}}}\n{outside}namespace surface {{\n"
        for member, listed in sorted(self.members.items()):
            choices = "".join(f'    if constexpr (std::is_same_v<T, {namespace_of(struct)}>) return "{name}"; else\n'
                              for struct, name in listed)
            text += (f"struct of_{member} {{\n  template <class T>\n  static constexpr const char* name() {{\n"
                     f"{choices}    return nullptr;\n  }}\n}};\n")
        return text + "}\n"

    def write(self):
        """Writes the rewritten sources."""
        header = (self.originals / "tools/surface_mutant.hpp").read_text()
        self.put(self.header, header + self.declarations())
        for path in self.sources():
            relative = path.relative_to(self.folder)
            text = (self.originals / relative).read_text()
            changed = self.with_commands(text, relative)
            changed = self.with_flags(changed)
            changed = with_members(changed, self.members, self.left_out[str(relative)])
            changed = self.with_hooks(changed, str(relative))
            if changed != text:
                head = "#pragma once\n" if path.suffix == ".hpp" else ""
                include = f'{head}#include "{self.header}"\n#line {head.count(chr(10)) + 1}\n'
                changed = include + changed.removeprefix(head)
            self.put(path, changed)

    @staticmethod
    def put(path, text):
        if not path.exists() or path.read_text() != text:
            path.write_text(text)

    def with_flags(self, text):
        def one(found):
            if found[2] not in self.flags:
                return found[0]
            return f'{found[1]}surface::flag("{self.flags[found[2]]}", {found[2]})'
        return re.sub(r"(& ?\(?|\bhas\(|\bclaims\()\b(OPMUX_[A-Z_]+)\b", one, text)

    def with_commands(self, text, relative):
        for flag, name in self.commands.get(relative.stem, {}).items() if relative.parts[0] == "cli" else ():
            text = re.sub(rf'(\(\s*"(?:-\w,)?{flag}",\s*)([\w>.-]+)(?=[,)])', rf'\1surface::bound("{name}", \2)', text)
        return text

    @staticmethod
    def with_hooks(text, relative):
        for file, after, inserted in HOOKS:
            if file == relative:
                assert after in text, f"{file} has changed: the reader of switches is not found"
                text = text.replace(after, f"{after}\n{inserted}", 1)
        return text

    def write_python(self):
        for original, prefix, wanted in surface_python.modules():
            self.put(self.folder / original.relative_to(self.originals),
                     surface_python.rewritten(original, prefix, wanted))
