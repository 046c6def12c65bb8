#!/usr/bin/env python3
"""A debugger that attaches sees a plugin's symbols, loaded from its file and from sealed memory.

usage: gdb_test.py SUBJECT PLUGIN
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def look(subject, folder, form):
    """The output of gdb about the plugin in a running process."""
    command = [subject, f"{folder}/plugins", f"{folder}/state", form]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        loaded = run.stdout.readline().strip()
        if loaded != "2":
            sys.exit(f"{form}: {loaded} plugins loaded, the reference and one more expected")
        gdb = ["gdb", "-nx", "-batch", "-p", str(run.pid), "-ex", "info sharedlibrary",
               "-ex", "info symbol opmux_plugin_query_v1", "-ex", "info functions ^run$"]
        said = subprocess.run(gdb, capture_output=True, text=True, timeout=60, check=False)
        run.stdin.close()
        return run.pid, said.stdout + said.stderr


def main():
    subject, plugin = sys.argv[1], pathlib.Path(sys.argv[2])
    if shutil.which("gdb") is None:
        print("skipped: no gdb")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "plugins").mkdir()
        shutil.copy(plugin, f"{folder}/plugins/{plugin.name}")
        for form in ("file", "sealed"):
            pid, said = look(subject, folder, form)
            if "Could not attach" in said or "ptrace: Operation not permitted" in said:
                print("skipped: this user may not attach")
                return SKIPPED
            place = f"/proc/{pid}/fd/" if form == "sealed" else f"plugins/{plugin.name}"
            # gdb lists a function differently with and without debug information.
            function = r"(?m)^(\d+:.* run\(|0x[0-9a-f]+ +run$)"
            for wanted in (re.escape(place), "opmux_plugin_query_v1 in section .text", function):
                if not re.search(wanted, said):
                    sys.exit(f"{form}: gdb does not say '{wanted}':\n{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
