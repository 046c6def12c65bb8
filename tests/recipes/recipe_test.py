#!/usr/bin/env python3
"""Follows a recipe of CONTRIBUTING.md in a copy of the tree, builds it, runs its tests and counts the touched files.

usage: recipe_test.py operator | rule_key

The copy is build/recipes/NAME. Fails if a step fails or if the recipe touches more than 8 files.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
MOST_FILES = 8


class Copy:
    """A copy of the tracked files of the tree, with a separate repository that shows what a recipe changes."""

    def __init__(self, name):
        self.root = ROOT / "build/recipes" / name
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
        self.git("add", "--all")
        self.git("-c", "user.name=recipe", "-c", "user.email=recipe@localhost", "commit", "--quiet",
                 "--allow-empty", "--message", "the tree before the recipe")

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

    def build(self, preset, targets, *options):
        tree = self.root / "build" / preset
        self.run("cmake", "--preset", preset, "-B", tree, *options)
        self.run("cmake", "--build", tree, "--target", *targets)
        return tree

    def touched(self):
        """Files that differ from the tree before the recipe."""
        lines = self.git("status", "--porcelain", "--untracked-files=all").splitlines()
        return sorted(line[3:] for line in lines if not line[3:].startswith("build/"))


def expect(text, pattern):
    if not re.search(pattern, text):
        sys.exit(f"expected {pattern!r} in:\n{text}")


def follow_operator(copy):
    """Adds the operator `negate`."""
    for source in sorted((HERE / "negate").iterdir()):
        copy.write(f"operators/negate/{source.name}", source.read_bytes())
    page = (copy.root / "docs/operators.md").read_text()
    section = ("## negate\n\n<!-- generated arguments negate -->\n<!-- end -->\n\n"
               "`y = -x`. NaN stays NaN.\n\n")
    copy.write("docs/operators.md", page.replace("## Example\n", section + "## Example\n").encode())

    tree = copy.build("release", ["opmux_command", "opmux_simd", "opmux_onednn", "opmux_openblas",
                                  "opmux_opencl", "unit_backends"], "-DOPMUX_TESTS=ON")
    copy.run(sys.executable, "tools/gen_docs.py")
    copy.run(sys.executable, "tools/gen_operator_stubs.py")

    expect(copy.run(tree / "bin/opmux", "explain", "negate", "x=f32[2,3]"), r"negate/reference\.scalar")
    expect(copy.run(tree / "bin/opmux", "verify", "negate", "--cases", "50"), r"negate/reference\.scalar")
    expect(copy.run(tree / "bin/unit_backends", "--gtest_filter=ReferenceNegate.*:*plugin*"),
           r"OK \] ReferenceNegate\.changes_the_sign_of_every_element")
    copy.run(sys.executable, "tools/gen_docs.py", "--check")
    copy.run(sys.executable, "tools/gen_operator_stubs.py", "--check")
    copy.run(sys.executable, "tools/check_layers.py")
    copy.run(sys.executable, "tests/integration/cli/json_test.py", tree / "bin/opmux", "docs/schemas",
             "every_operator_folder_is_listed")


def follow_rule_key(copy):
    """Adds the rule key `avoid`."""
    copy.git("apply", HERE / "rule_key.patch")
    # The operators are those of the tree, so its command lists their implementations.
    generate = [sys.executable, "tools/gen_docs.py", "--opmux", ROOT / "build/release/bin/opmux"]
    copy.run(*generate)
    copy.run(*generate, "--check")
    copy.run(sys.executable, "tools/check_layers.py")

    off = [f"-DOPMUX_BACKEND_{name}=OFF" for name in ("SIMD", "ONEDNN", "OPENBLAS", "OPENCL")]
    tree = copy.build("dev", ["unit_policy"], "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *off)
    expect(copy.run(tree / "bin/unit_policy", "--gtest_filter=OperatorPolicy.*:PolicyReader*:PolicySet*"),
           r"OK \] OperatorPolicy\.avoid_halves_the_score_until_the_rule_expires")


RECIPES = {"operator": follow_operator, "rule_key": follow_rule_key}


def main():
    name = sys.argv[1]
    copy = Copy(name)
    RECIPES[name](copy)
    touched = copy.touched()
    print(f"recipe {name}: {len(touched)} files, at most {MOST_FILES}")
    for file in touched:
        print(f"  {file}")
    return 0 if 0 < len(touched) <= MOST_FILES else 1


if __name__ == "__main__":
    sys.exit(main())
