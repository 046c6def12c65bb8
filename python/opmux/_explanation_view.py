"""Renders an explanation: coloured text in a terminal, an HTML table in a notebook."""

from __future__ import annotations

import os
import sys
from typing import Any

_COLOURS = {"chosen": "32", "accepted": "36", "last resort": "36", "refused": "31"}
_STYLE = "border-collapse:collapse;font-family:ui-monospace,monospace;font-size:90%;text-align:left"
_CELL = "padding:2px 12px 2px 0;text-align:left"
_HTML_COLOURS = {"32": "#1a7f37", "36": "#0969da", "31": "#cf222e"}


def _in_colours() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _colour(line: str, verdicts: dict[str, str]) -> str:
    words = line.split()
    number = _COLOURS.get(verdicts.get(words[1], "")) if len(words) > 1 else None
    return f"\x1b[{number}m{line}\x1b[0m" if number else line


def as_text(explanation: Any) -> str:
    """Returns the table that `opmux explain` prints, coloured if stdout is a terminal."""
    text: str = explanation.to_text().rstrip("\n")
    if not _in_colours():
        return text
    verdicts = {candidate.id: candidate.verdict for candidate in explanation.candidates}
    return "\n".join(_colour(line, verdicts) for line in text.splitlines())


def _row(candidate: Any) -> str:
    import html

    colour = _HTML_COLOURS[_COLOURS.get(candidate.verdict, "31")]
    why = f"{candidate.code}: {candidate.reason}" if candidate.code else candidate.reason
    cells = (candidate.id, candidate.verdict, why)
    marked = "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in cells)
    return f'<tr style="color:{colour}">{marked}</tr>'


def as_html(explanation: Any) -> str:
    """Returns the table as HTML for a notebook."""
    import html

    head = f"{explanation.op}  {explanation.arguments}"
    tail = f"generation {explanation.generation}, {explanation.device}"
    rows = "".join(_row(candidate) for candidate in explanation.candidates)
    depends = ", ".join(explanation.depends_on) or "nothing"
    note = f"<p>{html.escape(explanation.note)}</p>" if explanation.note else ""
    return (
        f"<div><p><b>{html.escape(head)}</b><br><small>{html.escape(tail)}</small></p>"
        f'<table style="{_STYLE}"><tbody>{rows}</tbody></table>'
        f"<p><small>depends on: {html.escape(depends)}</small></p>{note}</div>"
    )


def install(explanation: Any) -> None:
    """Adds the text and HTML representations to the extension's Explanation class."""
    explanation.__str__ = as_text
    explanation.__repr__ = as_text
    explanation._repr_html_ = as_html
