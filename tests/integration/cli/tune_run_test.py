#!/usr/bin/env python3
"""Measuring on this machine: the rows that `opmux tune run` writes, and those that are left when it is stopped.

usage: tune_run_test.py OPMUX PLUGIN SERVER CASE

PLUGIN has the backend `quick`, whose matmul is much faster than the reference in every build. SERVER is a process
that calls matmul with 4 to 8 rows, and softmax.
"""
import errno
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

OPMUX, PLUGIN, SERVER = sys.argv[1:4]
REPLAYS = pathlib.Path(__file__).resolve().parent / "replays"
LISTED = subprocess.run([OPMUX, "list", "matmul"], capture_output=True, text=True, check=True).stdout
OTHERS_OFF = {f"OPMUX_BACKEND_{name.upper()}": "0" for name in ("simd", "onednn", "openblas")
              if f"matmul/{name}." in LISTED}
SMALL = ["--op", "matmul", "--dtype", "f32", "--dim", "M=48,N=64", "--dim", "K=64"]
OTHER = ["--op", "matmul", "--dtype", "f32", "--dim", "M=32,N=48,K=80"]
CELL = "matmul f32,f32,f32 K=64 M=48 N=64 threads=1 eager"


def environment(folder):
    """The reference is first by score, and the plugin alone is faster: of two fast ones, either may win."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    return clean | OTHERS_OFF | {"OPMUX_STATE_DIR": str(folder / "state"), "OPMUX_PREFER": "reference",
                                 "OPMUX_PLUGIN_PATH": str(folder / "plugins")}


def opmux(folder, *words, code=0, either=None):
    ran = subprocess.run([OPMUX, *map(str, words)], capture_output=True, text=True, timeout=300, check=False,
                         cwd=folder, env=environment(folder))
    assert ran.returncode in (code, either), (words, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout + ran.stderr


def run(folder, *words, threads=1, budget=60, code=0, either=None):
    return opmux(folder, "tune", "run", *words, "--threads", threads, "--budget", budget, code=code, either=either)


def start(folder, *words, budget=60):
    command = [OPMUX, "tune", "run", *words, "--threads", "1", "--budget", str(budget)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                            env=environment(folder))


def rows_of(folder, bundle):
    """The rows of a bundle as text, without spaces at the start."""
    text = opmux(folder, "tune", "export", bundle)
    return [line for line in text.splitlines() if line.startswith("row ")]


def the_faster_implementation_has_a_row_with_its_verdict(folder):
    said = run(folder, *SMALL)
    bundle = folder / "state/store/tuning/local.bundle"
    assert re.search(r"^  \* +reference\.\w+ -> quick\.loop  [\d.]+x .* faster than reference\.\w+; "
                     r"\d+ rounds, confirmed$", said, re.M), said
    assert f"wrote {bundle}: " in said and "\x1b" not in said and "[#" not in said, said
    rows = [row for row in rows_of(folder, bundle) if " quick.loop@" in row.split(" vs ")[0]]
    assert len(rows) == 1, rows
    assert re.search(r" vs reference\.\w+@[0-9a-f]+ log=-\d.* rigor=confirmed .* faster than reference", rows[0]), rows
    assert re.search(r"quick\.loop@[0-9a-f]{8,} ", rows[0]), "the build of the library: " + rows[0]
    shown = opmux(folder, "tune", "show", bundle)
    assert CELL in shown and "  this machine; " in shown, shown
    assert re.search(r": (\d+) rows?, .*; \1 rows hold here, 0 are aged", opmux(folder, "tune", "verify", bundle))


def a_dimension_varies_and_the_ranges_cover_it(folder):
    bundle = folder / "over.bundle"
    said = run(folder, "--op", "matmul", "--dtype", "f32", "--dim", "N=64,K=64", "--over", "M=16..40",
               "--op", "softmax", "--dtype", "f32", "--dim", "rows=4,H=64", "--output", bundle)
    assert "matmul f32,f32,f32 K=64 N=64 threads=1 eager\n" in said, said
    assert "softmax f32,f32 H=64 rows=4 threads=1 eager\n" in said, "the second --dim is of the second --op: " + said
    ranges = [tuple(map(int, found)) for found in re.findall(r"^  M=(\d+)\.\.(\d+) ", said, re.M)]
    ranges += [(int(one), int(one)) for one in re.findall(r"^  M=(\d+) ", said, re.M)]
    ranges.sort()
    assert ranges[0][0] == 16 and ranges[-1][1] == 40, ranges
    assert all(low[1] + 1 == high[0] for low, high in zip(ranges, ranges[1:])), ranges
    assert any(" M=" in row and "quick.loop@" in row for row in rows_of(folder, bundle))


def cells_have_the_types_tensors_and_threads_of_the_options(folder):
    # Where only the reference is available there are no rows, which is exit code 1.
    said = run(folder, "--op", "rms_norm", "--dim", "rows=2,H=64", "--dtype", "f32", "--with", "weight",
               "--op", "embedding", "--dim", "rows=2,H=64,V=8", "--dtype", "bf16", "--dtype", "ids=i32",
               threads=3, either=1)
    assert "rms_norm f32,f32,f32 H=64 rows=2 threads=3 eager\n" in said, said
    assert "embedding bf16,bf16,i32 H=64 V=8 rows=2 threads=3 eager\n" in said, said
    assert "left out" not in said, said


def recorded_calls_are_cells(folder):
    said = run(folder, "--calls", REPLAYS / "redacted.opmux-replay", either=1)
    assert re.search(r"^rms_norm f32,f32 H=4 rows=3 threads=1 eager$", said, re.M), said
    assert "left out" not in said, said


def a_resumed_run_measures_nothing_again(folder):
    first = run(folder, *SMALL)
    assert "1 races, 0 points from the workbench" in first, first
    assert "1 races, 0 points" in run(folder, *SMALL)
    resumed = run(folder, *SMALL, "--resume")
    assert "0 races, 1 points from the workbench" in resumed, resumed
    assert "quick.loop" in resumed, resumed


def rows_that_were_there_stay(folder):
    bundle = folder / "both.bundle"
    run(folder, *SMALL, "--output", bundle)
    one = len(rows_of(folder, bundle))
    said = run(folder, *OTHER, "--output", bundle)
    assert len(rows_of(folder, bundle)) > one, said
    shown = opmux(folder, "tune", "show", bundle)
    assert CELL in shown and "K=80 M=32 N=48" in shown, shown


def a_spent_budget_leaves_the_rest_for_a_resumed_run(folder):
    words = []
    for size in range(16, 144, 16):
        words += ["--op", "matmul", "--dtype", "f32", "--dim", f"N={size},K={size}", "--over", "M=1..4096"]
    said = run(folder, *words, budget=1, either=1)
    assert "not finished; --resume continues" in said, said


def a_second_tuner_waits_or_says_so(folder):
    run(folder, *SMALL)
    with open(folder / "state/store/tuning/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = run(folder, *SMALL, budget=1, code=2)
        assert "another tuner measures on this machine; waiting for it" in said and "cannot lock" in said, said
        waiting = start(folder, *SMALL, "--resume")
        assert "waiting for it" in waiting.stderr.readline()
        assert waiting.poll() is None
    out, err = waiting.communicate(timeout=300)
    assert waiting.returncode == 0 and "0 races" in out, (out, err)


def wait_for_the_first_cell(running):
    line = running.stdout.readline()
    assert line.startswith(CELL), line


def an_interrupted_run_keeps_what_is_finished(folder):
    bundle = folder / "state/store/tuning/local.bundle"
    running = start(folder, *SMALL, "--op", "matmul", "--dtype", "f32", "--dim", "N=512,K=512", "--over", "M=1..4096",
                    budget=1000)
    wait_for_the_first_cell(running)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0 and "stopped; --resume continues" in out, (out, err)
    assert any("quick.loop@" in row for row in rows_of(folder, bundle))
    assert "0 races" in run(folder, *SMALL, "--resume")


def a_killed_run_loses_nothing_that_was_committed(folder):
    run(folder, *OTHER)
    bundle = folder / "state/store/tuning/local.bundle"
    before = bundle.read_bytes()
    running = start(folder, *SMALL, "--op", "matmul", "--dtype", "f32", "--dim", "N=512,K=512", "--over", "M=1..4096",
                    budget=1000)
    wait_for_the_first_cell(running)
    running.kill()
    running.communicate(timeout=300)
    assert bundle.read_bytes() == before
    assert "0 races, 1 points from the workbench" in run(folder, *SMALL, "--resume")
    assert "0 races, 1 points from the workbench" in run(folder, *OTHER, "--resume")


def a_full_disk_leaves_workbench_and_bundle_as_they_were(folder):
    run(folder, *SMALL)
    bundle = folder / "state/store/tuning/local.bundle"
    before = bundle.read_bytes()
    for words in (SMALL, OTHER):
        command = " ".join([OPMUX, "tune", "run", *words, "--threads", "1", "--budget", "60"])
        ran = subprocess.run(["bash", "-c", f"ulimit -f 0; exec {command}"], capture_output=True, text=True,
                             timeout=300, check=False, env=environment(folder))
        assert ran.returncode == 2 and "workbench.sqlite" in ran.stderr, ran
    assert bundle.read_bytes() == before
    # A bundle that cannot be written, although the workbench can be.
    said = run(folder, *SMALL, "--output", folder / "absent/x.bundle", code=2)
    assert "cannot write" in said, said
    assert "0 races, 1 points from the workbench" in run(folder, *SMALL, "--resume")


def aged_rows_are_measured_again(folder):
    assert "no rows are aged" in run(folder, "--aged")
    bundle, text = folder / "state/store/tuning/local.bundle", folder / "rows.txt"
    run(folder, *SMALL, "--op", "matmul", "--dtype", "f32", "--dim", "N=64,K=64", "--over", "M=16..24")
    before = len(rows_of(folder, bundle))
    text.write_text(re.sub(r"kernel=\S+", "kernel=0.1", opmux(folder, "tune", "export", bundle)))
    opmux(folder, "tune", "merge", text, "--output", bundle)
    assert f"{before} used ({before} aged)" in opmux(folder, "tune", "status")
    said = run(folder, "--aged", threads=2, either=1)
    assert re.search(r"left out: \d+ cells not with 2 threads", said) and "no other rows are aged" in said, said
    said = run(folder, "--aged")
    assert CELL in said and "matmul f32,f32,f32 K=64 N=64 threads=1 eager\n" in said, said
    assert re.search(r"^  M=16\.\.24 +reference\.\w+ -> quick\.loop ", said, re.M), said
    assert "aged" not in opmux(folder, "tune", "status")
    assert "no rows are aged" in run(folder, "--aged")


def a_damaged_bundle_is_not_replaced(folder):
    bundle = folder / "damaged.bundle"
    bundle.write_bytes(b"OPMUXTUN and nothing more")
    said = run(folder, *SMALL, "--output", bundle, code=2)
    assert "damaged.bundle" in said and "races" not in said, said
    assert bundle.read_bytes() == b"OPMUXTUN and nothing more"


def a_terminal_shows_the_progress_in_one_line(folder):
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(environment(folder))
        os.execv(OPMUX, [OPMUX, "tune", "run", *SMALL, "--threads", "1", "--budget", "60"])
    shown = b""
    while select.select([terminal], [], [], 120)[0]:
        try:
            read = os.read(terminal, 4096)
        except OSError as error:
            assert error.errno == errno.EIO
            break
        if not read:
            break
        shown += read
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    text = shown.decode()
    assert re.search(r"\r\x1b\[K\[-+\] 0/1 cells, [01]:\d\d left: matmul f32", text), text
    report = text.rsplit("\x1b[K", 1)[1]
    assert "quick.loop" in report and "\x1b" not in report, text
    assert "from the workbench" not in text, text


def cells_of_a_process_are_measured(folder):
    served = subprocess.Popen([SERVER], stdout=subprocess.PIPE, text=True,
                              env=environment(folder) | {"OPMUX_STATE_PAGE": "1"})
    try:
        assert served.stdout.readline() == "ready\n"
        sizes = set()
        end = time.monotonic() + 120
        while not {f"K=64 M={rows} N=64 rows=1" for rows in range(4, 9)} <= sizes:
            assert time.monotonic() < end, sizes
            shown = subprocess.run([OPMUX, "list", "--pid", str(served.pid), "--json"], capture_output=True, text=True,
                                   check=False, env=environment(folder))
            if shown.returncode != 0:
                continue  # no status file yet
            runtime = json.loads(shown.stdout)["runtimes"][0]
            cells = [cell for cell in runtime["cells"] if cell["op"] == "matmul"]
            sizes = {cell["dims"] for cell in cells}
            assert {cell["tensors"] for cell in cells} <= {"y=f32 a=f32 b=f32"}, cells
            assert {cell["threads"] for cell in cells} <= {1}, cells
        page = shutil.copy(next((folder / "state/run").glob(f"state-{served.pid}*")), folder / "page")
        said = opmux(folder, "tune", "run", "--from-pid", served.pid, "--budget", 20)
    finally:
        served.kill()
        served.wait()
    for text in (said, opmux(folder, "tune", "run", "--page", page, "--resume", "--budget", 20)):
        assert "matmul f32,f32,f32 K=64 N=64 rows=1 threads=1 eager\n" in text, text
        assert re.search(r"^  M=4\.\.8 +reference\.\w+ -> quick\.loop ", text, re.M), text
    assert "left a status file" in opmux(folder, "tune", "run", "--from-pid", served.pid, code=2)


def kernels_of_an_engine_are_measured(folder):
    python = folder / "python"
    python.write_text("""#!/bin/sh
