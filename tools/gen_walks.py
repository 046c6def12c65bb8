#!/usr/bin/env python3
"""Writes docs/dev/walks.md: four walks through the sources, checked against the sources.

usage: gen_walks.py [--check]

The walks are in tools/walks.py. A step names a file, a function and what happens there. The script
fails unless the function is defined in the file and the step is linked to another one:

after=NAME    the function NAME, of an earlier step, calls this one; without it, the previous step does
via=NAME      the caller does not name the function: it calls NAME, a callback or interface
wired=FILE, WORD  where NAME and the function are connected: near each other, the file mentions the
              function and WORD, which is the callback or interface (default: NAME)
shares=NAME   another thread continues: both functions use the data NAME
back=True     the function is the caller of the previous step, which has returned
start=True    a program starts here

A call from a folder of src/ to one that it may not include (MAY_INCLUDE of check_layers.py) is
possible only through a callback or an interface; the page lists these steps. --check writes no file
and fails if the page is not up to date.
"""
import pathlib
import re
import sys

import check_layers
import tree_counts
import walks

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/dev/walks.md"
NEAR = 1500  # characters between a function and the callback or interface that it is connected to
AFTER_PARAMETERS = re.compile(r"\s*(?:const\b|noexcept\b|override\b|final\b|->\s*[\w:<>*& ]+)*\s*")


def closing(text, start):
    """The index after the bracket that closes the one at `start`."""
    pairs, depth = {"(": ")", "{": "}"}, 0
    left, right = text[start], pairs[text[start]]
    for at in range(start, len(text)):
        depth += (text[at] == left) - (text[at] == right)
        if depth == 0:
            return at + 1
    return len(text)


def body_after(text, parameters):
    """The body of the function whose parameter list starts at `parameters`; None for a call."""
    at = AFTER_PARAMETERS.match(text, closing(text, parameters)).end()
    if text[at:at + 1] == ":" and text[at:at + 2] != "::":  # members of a constructor
        at += 1
        while member := re.compile(r"\s*[\w:<>]+\s*(?=[({])").match(text, at):
            end = closing(text, member.end())
            at = re.compile(r"\s*,?").match(text, end).end()
            if not text[end:at].strip():
                break
        members, at = text[parameters:at], re.compile(r"\s*").match(text, at).end()
        return members + text[at:closing(text, at)] if text[at:at + 1] == "{" else None
    return text[at:closing(text, at)] if text[at:at + 1] == "{" else None


def bodies_in(text, name):
    for match in re.finditer(rf"(?<![\w:.>]){re.escape(name)}\s*(?=\()", text):
        body = body_after(text, match.end())
        if body is not None:
            yield body


def code_of(file):
    """The text of a file without comments, strings, preprocessor lines and attributes."""
    text = tree_counts.without_comments((ROOT / file).read_text(encoding="utf-8"))
    return tree_counts.ATTRIBUTE.sub(" ", tree_counts.PREPROCESSOR.sub("", text))


def body_of(text, function):
    """All bodies of a function, by its name with or without its class; "" if there are none."""
    found = list(bodies_in(text, function))
    owner, _, name = function.rpartition("::")
    if not found and owner:
        scope = re.search(rf"\b(?:class|struct)\s+{owner.rpartition('::')[2]}\b[^;{{()]*(?={{)", text)
        if scope:
            found = list(bodies_in(text[scope.end():closing(text, scope.end())], name))
    return "\n".join(found)


def places(body, name):
    last = name.rpartition("::")[2]
    return [found.start() for found in re.finditer(rf"(?<!\w){re.escape(last)}(?!\w)", body)]


def mentions(body, name):
    return bool(places(body, name))


def connected(step):
    """Whether the file of `wired` mentions the function near the callback or interface."""
    file, word = step.wired if isinstance(step.wired, tuple) else (step.wired, step.via)
    text = code_of(file)
    return any(abs(at - other) < NEAR
               for at in places(text, step.function) for other in places(text, word))


def room_of(file):
    path = pathlib.PurePosixPath(file)
    if path.parts[0] == "src":
        return path.parts[1]
    return check_layers.PUBLIC.get("/".join(path.parts[2:])) if path.parts[0] == "include" else None


def goes_up(caller, step):
    """Whether a call goes to a folder that the caller's folder may not include."""
    own, other = room_of(caller.file), room_of(step.file)
    if own is None or other is None or caller.file.startswith("include/"):
        return False  # a public header declares functions of the library
    return own != other and other not in check_layers.MAY_INCLUDE[own].split()


