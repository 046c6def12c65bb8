"""Generates single-line changes of C++ code for tools/mutants.

Kinds: relation (== != < <= > >=), logic (&& ||), arithmetic (+ -), truth (true false), condition (an
inverted `if`), constant (a number plus one), return (`return {}`), statement (a call or an
assignment removed). Expects code formatted by tools/format. Comments, literals, directives,
static_asserts and code outside functions are not changed.
"""
import collections
import re

RELATIONS = {"==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<", ">"],
             ">": [">=", "<="], ">=": [">", "<"]}
SWAPS = {"&&": "||", "||": "&&", "+": "-", "-": "+", "true": "false", "false": "true"}
Mutant = collections.namedtuple("Mutant", "layer file line kind before after")

HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\])+\''
    r'|^[ \t]*#(?:\\\n|[^\n])*|\bstatic_assert\b.*?;', re.S | re.M)
DECLARING = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")
STATEMENT = re.compile(r"\s*\*?[\w.:\[\]>()-]*[\w\])](?:\(.*\)| [-+|&^*/]?= .+);$")
SKIPPED = re.compile(r"\s*(using|template|friend|typedef|case .*: return \"|assert\()")


def blanked(text):
    """The text with comments, literals and directives replaced by blanks of the same length."""
    return HIDDEN.sub(lambda hit: re.sub(r"[^\n]", " ", hit[0]), text)


def in_functions(code):
    """The code with everything outside function bodies replaced by blanks."""
    kept, stack, since = [], [], 0
    for place, c in enumerate(code):
        if c == "{":
            head = code[since:place]
            initialiser = not stack or not stack[-1]
            initialiser = initialiser and (head[-1:].isalnum() or head.rstrip()[-1:] in "=,")
            stack.append(bool(stack and stack[-1]) or
                         not (initialiser or DECLARING.search(head)))
        elif c == "}" and stack:
            stack.pop()
        kept.append(c if c == "\n" or (stack and stack[-1]) else " ")
        if c in "{};":
            since = place + 1
    return "".join(kept)


def closing(code, start):
    """Index of the parenthesis that closes the one at `start` in this line, or -1."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return -1


def condition_edit(line, code):
    opened = re.search(r"\bif (?:constexpr )?\(", code)
    end = closing(code, opened.end() - 1) if opened else -1
    if end < 0:
        return
    start = opened.end() + code[opened.end():end].rfind(";") + 1
    if " = " not in code[start:end]:
        gap = " " if start > opened.end() else ""
        yield "condition", f"{line[:start]}{gap}!({line[start:end].strip()}){line[end:]}"


def statement_edits(line, code, before):
    value = re.search(r"\breturn (.+);", code)
    worth = value and line[value.start(1):value.end(1)]
    if worth and worth not in ("{}", "nullptr", "0", "true", "false", "std::nullopt"):
        yield "return", f"{line[:value.start(1)]}{{}}{line[value.end(1):]}"
    if STATEMENT.match(code) and not re.match(r"\s*(return|delete)\b", code) and before in ";{}":
        yield "statement", line[:len(line) - len(line.lstrip())] + ";"


def edits(line, code, before):
    """All (kind, new line) for a line; `before` is the last code character above it."""
    def replaced(hit, word):
        return line[:hit.start(1)] + word + line[hit.end(1):]
    for hit in re.finditer(r" (==|!=|<=|>=|<|>)(?= )", code):
        yield from (("relation", replaced(hit, word)) for word in RELATIONS[hit[1]])
    for hit in re.finditer(r" (&&|\|\|)(?= |$)", code):
        yield "logic", replaced(hit, SWAPS[hit[1]])
    for hit in re.finditer(r" ([+-])(?= )", code):
        yield "arithmetic", replaced(hit, SWAPS[hit[1]])
    for hit in re.finditer(r"\b(true|false)\b", code):
        yield "truth", replaced(hit, SWAPS[hit[1]])
    for hit in re.finditer(r"(?<![\w.'])(\d+)(?![\w.'>])", code):
        yield "constant", replaced(hit, str(int(hit[1]) + 1))
    yield from condition_edit(line, code)
    yield from statement_edits(line, code.rstrip(), before)


def mutants_of(root, layer, only, draw):
    """One mutant for each changeable line of a layer, in random order."""
    found = []
    for file in sorted((root / "src" / layer).glob("*.[ch]pp")):
        name = file.relative_to(root)
        if only and not any(name.is_relative_to(path) for path in only):
            continue
        text = file.read_text()
        before = "{"
        lines = zip(text.splitlines(), in_functions(blanked(text)).splitlines())
        for number, (line, code) in enumerate(lines, 1):
            possible = collections.defaultdict(list)
            for kind, after in [] if SKIPPED.match(line) else edits(line, code, before):
                possible[kind].append(after)
            before = code.rstrip()[-1:] or before
            if possible:
                kind = draw.choice(sorted(possible))
                after = draw.choice(possible[kind])
                found.append(Mutant(layer, str(name), number, kind, line.strip(), after))
    draw.shuffle(found)
    return found


def shares(sizes, count):
    """Splits `count` in proportion to sizes, at most each size; largest remainders round up."""
    whole = max(1, sum(sizes.values()))
    exact = {key: count * size / whole for key, size in sizes.items()}
    given = {key: int(part) for key, part in exact.items()}
    for key in sorted(exact, key=lambda key: given[key] - exact[key]):
        given[key] += sum(given.values()) < count
    return {key: min(part, sizes[key]) for key, part in given.items()}
