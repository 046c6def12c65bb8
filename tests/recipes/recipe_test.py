#!/usr/bin/env python3
"""Follows recipes of CONTRIBUTING.md in a copy of the tree, counts the files that each touches, builds the copy and
runs the tests of the recipes.

usage: recipe_test.py [operator] [rule_key]     (default: both)

The copy is build/recipes. Its backends besides reference are those of build/release, which the recipes do not touch.
Fails if a step fails or if a recipe touches more than 8 files.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
BUILT = ROOT / "build/release"
MOST_FILES = 8


class Copy:
    """A copy of the tracked files of the tree, with a separate repository that shows what a recipe changes."""

    def __init__(self):
        self.root = ROOT / "build/recipes"
        self.tree = self.root / "build/dev"
        self.root.mkdir(parents=True, exist_ok=True)
        wanted = {name for name in self.git("ls-files", "-co", "--exclude-standard", at=ROOT).splitlines()
                  if (ROOT / name).is_file()}
        for path in self.files():
            if str(path) not in wanted:
                (self.root / path).unlink()
        for name in wanted:
            self.write(name, (ROOT / name).read_bytes(), (ROOT / name).stat().st_mode)
        (self.root / "build").mkdir(exist_ok=True)
        for shared in ("venv", "libyaml"):
            link = self.root / "build" / shared
            if not link.is_symlink():
                link.symlink_to(ROOT / "build" / shared)
        self.git("init", "--quiet")
        self.commit("the tree before the recipes")

    def commit(self, message):
        self.git("add", "--all")
        self.git("-c", "user.name=recipe", "-c", "user.email=recipe@localhost", "commit", "--quiet",
                 "--allow-empty", "--message", message)

    def files(self):
        """Paths of the copied files."""
        for path in self.root.rglob("*"):
            name = path.relative_to(self.root)
            if name.parts[0] not in ("build", ".git") and path.is_file():
                yield name

    def write(self, name, content, mode=0o644):
        """Writes a file unless it has that content already, so that a second run builds little."""
        path = self.root / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        path.chmod(mode)

    def git(self, *words, at=None):
        return self.run("git", *words, at=at)

    def run(self, *words, at=None):
        """Runs a command in the copy; returns its output, or ends the test with it."""
        ended = subprocess.run([str(word) for word in words], cwd=at or self.root, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        if ended.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))} failed:\n{ended.stdout[-6000:]}")
        return ended.stdout

    def build(self, *targets):
        """Builds without optimisation, which takes less time, and adds the backends of the tree."""
        off = [f"-DOPMUX_BACKEND_{name}=OFF" for name in ("SIMD", "ONEDNN", "OPENBLAS", "OPENCL")]
        self.run("cmake", "--preset", "dev", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *off)
        self.run("cmake", "--build", self.tree, "--target", *targets)
        folder = "lib/opmux"  # backends, and the engines that they link
        shutil.copytree(BUILT / folder, self.tree / folder, dirs_exist_ok=True)

    def generate(self, opmux, *tools):
        """Runs tools that generate files; `opmux` is the command that lists the implementations."""
        for tool in tools:
            words = [sys.executable, f"tools/{tool}", *(["--opmux", opmux] if tool == "gen_docs.py" else [])]
            self.run(*words)
            self.run(*words, "--check")
        self.run(sys.executable, "tools/check_layers.py")

    def touched(self):
        """Files that differ from the tree before the recipe."""
        lines = self.git("status", "--porcelain", "--untracked-files=all").splitlines()
        return sorted(line[3:] for line in lines if not line[3:].startswith("build/"))


def expect(text, pattern):
    if not re.search(pattern, text):
        sys.exit(f"expected {pattern!r} in:\n{text}")


def add_rule_key(copy):
    """Adds the rule key `avoid`."""
    copy.git("apply", HERE / "rule_key.patch")
    copy.generate(BUILT / "bin/opmux", "gen_docs.py")  # the implementations are those of the tree


def test_rule_key(copy):
    copy.build("unit_policy")
    expect(copy.run(copy.tree / "bin/unit_policy", "--gtest_filter=OperatorPolicy.*:PolicyReader*:PolicySet*"),
           r"OK \] OperatorPolicy\.avoid_halves_the_score_until_the_rule_expires")


def add_operator(copy):
    """Adds the operator `negate`."""
    for source in sorted((HERE / "negate").iterdir()):
        copy.write(f"operators/negate/{source.name}", source.read_bytes())
    page = (copy.root / "docs/operators.md").read_text()
    section = ("## negate\n\n<!-- generated arguments negate -->\n<!-- end -->\n\n"
               "`y = -x`. NaN stays NaN.\n\n")
    copy.write("docs/operators.md", page.replace("## Example\n", section + "## Example\n").encode())
    copy.build("opmux_command", "unit_backends")
    copy.generate(copy.tree / "bin/opmux", "gen_docs.py", "gen_operator_stubs.py")


def test_operator(copy):
    opmux = copy.tree / "bin/opmux"
    expect(copy.run(opmux, "explain", "negate", "x=f32[2,3]"), r"negate/reference\.scalar")
    expect(copy.run(opmux, "verify", "negate", "--cases", "50"), r"negate/reference\.scalar")
    expect(copy.run(copy.tree / "bin/unit_backends", "--gtest_filter=ReferenceNegate.*:*plugin*"),
           r"OK \] ReferenceNegate\.changes_the_sign_of_every_element")
    copy.run(sys.executable, "tests/integration/cli/json_test.py", opmux, "docs/schemas",
             "every_operator_folder_is_listed")


# The rule key first: its documents are generated with the command of the tree, which lacks the operator.
RECIPES = {"rule_key": (add_rule_key, test_rule_key), "operator": (add_operator, test_operator)}


def main():
    names = [name for name in RECIPES if name in sys.argv[1:]] or list(RECIPES)
    copy = Copy()
    most = 0
    for name in names:
        add, _ = RECIPES[name]
        add(copy)
        touched = copy.touched()
        print(f"recipe {name}: {len(touched)} files, at most {MOST_FILES}")
        for file in touched:
            print(f"  {file}")
        if not touched:
            sys.exit("the recipe changed nothing")
        most = max(most, len(touched))
        copy.commit(f"the tree after the recipe {name}")
    for name in names:
        _, test = RECIPES[name]
        test(copy)
    return 0 if most <= MOST_FILES else 1


if __name__ == "__main__":
    sys.exit(main())