class Walk:
    """One walk with the results of its check."""

    def __init__(self, title, intro, steps):
        self.title, self.intro, self.steps = title, intro, steps
        self.problems, self.up = [], []
        self.bodies = {}
        for number, step in enumerate(steps):
            self.check(number, step)

    def check(self, number, step):
        file = ROOT / step.file
        body = body_of(code_of(step.file), step.function) if file.is_file() else ""
        self.bodies[number] = body
        if not body:
            self.problems.append(f"{step.file} does not define {step.function}")
            return
        if number == 0 or step.start:
            return
        caller = number - 1
        if step.after:
            named = [at for at in range(number) if self.steps[at].function == step.after]
            if not named:
                self.problems.append(f"{step.function}: no earlier step is {step.after}")
                return
            caller = named[-1]
        if not self.linked(self.bodies[caller], body, self.steps[caller], step):
            self.problems.append(f"{self.steps[caller].function} in {self.steps[caller].file} is not "
                                 f"linked to {step.function} in {step.file}")
        if not step.back and not step.shares and goes_up(self.steps[caller], step):
            self.up.append((number, self.steps[caller], step))

    @staticmethod
    def linked(before, body, caller, step):
        if step.shares:
            return mentions(before, step.shares) and mentions(body, step.shares)
        if step.back:
            return mentions(body, caller.function)
        if not step.via:
            return mentions(before, step.function)
        return mentions(before, step.via) and (not step.wired or connected(step))

    def files(self):
        return list(dict.fromkeys(step.file for step in self.steps))

    def summary(self):
        up = len(self.up)
        return (f"{len(self.steps)} steps in {len(self.files())} files; {up or 'no'} "
                f"step{'' if up == 1 else 's'} up a layer")

    def page(self):
        yield f"## {self.title}\n\n{self.intro}\n"
        yield "| | file | function | step |\n|---|---|---|---|"
        shown = None
        for number, step in enumerate(self.steps, 1):
            file = "" if step.file == shown else f"[`{step.file}`](../../{step.file})"
            shown = step.file
            yield f"| {number} | {file} | `{step.function}` | {step.text} |"
        yield f"\n{self.summary()}."
        for number, caller, step in self.up:
            through = f", through `{step.via}`" if step.via else ""
            file = step.wired[0] if isinstance(step.wired, tuple) else step.wired
            wired = f", connected in [`{file}`](../../{file})" if file else ""
            yield (f"Step {number + 1} goes up, from `{room_of(caller.file)}` to "
                   f"`{room_of(step.file)}`{through}{wired}.")
        yield ""


HEAD = """# Walks

Four walks through the sources, from a cause to its effect. Each step is one function, which an earlier step calls. `tools/gen_walks.py` writes this page from `tools/walks.py` and checks that every function exists in its file and
that the steps are linked. The same flows are drawn in [architecture.md](architecture.md).

A step goes *up a layer* if a function calls into a folder of `src/` that its folder may not include. Such a call is made through a
callback or an interface.

"""


def table(all_walks):
    yield "| walk | steps | files | files allowed | steps up a layer |\n|---|---|---|---|---|"
    for walk in all_walks:
        most = walks.MOST_FILES.get(walk.title, "")
        yield (f"| [{walk.title}](#{walk.title.lower().replace(' ', '-')}) | {len(walk.steps)} | "
               f"{len(walk.files())} | {most} | {len(walk.up)} |")
    yield "\n"


def main():
    all_walks = [Walk(*walk) for walk in walks.WALKS]
    problems = [f"{walk.title}: {problem}" for walk in all_walks for problem in walk.problems]
    for walk in all_walks:
        most = walks.MOST_FILES.get(walk.title, len(walk.files()))
        if len(walk.files()) > most:
            problems.append(f"{walk.title}: {len(walk.files())} files; {most} are allowed")
    for problem in problems:
        print(problem)
    for walk in all_walks:
        print(f"{walk.title}: {walk.summary()}")
        for number, caller, step in walk.up:
            print(f"  step {number + 1} goes up: {caller.function} in {caller.file} calls "
                  f"{step.function} in {step.file}")
    if problems:
        return 1
    page = HEAD + "\n".join([*table(all_walks), *(line for walk in all_walks
                                                  for line in walk.page())]).rstrip() + "\n"
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print(f"{PAGE.relative_to(ROOT)} is not up to date: run tools/gen_walks.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
