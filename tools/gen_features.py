#!/usr/bin/env python3
"""Writes the table of features of other systems in docs/migrating/README.md from tools/features.txt.

usage: gen_features.py [--check] [ROOT]

Each line of features.txt names the place in opmux and the tests that show the feature. A test or a place
that does not exist is an error, so that no row can promise what nothing shows. With --check it only
reports whether the page is up to date.
"""
import pathlib
import re
import sys

BEGIN = "<!-- features: written by tools/gen_features.py from tools/features.txt -->"
END = "<!-- features: end -->"


class Feature:
    def __init__(self, line, words):
        self.line = line
        self.system, self.name, self.where, first = words
        self.tests = [first]


def read_features(text):
    features = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            features[-1].tests.append(line.strip())
            continue
        words = [word.strip() for word in line.split("|")]
        if len(words) != 4 or not all(words):
            raise SystemExit(f"features.txt:{number}: write system | feature | where | test")
        features.append(Feature(number, words))
    return features


def gtest_names(root):
    """Suite.name of every GoogleTest case in the sources."""
    pattern = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
    names = set()
    for folder in ("tests", "operators"):
        for path in (root / folder).rglob("*_test.cpp"):
            names |= {f"{suite}.{name}" for suite, name in pattern.findall(path.read_text(encoding="utf-8"))}
    return names


def command_names(root):
    """Names of the tests of the command: golden files, migrations and those that CMake registers."""
    folder = root / "tests/integration/cli"
    names = {f"cli.{path.stem}" for path in folder.glob("golden/*.golden")}
    names |= {f"cli.migrate.{path.name}" for path in folder.glob("migrations/*")}
    text = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
    return names | {f"cli.{name}" for name in re.findall(r"opmux_cli_test\((\w+)", text)}


def install_names(root):
    text = (root / "tests/install/CMakeLists.txt").read_text(encoding="utf-8")
    names = {f"install.{name}" for name in re.findall(r"opmux_install_test\((\w+) ", text)}
    plugins = re.search(r"foreach\(example ([\w ]+)\)", text)
    names |= {f"install.example_plugin_{name}_passes_its_tests" for name in plugins[1].split()}
    return names | {f"install.example_{path.parent.name}_prints_what_is_expected"
                    for path in root.glob("examples/*/CMakeLists.txt")}


def c_names(root):
    text = (root / "tests/unit/c_api/tests.inc").read_text(encoding="utf-8")
    return {f"CApi.{name}" for name in re.findall(r"C_TEST\((\w+)\)", text)}


def has_python_test(root, test):
    path, _, name = test.partition("::")
    file = root / path
    return file.is_file() and re.search(rf"^ *def {re.escape(name)}\(", file.read_text(encoding="utf-8"), re.M)


def anchors_of(page):
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


def problems_of(root, features):
    known = gtest_names(root) | command_names(root) | install_names(root) | c_names(root)
    for feature in features:
        page, _, anchor = feature.where.partition("#")
        path = root / "docs" / page
        if not path.is_file():
            yield f"features.txt:{feature.line}: there is no page docs/{page}"
        elif anchor and anchor not in anchors_of(path):
            yield f"features.txt:{feature.line}: docs/{page} has no section {anchor}"
        for test in feature.tests:
            found = has_python_test(root, test) if "::" in test else test in known
            if not found:
                yield f"features.txt:{feature.line}: there is no test {test}"


def link(where):
    page = where.partition("#")[0]
    target = where.removeprefix("migrating/") if page.startswith("migrating/") else f"../{where}"
    return "this page" if page == "migrating/README.md" else f"[{page}]({target})"


def table(features):
    lines = ["| system | feature | where | tests |", "|---|---|---|---|"]
    for one in features:
        tests = ", ".join(f"`{test.removeprefix('python/tests/')}`" for test in one.tests)
        lines.append(f"| {one.system} | {one.name} | {link(one.where)} | {tests} |")
    return "\n".join(lines)


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[1])
    features = read_features((root / "tools/features.txt").read_text(encoding="utf-8"))
    problems = list(problems_of(root, features))
    page = root / "docs/migrating/README.md"
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} lacks the lines between which the table goes")
    wanted = f"{before}{BEGIN}\n\n{table(features)}\n\n{END}{after}"
    if wanted != text and "--check" in sys.argv:
        problems.append("docs/migrating/README.md is out of date: run tools/gen_features.py")
    elif wanted != text:
        page.write_text(wanted, encoding="utf-8")
    tests = sum(len(one.tests) for one in features)
    print("\n".join([*problems, f"features: {len(features)}, tests: {tests}, problems: {len(problems)}"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
