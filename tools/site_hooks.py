"""mkdocs hooks: add pages from files outside docs/ and a page for each operator, and rewrite links so
that they work both on the site and in the repository."""
import pathlib
import posixpath
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import gen_docs  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402

# Repository files that are pages under another name.
RENAMED = {"README.md": "index.md", "docs/README.md": "documents.md",
           "CONTRIBUTING.md": "dev/contributing.md", "SECURITY.md": "dev/security.md"}
SOURCES = {page: source for source, page in RENAMED.items()}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(r"^<!-- .*?-->\n", re.MULTILINE | re.DOTALL)


def on_config(config):
    decisions = sorted((ROOT / "docs/dev/decisions").glob("[0-9]*.md"))
    fill(config.nav, "Operators", [f"operators/{op}.md" for op in gen_docs.operators(ROOT)])
    fill(config.nav, "Decisions", [f"dev/decisions/{page.name}" for page in decisions])


def fill(nav, title, pages):
    """Adds pages to the section with that title, at any depth."""
    for entry in nav:
        for name, section in entry.items() if isinstance(entry, dict) else ():
            if name == title:
                section.extend(pages)
            elif isinstance(section, list):
                fill(section, title, pages)


def on_files(files, config):
    made = {page: (ROOT / source).read_text() for source, page in RENAMED.items()}
    made |= {f"operators/{op}.md": gen_docs.operator_page(ROOT, op)
             for op in gen_docs.operators(ROOT)}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    if uri.startswith("migrating/"):
        page.meta["hide"] = ["toc"]   # make room for two columns of code
    markdown = HIDDEN.sub("", markdown)
    if uri == "operators.md":
        markdown = gen_docs.without_operators(ROOT, markdown)
    made = uri.startswith("operators/")
    folder = "docs" if made else posixpath.dirname(SOURCES.get(uri, f"docs/{uri}"))
    parts, at = [], 0
    for fence in FENCED.finditer(markdown):
        parts += [relinked(markdown[at:fence.start()], folder, uri), shown(fence[0])]
        at = fence.end()
    return "".join(parts) + relinked(markdown[at:], folder, uri)


def shown(fence):
    """A code block without its test attributes, dedented."""
    first, *body, last = fence.split("\n")
    words = first.split(" ")
    return "\n".join([words[0], textwrap.dedent("\n".join(body)), last])


def relinked(text, folder, uri):
    """Rewrites links relative to a repository folder as links from a page of the site."""
    def link(match):
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        page, anchor = page_of(posixpath.normpath(posixpath.join(folder, path)), anchor)
        if page is None:
            return text if "`" in text else f"`{text}`"
        if text == target or text.endswith(".md"):
            text = title_of(page)
        relative = posixpath.relpath(page, posixpath.dirname(uri) or ".")
        return f"[{text}]({relative}{'#' + anchor if anchor else ''})"
    return LINK.sub(link, text)


def title_of(page):
    """The title of a page: its first heading, or the operator's name."""
    if page.startswith("operators/"):
        return posixpath.basename(page).removesuffix(".md")
    source = ROOT / SOURCES.get(page, f"docs/{page}")
    return source.read_text().partition("\n")[0].removeprefix("# ")


def page_of(source, anchor):
    """The page and anchor for a repository path; None if the site does not include it."""
    if source == "docs/operators.md" and anchor in gen_docs.operators(ROOT):
        return f"operators/{anchor}.md", ""
    if source in RENAMED:
        return RENAMED[source], anchor
    if not source.startswith("docs/"):
        return None, anchor
    folder = ROOT / source
    return source.removeprefix("docs/") + ("/README.md" if folder.is_dir() else ""), anchor
