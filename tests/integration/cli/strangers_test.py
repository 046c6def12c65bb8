#!/usr/bin/env python3
"""Files that other users could prepare: pipes do not hang a command, escape sequences are shown as
text, and status files that others could have written are not read.

usage: strangers_test.py OPMUX
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

(OPMUX,) = sys.argv[1:]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
HERE = pathlib.Path(__file__).parent
ESCAPE = b"\x1b[31m"


def run(*words, folder="/nonexistent"):
    """The exit code and the output. A command that waits for a pipe fails by its time limit."""
    ran = subprocess.run([OPMUX, *words], capture_output=True, timeout=60,
                         env=CLEAN | {"OPMUX_STATE_DIR": str(folder)})
    return ran.returncode, ran.stdout + ran.stderr


def pipes(folder):
    pipe = str(folder / "pipe.yaml")
    os.mkfifo(pipe)
    lockfile = str(next((HERE / "locks").iterdir()))
    for words in (["check", pipe], ["diff", pipe, lockfile], ["diff", lockfile, pipe],
                  ["explain", "softmax", "x=f32[2,3]", "--policy", pipe], ["replay", pipe],
                  ["list", "--page", pipe], ["lock", "--calls", pipe], ["health", pipe],
                  ["check", str(HERE / "policies" / "small.yaml"), "--machine", pipe]):
        code, text = run(*words)
        assert code != 0, f"{words}: {text}"
    code, text = run("check", "/dev/zero")
    assert code != 0, text


def substituted_pipe():
    """A pipe with a writer is read, as in `opmux check <(generate)`."""
    reader, writer = os.pipe()
    os.write(writer, b"opmux: 1\nrules:\n  - {op: softmax, prefer: [reference]}\n")
    os.close(writer)
    ran = subprocess.run([OPMUX, "check", f"/dev/fd/{reader}"], capture_output=True, timeout=60,
                         env=CLEAN, pass_fds=[reader])
    assert ran.returncode == 0, ran


def escapes(folder):
    named = folder / os.fsdecode(b"a" + ESCAPE + b".yaml")
    named.write_text("opmux: 1\nrules:\n  - {op: nothing_like_it}\n", encoding="utf-8")
    code, text = run("check", str(named))
    assert code == 1 and b"a\\x1b[31m.yaml" in text and b"\x1b" not in text, text
    code, text = run("check", str(folder / os.fsdecode(b"absent" + ESCAPE)))
    assert code != 0 and b"absent\\x1b[31m" in text and b"\x1b" not in text, text


def pages(folder):
    run_folder = folder / "run"
    run_folder.mkdir(mode=0o700)
    os.mkfifo(run_folder / "state-1-1-1-1")
    shutil.copy(HERE / "pages" / "worker.page", run_folder / "state-2-2-2-2")
    for words in (["list", "--pid"], ["list", "--pid", "1"]):
        _, text = run(*words, folder=folder)
        assert b"worker" not in text, text
    os.chmod(run_folder, 0o777)
    code, text = run("list", "--pid", folder=folder)
    assert code == 0 and text.startswith(b"no process writes a status file in "), text


for test in (pipes, escapes, pages):
    with tempfile.TemporaryDirectory() as made:
        test(pathlib.Path(made))
substituted_pipe()
