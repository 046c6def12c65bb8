#!/usr/bin/env python3
"""The log of long fuzz runs, docs/dev/fuzz_runs.tsv.

usage: fuzz_log.py append TARGET SECONDS SEED EXECUTIONS none|found
       fuzz_log.py sum

`append` adds a line for a run of the current version and commit. `sum` prints the executions of the current
version; gen_docs.py puts the same table into docs/dev/reliability.md.
"""
import collections
import fcntl
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOG = pathlib.Path("docs/dev/fuzz_runs.tsv")
COLUMNS = ("version", "commit", "target", "seconds", "seed", "executions", "findings")


def version(root):
    text = (root / "include/opmux/version.h").read_text(encoding="utf-8")
    return re.search(r'#define OPMUX_VERSION "([^"]+)"', text)[1]


def runs(root):
    """The lines of the log as dictionaries."""
    path = root / LOG
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines[1:]]


def append(root, *values):
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True,
                            text=True).stdout.strip()
    # Targets run in parallel.
    with (root / LOG).open("a", encoding="utf-8") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        if log.seek(0, 2) == 0:
            log.write("\t".join(COLUMNS) + "\n")
        log.write("\t".join((version(root), commit, *values)) + "\n")


def table(root):
    """The lines of a Markdown table of the runs of the current version, and their sum."""
    now = version(root)
    count, hours, found = collections.Counter(), collections.Counter(), collections.Counter()
    for run in runs(root):
        if run["version"] == now:
            count[run["target"]] += int(run["executions"])
            hours[run["target"]] += int(run["seconds"])
            found[run["target"]] += run["findings"] == "found"
    rows = [f"| `{name}` | {count[name]:,} | {hours[name] / 3600:.1f} | {found[name]} |" for name in sorted(count)]
    rows.append(f"| all, version {now} | {sum(count.values()):,} | {sum(hours.values()) / 3600:.1f} |"
                f" {sum(found.values())} |")
    return ["| target | executions | hours | runs with findings |", "|---|---|---|---|", *rows]


def main():
    match sys.argv[1:]:
        case ["append", target, seconds, seed, executions, findings]:
            append(ROOT, target, seconds, seed, executions, findings)
        case ["sum"]:
            print("\n".join(table(ROOT)))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
