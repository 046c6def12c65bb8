#!/usr/bin/env python3
"""Draws docs/assets/architecture.svg: the rooms of src/ in layers, and four flows through them.

usage: draw_architecture.py [--check]

The rows follow from MAY_INCLUDE of check_layers.py: a room is one row above the highest room that it
may include. A room in MAY_INCLUDE without a text in ROOMS, or a folder of the repository that is not
drawn, is an error. --check writes no file and fails if the picture is not up to date.
"""
import pathlib
import sys
from html import escape

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/assets/architecture.svg"

ROOMS = {  # room of src/: up to two lines of text
    "base": ["status, text, clock, files, locks, threads, event log"],
    "schema": ["schema language, arguments, facts, where clauses"],
    "registry": ["backends, implementations, capabilities, snapshots, points"],
    "policy": ["rules, conditions,", "files, store, lockfile"],
    "health": ["circuit breakers,", "lost devices"],
    "crash": ["hazard slots, journal,", "quarantine"],
    "verify": ["tolerances of results"],
    "tune": ["measured speeds,", "bundle reader"],
    "tuner": ["measuring, workbench, bundle writer;", "libraries for the command"],
    "dispatch": ["call, decide, plan, reclaim, explain"],
    "plugin": ["discover, trust, probe,", "open, read, manager"],
    "status": ["status file of a process"],
    "shadow": ["sampled comparison", "with the reference"],
    "replay": ["recorded calls"],
    "runtime": ["Core: wires the rooms together; the Runtime API"],
    "c_api": ["the C API: opmux.h"],
    "conformance": ["cases and trials for implementations;", "a separate library"],
}
USERS = {  # folders that use the library
    "cli": "the opmux command",
    "python": "the Python package",
    "examples": "programs, plugins",
    "benchmarks": "bench_*",
    "tests": "all tests",
}
OUTSIDE = {  # folders next to the library
    "probe": "tries plugins in a child",
    "operators": "schema files",
    "platforms": "policy files",
    "backends": "kernels, through abi.h",
}
SUPPORT = {  # folders without code of the library
    "tools": "scripts, checks", "cmake": "CMake modules", "docs": "documents",
    "changes": "change notes",
}
FLOWS = [  # name, colour, steps: (place, text)
    ("CALL", "#1f6fb4", [
        ("include", "Operator packs the arguments"),
        ("dispatch", "a cached plan fits the arguments"),
        ("crash", "its id is in a HazardSlot"),
        ("backends", "the kernel runs"),
    ]),
    ("DECISION", "#b4571f", [
        ("dispatch", "no cached plan fits: slow path"),
        ("schema", "the arguments are checked"),
        ("registry", "capabilities refuse candidates"),
        ("policy", "rules exclude and rank the others"),
        ("health", "open breakers exclude more"),
        ("dispatch", "the Decision is cached by class"),
    ]),
    ("POLICY", "#2c8a3e", [
        ("policy", "PolicyFileWatcher reads the file"),
        ("policy", "PolicyStore dry-runs and keeps it"),
        ("runtime", "Core publishes the new set"),
        ("dispatch", "Engine replaces CompiledOperators"),
    ]),
    ("PLUGIN", "#8a2c86", [
        ("plugin", "PluginManager finds a checked file"),
        ("probe", "a child process tries it"),
        ("plugin", "the file is opened and read"),
        ("registry", "its implementations are added"),
        ("runtime", "Core publishes the snapshot"),
        ("dispatch", "the next decision sees them"),
    ]),
]
LEFT, WIDTH, GAP = 20, 1010, 40
BAR, BOX, LOW = 50, 100, 72  # heights: one room, several with numbers, several without


def levels():
    """{room: row counted from the lowest}."""
    rows = {}
    for room in check_layers.MAY_INCLUDE:  # listed from low to high
        below = [rows[other] for other in check_layers.MAY_INCLUDE[room].split()]
        rows[room] = max(below) + 1 if below else 0
    return rows


def exceptions():
    """Rooms that may not include all rooms of lower rows, with the rooms that they may include."""
    rows = levels()
    return {room: allowed.split() for room, allowed in check_layers.MAY_INCLUDE.items()
            if set(allowed.split()) != {other for other in rows if rows[other] < rows[room]}}


def problems():
    for room in check_layers.MAY_INCLUDE:
        if room not in ROOMS:
            yield f"src/{room} has no text in ROOMS of draw_architecture.py"
    drawn = {*USERS, *OUTSIDE, *SUPPORT, "include", "src"}
    for folder in sorted(ROOT.iterdir()):
        hidden = folder.name.startswith((".", "_")) or folder.name == "build"
        if folder.is_dir() and not hidden and folder.name not in drawn:
            yield f"{folder.name}/ is not in the picture: add it to draw_architecture.py"


class Box:
    def __init__(self, name, lines, x, y, width, height, fill):
        self.name, self.lines, self.fill = name, lines, fill
        self.x, self.y, self.width, self.height = x, y, width, height
        self.dots = 0


