"""Runs the Python code in the documents and compares its output with the output shown there.

The test runs each ```python block. A ```text block after it is the expected output; without one,
the block must print nothing. With cpu=FLAG, the output is compared only on a CPU with that flag.
The blocks of a page share one namespace and one process; blocks in comments are run too. A
```python theirs block is code of another project and is not run.
"""

import contextlib
import inspect
import io
import pathlib
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

import opmux

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_snippets  # noqa: E402
import gen_docs  # noqa: E402


def blocks_of(page):
    """Yields (line, language, words, body) for each block of a page, in order."""
    lines, at = page.read_text().splitlines(), 0
    while at < len(lines):
        fence, line = check_snippets.FENCE.match(lines[at]), at + 1
        if fence:
            body, at = check_snippets.read_until(lines, at + 1, "```")
            yield line, fence[1], fence[2].split(), body
        at += 1


def runnable(page):
    """Each block to run as (line, code, expected output). The output is None if it depends on a CPU
    flag that this machine does not have."""
    found = []
    for line, language, words, body in blocks_of(page):
        if language == "python" and "theirs" not in words:
            found.append([line, body, []])
        elif language == "text" and found and not any(w.startswith("of=") for w in words):
            flag = next((w[4:] for w in words if w.startswith("cpu=")), None)
            found[-1][2] = body if check_snippets.has_cpu_flag(flag) else None
    return found


FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in FILES if runnable(page)]


def run(page):
    """Runs a page's blocks; exits at the first block that prints something unexpected."""
    names = {"__name__": "__main__"}
    for line, code, expected in runnable(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + "\n".join(code) + "\n", str(page), "exec"), names)
        said = [text.rstrip() for text in printed.getvalue().splitlines()]
        if expected is not None and said != expected:
            sys.exit("\n".join([f"{page.name}:{line} prints", *said, "and not", *expected]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_prints_what_the_page_says(page):
    code = "\n".join("\n".join(body) for _, body, _ in runnable(page))
    for module in ("torch", "transformers"):
        if f"import {module}\n" in code and not find_spec(module):
            pytest.skip(f"{module} is not installed")
    ran = subprocess.run([sys.executable, __file__, str(page)], capture_output=True, text=True,
                         timeout=300, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_the_tutorial_is_among_the_pages():
    assert ROOT / "docs/python/tutorial.md" in PAGES


def test_the_reference_names_everything_public():
    said = set(re.findall(r"^::: opmux\.(\w+)$", (ROOT / "docs/python/api.md").read_text(), re.M))
    public = {
        name
        for name in opmux.__all__
        if isinstance(getattr(opmux, name), type) or inspect.isfunction(getattr(opmux, name))
    }
    assert said == public


@pytest.mark.parametrize("name", gen_docs.operators(ROOT))
def test_the_page_of_an_operator_shows_its_signature(name):
    page = " ".join(gen_docs.python_signature(ROOT, name)[1:-3])
    shown = re.findall(r"[(,]\s*(\w+|\*)", page)
    real = re.findall(r"[(,]\s*(\w+|\*)", opmux.op(name).signature)
    assert shown == real


if __name__ == "__main__":
    run(pathlib.Path(sys.argv[1]))
