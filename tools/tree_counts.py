"""Counts of the source tree for `check_layers.py --count`.

How each number is counted:

source files    the *.hpp and *.cpp files below src/; lines include blank lines and comments
types           named struct, class, union and enum definitions at namespace or class level. Comments,
                strings and preprocessor lines are removed first. A definition inside a function, a
                forward declaration, an alias, a type without a name and a specialization of a
                template are not counted. `typedef struct {...} name;` counts as `name`
public headers  the *.h and *.hpp files below include/opmux. Those in abi/ (parts of abi.h), plugin/
                (parts of plugin.hpp), c/ (parts of opmux.h) and detail/ (for templates) are listed
                apart; the earlier number includes those of c/
public types    types of the *.hpp among them; the earlier number includes the ten of plugin/. The
                structs of *.h, which C callers and plugins use, are listed apart
single-user     headers of src/ that exactly one file of src/, cli/, probe/, python/ and backends/
                includes, besides the source of the same folder and stem. Tests are not counted
comment share   lines of public headers with a comment, also after code, divided by lines that are
                not blank
members         public functions of opmux::Runtime, constructors, destructor and overloads included. Old
                names that are marked [[deprecated]] are not counted
wide folders    folders of src/ with more than 25 sources and no sub-folder
"""
import re
import statistics

MOST_FILES = 25
APART = ("abi", "plugin", "c", "detail")
USERS = ("src", "cli", "probe", "python", "backends")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"'
                   r"|(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)+'", re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]|\balignas\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
                       r"|\bOPMUX_\w+(?:\([^()]*\))?")
TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)"
                  r"(?:\s+([A-Za-z_]\w*(?:\s*::\s*\w+)*))?(?:\s+final)?\s*(?::(?!:)[^()]*)?$")
NAMESPACE = re.compile(r"\b(?:namespace(?:\s+[\w:]+)?|extern\s*\"?\"?)\s*$")


def without_comments(text):
    """The text with comments blanked and strings emptied; lines keep their numbers."""
    def blank(match):
        kept = "\n" * match[0].count("\n")
        return '""' + kept if match[0][0] in "\"R" else kept or " "
    return TOKEN.sub(blank, text)


def without_templates(head):
    """The text without `template <...>`, so that `class` in a parameter is not read as a type."""
    while (match := re.search(r"\btemplate\s*<", head)) is not None:
        depth, end = 1, match.end()
        while depth and end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        head = head[:match.start()] + head[end:]
    return head


def types_of(text):
    """Names of the types that a C or C++ text defines at namespace or class level."""
    text = PREPROCESSOR.sub("", without_comments(text))
    names, open_braces, start, outer = [], [], 0, True
    for match in re.finditer(r"[{};]", text):
        head, start = text[start:match.start()], match.end()
        if match[0] == "{":
            head = ATTRIBUTE.sub(" ", without_templates(head)).rstrip()
            found = TYPE.search(head)
            kind = "other"
            if NAMESPACE.search(head):
                kind = "namespace"
            elif found:
                kind = "type" if found[1] else "anonymous"
                if outer and found[1]:
                    names.append(re.sub(r"\s", "", found[1]))
                elif outer and "typedef" in head:
                    kind = "typedef"
            open_braces.append(kind)
        elif match[0] == "}" and open_braces:
            if open_braces.pop() == "typedef":
                named = re.match(r"\s*(\w+)\s*;", text[match.end():])
                names += [named[1]] if named else []
        outer = "other" not in open_braces
    return names


def comment_share(texts):
    """Lines with a comment per line that is not blank, over all texts."""
    commented = lines = 0
    for text in texts:
        lines += sum(1 for line in text.splitlines() if line.strip())
        for match in TOKEN.finditer(text):
            if match[0][0] == "/":
                commented += sum(1 for line in match[0].splitlines() if line.strip())
    return commented / lines if lines else 0.0


