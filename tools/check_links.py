#!/usr/bin/env python3
"""Checks the links between the documents of the project.

usage: check_links.py [ROOT]

The target file must exist, and `#heading` must be a heading in it.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors of a page's headings: lower case, dashes for blanks, no punctuation."""
    text = FENCED.sub("", page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in HEADING.findall(text)}


def problems_of(page, root):
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{page.relative_to(root)}: {link} does not exist"
        elif anchor and anchor not in anchors(target):
            yield f"{page.relative_to(root)}: {target.name} has no heading for #{anchor}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    root = root.resolve()
    pages = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
    problems = [problem for page in pages for problem in problems_of(page, root)]
    for problem in problems:
        print(problem)
    print(f"links: {len(pages)} pages, {len(problems)} problems")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
