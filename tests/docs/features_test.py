#!/usr/bin/env python3
"""Checks that tools/gen_features.py reports a row whose test or page does not exist, and a page that is old."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("tests", "operators", "python/tests", "examples", "docs", "tools/features.txt")


def run(root):
    done = subprocess.run([sys.executable, "-B", str(ROOT / "tools/gen_features.py"), "--check", str(root)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def with_row(root, row, told):
    """The report for the list with one more row."""
    path = root / "tools/features.txt"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}{row}\n", encoding="utf-8")
    code, said = run(root)
    path.write_text(text, encoding="utf-8")
    assert code == 1 and told in said, said


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in NEEDED:
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, target)
        assert run(root)[0] == 0, run(root)
        with_row(root, "mllm | wings | concepts.md | Truth.it_flies", "there is no test Truth.it_flies")
        with_row(root, "mllm | wings | concepts.md | python/tests/test_points.py::test_it_flies",
                 "there is no test python/tests/test_points.py::test_it_flies")
        with_row(root, "mllm | wings | concepts.md | cli.flies", "there is no test cli.flies")
        with_row(root, "mllm | wings | wings.md | cli.points", "there is no page docs/wings.md")
        with_row(root, "mllm | wings | policy.md#wings | cli.points", "has no section wings")
        with_row(root, "mllm | wings | policy.md | cli.points", "is out of date")


if __name__ == "__main__":
    main()