def place_boxes():
    """{name: Box} for all folders, from top to bottom, and the lower edge."""
    boxes, y = {}, 20

    def row(entries, height, fill, prefix=""):
        nonlocal y
        space = 14
        width = (WIDTH - space * (len(entries) - 1)) / len(entries)
        for number, (name, lines) in enumerate(entries):
            lines = [lines] if isinstance(lines, str) else lines
            boxes[name] = Box(prefix + name, lines, LEFT + number * (width + space), y, width,
                              height, fill)
        y += height + GAP

    row([(name, text) for name, text in USERS.items()], 54, "#f3f3f3")
    row([("include", "the public API: opmux.hpp and its parts, opmux.h, abi.h, plugin.hpp")], BAR,
        "#fff6dc", "")
    by_row = levels()
    for number in range(max(by_row.values()), -1, -1):
        rooms = [(room, ROOMS[room]) for room in ROOMS if by_row[room] == number]
        visited = any(place in dict(rooms) for flow in FLOWS for place, _ in flow[2])
        height = BAR if len(rooms) == 1 else BOX if visited else LOW
        row(rooms, height, "#e8f0f7", "src/")
    row([(name, text) for name, text in OUTSIDE.items()], 64, "#f3f3f3")
    row([(name, text) for name, text in SUPPORT.items()], 54, "#f3f3f3")
    boxes["include"].name = "include/opmux"
    return boxes, y - GAP


def text(x, y, words, size, weight="normal", colour="#222", anchor="start"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}" '
            f'fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>')


def steps_of(flow):
    """The steps with consecutive visits of one place joined: (place, first number, last number)."""
    joined = []
    for number, (place, _) in enumerate(flow[2], 1):
        if joined and joined[-1][0] == place:
            joined[-1][2] = number
        else:
            joined.append([place, number, number])
    return joined


def dot_positions(boxes):
    """Per flow, the place of each number: (x, y, label, box).

    A flow has two lanes in the wide boxes: one for its first number there, one for the others.
    """
    flows = []
    for lane, flow in enumerate(FLOWS):
        stops, in_wide = [], 0
        for place, first, last in steps_of(flow):
            box = boxes[place]
            if box.width == WIDTH:
                x = box.x + WIDTH - 26 - 84 * lane - (42 if in_wide else 0)
                in_wide += 1
            else:
                x = box.x + box.width - 26 - 42 * box.dots
                box.dots += 1
            y = box.y + (box.height / 2 if box.height < BOX else box.height - 21)
            stops.append((x, y, f"{first}" if first == last else f"{first}-{last}", box))
        flows.append(stops)
    return flows


def path_between(a, b, track):
    """Corners of a path from number to number; its horizontal part is in the gap next to b."""
    (ax, ay, _, box_a), (bx, by, _, box_b) = a, b
    if box_b.y > box_a.y:
        level = box_b.y - GAP + 8 + 8 * track
    elif box_b.y < box_a.y:
        level = box_b.y + box_b.height + 8 + 8 * track
    else:
        level = box_b.y - 5
    return [(ax, ay), (ax, level), (bx, level), (bx, by)]


def draw():
    boxes, bottom = place_boxes()
    flows = dot_positions(boxes)
    legend_x = LEFT + WIDTH + 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {legend_x + 330} {bottom + 20}" '
             'font-family="Helvetica, Arial, sans-serif">',
             "<title>opmux: folders in layers and four flows</title>",
             '<rect width="100%" height="100%" fill="#ffffff"/>']
    lines = []
    for number, stops in enumerate(flows):
        colour = FLOWS[number][1]
        for a, b in zip(stops, stops[1:]):
            corners = path_between(a, b, number)
            lines.append('<polyline points="' + " ".join(f"{x:.0f},{y:.0f}" for x, y in corners) +
                         f'" fill="none" stroke="{colour}" stroke-width="3" '
                         'stroke-linejoin="round"/>')
    parts += lines  # drawn before the boxes, so that a box which a flow does not enter hides it
    for box in boxes.values():
        parts.append(f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" '
                     f'height="{box.height:.0f}" rx="7" fill="{box.fill}" stroke="#7a8894"/>')
        wide = box.height == BAR
        parts.append(text(box.x + 12, box.y + (31 if wide else 22), box.name + "/", 16, "bold"))
        for number, line in enumerate(box.lines):
            x, y = (box.x + 150, box.y + 31) if wide else (box.x + 12, box.y + 41 + 16 * number)
            parts.append(text(x, y, line, 13, colour="#444"))
    for number, stops in enumerate(flows):
        colour = FLOWS[number][1]
        for x, y, label, _ in stops:
            width = 26 if len(label) == 1 else 36
            parts.append(f'<rect x="{x - width / 2:.0f}" y="{y - 12:.0f}" width="{width}" '
                         f'height="24" rx="12" fill="{colour}"/>')
            parts.append(text(x, y + 5, label, 13, "bold", "#fff", "middle"))
    y = 40
    parts.append(text(legend_x, y, "A room may include the rooms below it", 14, "bold"))
    for room, allowed in exceptions().items():
        y += 20
        parts.append(text(legend_x, y, f"except src/{room}, only:", 13, colour="#444"))
        y += 18
        parts.append(text(legend_x, y, ", ".join(allowed), 13, colour="#444"))
    for name, colour, steps in FLOWS:
        y += 44
        parts.append(f'<rect x="{legend_x}" y="{y - 14}" width="26" height="18" rx="9" '
                     f'fill="{colour}"/>')
        parts.append(text(legend_x + 36, y, name, 16, "bold", colour))
        for number, (place, words) in enumerate(steps, 1):
            y += 20
            parts.append(text(legend_x + 8, y, f"{number}", 13, "bold", colour))
            parts.append(text(legend_x + 26, y, f"{place}: {words}", 13, colour="#333"))
    y += 44
    parts.append(text(legend_x, y, "A line behind a box passes it; a number is a step there.", 12,
                      colour="#666"))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main():
    found = list(problems())
    for problem in found:
        print(problem)
    if found:
        return 1
    picture = draw()
    if "--check" in sys.argv[1:]:
        if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture:
            print(f"{PICTURE.relative_to(ROOT)} is not up to date: run tools/draw_architecture.py")
            return 1
        print(f"architecture: {len(ROOMS)} rooms, {len(FLOWS)} flows, up to date")
        return 0
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
