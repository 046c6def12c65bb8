#!/usr/bin/env python3
"""Compiles and runs the code in the documents and compares its output.

usage: check_snippets.py --include DIR --lib DIR --work DIR [--cxx C] [--cc C] [--flag F]... PAGE...

The first line of a block states its purpose:

    ```cpp run=NAME           part of the program NAME; blocks of one name are joined in order
    ```c plugin=NAME          a shared library built against the headers only
    ```cpp run=X with=NAME    run the program X with the plugin NAME
    ```cpp run=X file=PATH    the block must also equal that file of the project
    ```text of=NAME           the output of the program NAME
    ```text of=NAME cpu=FLAG  the same on a CPU with this flag; elsewhere it only has to run

Code that readers need not see is in comments; it goes before or after the blocks of that name:

    <!-- before NAME              <!-- after NAME
    code                          code
    -->                           -->

Every C or C++ block must have a name.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```(\S*)[ \t]*(.*)$")
HIDDEN = re.compile(r"^<!-- (before|after) (\w+)$")
LANGUAGES = {"c": ("c", "c11"), "cpp": ("c++", "c++20")}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
ROOT = pathlib.Path(__file__).resolve().parents[1]


class Snippet:
    """One program or plugin of a page."""

    def __init__(self, kind, name, language):
        self.kind, self.name, self.language = kind, name, language
        self.before, self.body, self.after = [], [], []
        self.plugins, self.file, self.expected = [], None, None

    def source(self):
        return "\n".join(self.before + self.body + self.after) + "\n"


class Problem(Exception):
    pass


def read_until(lines, at, end):
    """The lines from `at` up to the one that equals `end`, and the index of that line."""
    for stop in range(at, len(lines)):
        if lines[stop] == end:
            return lines[at:stop], stop
    raise Problem(f"line {at}: no line closes this block")


def add_code(snippets, language, words, body, line):
    kind = next((k for k in ("run", "plugin") if k in words), None)
    if kind is None:
        raise Problem(f"line {line}: this {language} block has neither run= nor plugin=")
    name = words[kind]
    snippet = snippets.setdefault(name, Snippet(kind, name, language))
    if (snippet.kind, snippet.language) != (kind, language):
        raise Problem(f"line {line}: {name} is a {snippet.kind} in {snippet.language} above")
    snippet.body += body
    snippet.plugins += [words["with"]] if "with" in words else []
    snippet.file = words.get("file", snippet.file)


def parse(text):
    """The snippets of a page by name."""
    lines, snippets, hidden, at = text.splitlines(), {}, [], 0
    expected = {}
    while at < len(lines):
        fence, comment = FENCE.match(lines[at]), HIDDEN.match(lines[at])
        if comment:
            body, at = read_until(lines, at + 1, "-->")
            hidden.append((*comment.groups(), body))
        elif fence:
            line = at + 1
            body, at = read_until(lines, at + 1, "```")
            words = dict(word.split("=", 1) for word in fence[2].split() if "=" in word)
            if fence[1] in LANGUAGES:
                add_code(snippets, fence[1], words, body, line)
            elif "of" in words:
                expected[words["of"]] = body if has_cpu_flag(words.get("cpu")) else None
        at += 1
    for where, name, body in hidden:
        if name not in snippets:
            raise Problem(f"hidden lines for {name}, but no block has that name")
        getattr(snippets[name], where).extend(body)
    for name, body in expected.items():
        if name not in snippets:
            raise Problem(f"output of {name}, but no block has that name")
        snippets[name].expected = body
    return snippets


def has_cpu_flag(flag):
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return flag is None or re.search(rf"^flags\b.*\b{flag}\b", text, re.MULTILINE) is not None


def run(command, **options):
    done = subprocess.run(command, text=True, capture_output=True, timeout=300, **options)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise Problem(f"{pathlib.Path(command[0]).name} exited with {done.returncode}\n{said}")
    return done.stdout


def build(snippet, folder, options):
    language, standard = LANGUAGES[snippet.language]
    source = folder / f"{snippet.name}.{snippet.language}"
    source.write_text(snippet.source())
    compiler = options.cxx if snippet.language == "cpp" else options.cc
    launcher = [shutil.which("ccache")] if shutil.which("ccache") else []
    command = [compiler, "-x", language, f"-std={standard}", "-O1", f"-I{options.include}",
               *WARNINGS, *options.flag]
    made = folder / f"{snippet.name}.o"
    run([*launcher, *command, "-fPIC", "-fvisibility=hidden", "-c", str(source), "-o", str(made)])
    link = [compiler, *options.flag, str(made)]
    if snippet.kind == "plugin":
        target = folder / f"plugins_{snippet.name}" / f"lib{snippet.name}.so"
        target.parent.mkdir(exist_ok=True)
        run([*link, "-shared", "-o", str(target), "-lm"])
    else:
        target = folder / snippet.name
        libraries = [f"-L{options.lib}", "-lopmux", f"-Wl,-rpath,{options.lib}"]
        run([*link, *libraries, "-o", str(target)])
    return target


def check_output(snippet, target, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPMUX_")}
    if snippet.plugins:
        paths = [str(folder / f"plugins_{name}") for name in snippet.plugins]
        environment["OPMUX_PLUGIN_PATH"] = ":".join(paths)
    printed = run([str(target)], env=environment).splitlines()
    if snippet.expected is not None and snippet.expected != printed:
        raise Problem("prints\n" + "\n".join(printed) + "\ninstead of\n" + "\n".join(snippet.expected))


def check_file(snippet):
    if snippet.file is None:
        return
    if (ROOT / snippet.file).read_text() != "\n".join(snippet.body) + "\n":
        raise Problem(f"differs from {snippet.file}")


def check(page, options):
    """The number of snippets of a page that passed, and the problems of the others."""
    snippets = parse(page.read_text())
    folder = pathlib.Path(options.work) / page.stem
    folder.mkdir(parents=True, exist_ok=True)
    good, problems = 0, []
    for snippet in sorted(snippets.values(), key=lambda s: s.kind):
        try:
            check_file(snippet)
            target = build(snippet, folder, options)
            if snippet.kind == "run":
                check_output(snippet, target, folder)
            good += 1
        except (Problem, OSError, subprocess.TimeoutExpired) as problem:
            problems.append(f"{snippet.name}: {problem}")
    return good, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("include", "lib", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    failed = False
    for page in options.pages:
        try:
            good, problems = check(page, options)
        except Problem as problem:
            good, problems = 0, [str(problem)]
        print(f"{page.name}: {good} snippets passed")
        for problem in problems:
            print(f"{page.name}: {problem}")
        failed |= bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