echo candidate matmul engine.own v1
echo ready
while read line; do
  echo "$line" >> "$0.asked"
  set -- $line
  echo "baseline $4@"
  echo winner engine.own
  echo rigor full
  echo day 20776
  echo compared engine.own@v1 -0.5 -0.6 -0.4 20
  echo end
done
""")
    python.chmod(0o755)
    options = ("tune", "run", "--op", "matmul", "--dtype", "f32", "--dim", "N=64,K=64,M=4", "--threads", "1",
               "--python")
    said = opmux(folder, *options, python)
    assert re.search(r"engine.own, which opmux does not run, is 1.65x \[1.49, 1.82\] faster than quick.loop", said), said
    asked = (folder / "python.asked").read_text()
    assert re.search(r"^race matmul engine.own quick.loop threads=1 seconds=3.\d+ cold=\d+ x=f32 N=64 K=64 M=4$", asked,
                     re.M), asked
    assert "engine.own" in opmux(folder, "tune", "show", folder / "state/store/tuning/local.bundle")
    assert "cannot start" in opmux(folder, *options, folder / "absent", code=2)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        (folder / "plugins").mkdir(mode=0o755)
        shutil.copy(PLUGIN, folder / "plugins")
        globals()[sys.argv[4]](folder)
    return 0


sys.exit(main())
