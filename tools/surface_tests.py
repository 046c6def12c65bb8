"""Finds the tests of the tree, and those that are likely to notice when the reader of a switch is removed."""
import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Functions of Python that pass arguments on, by the function that takes them.
PASSED_ON_BY = {"Runtime": "create_runtime", "function_options": ".implementation"}
MOST_CANDIDATES, MOST_PYTHON_CANDIDATES = 40, 24


def tests_in_sources():
    """{test: (its text, the text of its file)}. Tests of GoogleTest, C and pytest, and scripts that ctest runs."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        text = path.read_text()
        for start in re.finditer(r"^TEST(?:_F)?\((\w+),\s*(\w+)\) \{$", text, re.M):
            found[f"{start[1]}.{start[2]}"] = (text[start.start():text.find("\n}\n", start.end())], text)
    for path in sorted((ROOT / "tests/unit/c_api").glob("*_test.c")):
        text = path.read_text()
        for start in re.finditer(r"^(?:static )?void (\w+)\(void\) \{$", text, re.M):
            found[f"CApi.{start[1]}"] = (text[start.start():text.find("\n}\n", start.end())], text)
    for path in sorted((ROOT / "python/tests").glob("test_*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        if any(ast.unparse(node) == "pytestmark = pytest.mark.full" for node in tree.body):
            continue
        groups = [("", tree), *((f"{node.name}::", node) for node in tree.body if isinstance(node, ast.ClassDef))]
        constants = {target.id: ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)
                     for target in node.targets if isinstance(target, ast.Name)}
        for group, holder in groups:
            for node in holder.body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not is_long(node):
                    source = "\n".join(text.splitlines()[node.lineno - 1:node.end_lineno])
                    named = set(re.findall(r"\w+", source)) & constants.keys()
                    source = "\n".join([source, *(constants[name] for name in sorted(named))])
                    found[f"{path.relative_to(ROOT)}::{group}{node.name}"] = (source, text)
    return (found | tests_of_the_command(ROOT / "tests/integration/cli")
            | tests_of_plugin_check(ROOT / "tests/integration/check") | scripts())


def is_long(test):
    """Long forms take minutes, such as the one that builds the wheel twice."""
    return any(ast.unparse(mark).startswith("pytest.mark.full") for mark in test.decorator_list)


def one_for_each(loop):
    """The body of a loop of CMake over `case`, once for each value."""
    return "".join(loop[2].replace("${case}", case) for case in loop[1].split())


def scripts():
    """Tests that are Python scripts, in any folder of tests/."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("CMakeLists.txt")):
        listing = re.sub(r"foreach\(case ([\w\s]+)\)\n(.*?)endforeach\(\)\n", one_for_each, path.read_text(), flags=re.S)
        for name, rest in re.findall(r"add_test\(\s*NAME ([\w.]+)\s(.*?)\)\n", listing, re.S):
            texts = [(path.parent / script).read_text() for script in re.findall(r"(\w+\.py)", rest)
                     if (path.parent / script).is_file()]
            if texts:
                found[name] = ("\n".join(texts),) * 2
    return found


def tests_of_the_command(folder):
    """Texts of the tests of the command line: golden files, cases of json_test.py, other scripts."""
    found = {f"cli.{path.stem}": (path.read_text(),) * 2 for path in sorted(folder.glob("golden/*.golden"))}
    listing, cases = (folder / "CMakeLists.txt").read_text(), (folder / "json_test.py").read_text()
    for case in re.search(r"foreach\(case (list .*?)\)", listing, re.S)[1].split():
        body = re.search(rf'^    "{case}": .*?(?=^    "|^\}})|^def {case}\(.*?(?=^def |\Z)', cases, re.M | re.S)
        found[f"cli.json.{case}"] = ((body[0] if body else "") + ' "--json"', "")  # ask() adds it
    for group in ("options", "tune_run"):
        script = (folder / f"{group}_test.py").read_text()
        for case in re.findall(r"^def (\w+)\(folder\)", script, re.M):
            body = re.search(rf"^def {case}\(.*?(?=^def |\Z)", script, re.M | re.S)[0]
            found[f"cli.{group}.{case}"] = (body, script)
    migrate = (folder / "migrate_test.py").read_text()
    for case in ("environment", "kernels", "nothing_to_read", *sorted(p.name for p in folder.glob("migrations/*"))):
        found[f"cli.migrate.{case}"] = (migrate,) * 2
    for name, script in re.findall(r"opmux_cli_test\((\w+) \$\{CMAKE_CURRENT_SOURCE_DIR\}/(\w+\.py)", listing):
        found[f"cli.{name}"] = ((folder / script).read_text(),) * 2
    return found


def tests_of_plugin_check(folder):
    script = (folder / "check_test.py").read_text()
    cases = re.search(r"set\(cases (.*?)\)", (folder / "CMakeLists.txt").read_text(), re.S)[1].split()
    verdicts = re.findall(r'^    "(\w+)": \(', script, re.M)
    return {f"plugin_check.{case}": (script,) * 2 for case in (*verdicts, *cases)}


def words_of(switch):
    """Texts that a test of the switch is likely to contain: (needed, welcome). In Python one needed one is enough."""
    if switch.kind == "command":
        file, flag = switch.name.split()
        return [flag], [file.split("_")[0], f'"{flag}"']
    if switch.kind == "environment":
        return [switch.name.replace("<NAME>", "")], []
    if switch.kind == "key":
        group, key = switch.name.rsplit(".", 1)
        return [key], [f"{key}: ", group.split()[-1]]
    parts = switch.name.split(".")
    if switch.kind == "python":
        called = parts[-2] if parts[-2] != "__init__" else parts[0]
        called = PASSED_ON_BY.get(called, called)
        return [called, parts[-1]], [f"{parts[-1]}=", f"{called}("]
    return [parts[-1]], [parts[0], f".{parts[-1]} =", parts[0].removesuffix("Options").lower()]


def candidates(switch, tests):
    """(tests of programs, tests of Python) that mention the switch, the likeliest first."""
    needed, welcome = words_of(switch)
    # Whole words: "utc" is not in "outcome".
    patterns = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)" if word[-1:].isalnum() else re.escape(word))
                for word in needed]
    # In Python an argument may be passed by position, or by a helper that calls the function.
    enough = any if switch.kind == "python" else all
    programs, python = [], []
    for name, (text, whole) in tests.items():
        if switch.kind == "python" and "::" not in name:
            continue
        near = enough(pattern.search(text) for pattern in patterns)
        if near or enough(pattern.search(whole) for pattern in patterns):
            into = python if "::" in name else programs
            counts = [-sum(word in shown for word in welcome) for shown in (text, whole)]
            into.append((not near, *counts, len(text), name))
    return ([name for *_, name in sorted(programs)][:MOST_CANDIDATES],
            [name for *_, name in sorted(python)][:MOST_PYTHON_CANDIDATES])
