#!/usr/bin/env python3
"""Draws the results of tools/bench_vllm: plot_vllm.py TOKENS.json KERNELS.json FOLDER

Writes FOLDER/vllm_tokens.svg (tokens per second of whole engines) and FOLDER/vllm_operators.svg
(microseconds of single operators), with a pair of bars for each case: vLLM alone and vLLM with opmux.
Bars are scaled to the longer one of each case, because cases differ by a factor of a thousand.
"""
import json
import pathlib
import sys
from html import escape

PLAIN, OURS, INK, PAPER = "#9aa5b1", "#0f766e", "#1f2933", "#ffffff"
LABEL, BARS, VALUE, BAR, GAP, TOP = 250, 380, 130, 11, 12, 58


def bar(x, y, length, colour):
    return f'<rect x="{x}" y="{y}" width="{max(length, 1):.1f}" height="{BAR}" fill="{colour}"/>'


def text(x, y, words, anchor="start", weight="normal"):
    return (f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{INK}">{escape(words)}</text>')


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def case(y, name, plain, ours, better):
    """Two bars with their values, and the ratio between them."""
    longest = max(plain, ours)
    lines = [text(LABEL - 8, y + BAR + 3, name, "end")]
    for row, (value, colour) in enumerate(((plain, PLAIN), (ours, OURS))):
        length = BARS * value / longest
        lines.append(bar(LABEL, y + row * BAR, length, colour))
        lines.append(text(LABEL + length + 5, y + row * BAR + 9, number(value)))
    lines.append(text(LABEL + BARS + VALUE, y + BAR + 3, f"{better:.2f} x", "end", "bold"))
    return lines


def chart(title, results):
    """One chart as SVG text."""
    width, height = LABEL + BARS + VALUE + 20, TOP + len(results) * (2 * BAR + GAP) + 8
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'font-family="sans-serif" font-size="11" role="img" aria-label="{escape(title)}">',
             f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
             text(12, 22, title, weight="bold"), bar(12, 34, 18, PLAIN), text(35, 43, "vLLM"),
             bar(90, 34, 18, OURS), text(113, 43, "vLLM with opmux")]
    for row, result in enumerate(results):
        y = TOP + row * (2 * BAR + GAP)
        lines += case(y, result["case"], result["plain"], result["opmux"], result["ratio"])
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tokens, kernels = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
    folder = pathlib.Path(sys.argv[3])
    (folder / "vllm_tokens.svg").write_text(
        chart("Tokens per second: longer is better", tokens))
    (folder / "vllm_operators.svg").write_text(
        chart("Microseconds of a call: shorter is better", kernels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