def members_of(text, name):
    """How many functions a class declares in its first public section, without deprecated ones."""
    text = without_comments(text)
    start = re.search(rf"\bclass {name} {{\s*public:", text)
    if start is None:
        return 0
    count, depth, declared = 0, 0, ""
    for part in re.split(r"([{};]|\bprivate:)", text[start.end():]):
        if part == "private:":
            break
        depth += {"{": 1, "}": -1}.get(part, 0)
        if depth == 0 and part in (";", "}"):
            count += "(" in declared and "[[deprecated" not in declared
            declared = ""
        elif depth == 0:
            declared += part
    return count


def files_below(folder, suffixes):
    return [file for file in sorted(folder.rglob("*")) if file.suffix in suffixes and file.is_file()]


def users_of_headers(root):
    """{header of src/: the files that include it, without the source of the same name}."""
    users = {header: set() for header in files_below(root / "src", {".hpp"})}
    for top in USERS:
        for file in files_below(root / top, {".h", ".hpp", ".cpp"}):
            for name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                for folder in (file.parent, root / "src", root):
                    header = folder / name
                    if header in users:
                        if header.with_suffix(".cpp") != file:
                            users[header].add(file)
                        break
    return users


def wide_folders(root):
    """Folders of src/ with too many sources and no sub-folder, with the number of sources."""
    for folder in sorted(path for path in root.glob("src/**/") if path.is_dir()):
        here = [file for file in folder.iterdir() if file.suffix in (".hpp", ".cpp")]
        if len(here) > MOST_FILES and not any(path.is_dir() for path in folder.iterdir()):
            yield f"{folder.relative_to(root)} has {len(here)} files and no sub-folder"


def public_headers(root):
    """{"": headers that users include, "plugin": ..., "c": ..., "detail": ...}, each a list of files."""
    top, groups = root / "include" / "opmux", {"": []} | {name: [] for name in APART}
    for file in files_below(top, {".h", ".hpp"}):
        first = file.relative_to(top).parts[0]
        groups[first if first in APART else ""].append(file)
    return groups


def count_types(files):
    return sum(len(types_of(file.read_text(encoding="utf-8"))) for file in files)


def percent(share):
    return f"{100 * share:.0f} %"


def rows(root):
    """The table: (what, now, before the restructuring, aim)."""
    sources = files_below(root / "src", {".hpp", ".cpp"})
    lengths = [file.read_bytes().count(b"\n") for file in sources] or [0]
    headers = public_headers(root)
    everything = [file for group in headers.values() for file in group]
    texts = [file.read_text(encoding="utf-8") for file in everything]
    users = users_of_headers(root)
    single = sum(1 for files in users.values() if len(files) == 1)
    yield "source files in src/", len(sources), "533", "<= 300"
    yield "median lines", f"{statistics.median(lengths):.0f}", "60", "100-150"
    yield "share under 40 lines", percent(sum(n < 40 for n in lengths) / len(lengths)), "32 %", ""
    yield "types in src/", count_types(sources), "525", "<= 350"
    yield "public headers", len(headers[""]), "46", "<= 20"
    for group in APART:
        yield f"  apart: {group}/", len(headers[group]), "", ""
    yield "public types", count_types(f for f in headers[""] if f.suffix == ".hpp"), "134", "<= 85"
    for group in ("plugin", "detail"):
        yield f"  apart: {group}/", count_types(headers[group]), "", ""
    yield "  apart: structs of *.h", count_types(f for f in everything if f.suffix == ".h"), "", ""
    runtime = root / "include" / "opmux" / "runtime.hpp"
    members = members_of(runtime.read_text(encoding="utf-8"), "Runtime") if runtime.exists() else 0
    yield "members of Runtime", members, "52", "<= 28"
    yield f"single-user headers (of {len(users)})", single, "81", ""
    yield "comments in public headers", percent(comment_share(texts)), "31 %", ">= 45 %"
    yield f"folders over {MOST_FILES} files, flat", len(list(wide_folders(root))), "", "0"


def print_table(root):
    """Prints the table; returns the problems that must fail the command."""
    table = [("", "now", "before", "aim"), *(tuple(map(str, row)) for row in rows(root))]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        print((row[0].ljust(widths[0]) + "".join(
            "  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))).rstrip())
    return list(wide_folders(root))
