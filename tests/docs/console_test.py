#!/usr/bin/env python3
"""Runs the commands of ```console blocks and compares their output.

usage: console_test.py OPMUX LIBRARY PAGE [--update]

A line "$ COMMAND" is run by the shell; the lines after it are the expected output, including standard error.
Blocks with the same name (```console NAME) share a folder. The library is a copy without backends, so that
every machine has only the reference. Hashes are not compared, because they change with the set of operators.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HASH = re.compile(r"\b[0-9a-f]{16,64}\b")
BLOCK = re.compile(r"^```console (\w+)\n(.*?)^```$", re.S | re.M)


class Console:
    def __init__(self, opmux, library, folder):
        self.folder = pathlib.Path(folder)
        self.here = self.folder / "here"
        for name in ("bin", "lib", "here"):
            (self.folder / name).mkdir()
        (self.folder / "bin" / "opmux").symlink_to(pathlib.Path(opmux).resolve())
        soname = re.search(r"SONAME.*\[(.*)\]", subprocess.run(
            ["readelf", "-d", library], capture_output=True, text=True, check=True).stdout)[1]
        shutil.copy(pathlib.Path(library).resolve(), self.folder / "lib" / soname)

    def run(self, command):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
        clean["PATH"] = f"{self.folder}/bin:{clean['PATH']}"
        clean["LD_LIBRARY_PATH"] = f"{self.folder}/lib"
        clean["XDG_STATE_HOME"] = str(self.folder)
        run = subprocess.run(["bash", "-c", command], cwd=self.here, env=clean, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return run.stdout

    def replay(self, body):
        commands = [line for line in body.splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{self.run(line[2:])}" for line in commands)


def main(opmux, library, page, *options):
    path = pathlib.Path(page)
    text = path.read_text(encoding="utf-8")
    consoles, wrong = {}, []

    def replayed(match):
        name, body = match[1], match[2]
        if name not in consoles:
            consoles[name] = Console(opmux, library, tempfile.mkdtemp())
        found = consoles[name].replay(body)
        if HASH.sub("hash", found) != HASH.sub("hash", body):
            wrong.append(f"{name}: expected\n{body}found\n{found}")
        return f"```console {name}\n{found}```"

    try:
        updated = BLOCK.sub(replayed, text)
    finally:
        for console in consoles.values():
            shutil.rmtree(console.folder)
    if options == ("--update",):
        path.write_text(updated, encoding="utf-8")
        return 0
    print("\n".join([*wrong, f"{len(consoles)} consoles, {len(wrong)} blocks differ"]))
    return 1 if wrong or not consoles else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
