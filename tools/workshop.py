"""A copy of the tree with a build folder, in which tools/mutants and tools/surface change code."""
import os
import pathlib
import shutil
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith("OPMUX_")},
               "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}


def ended(command, folder, seconds, limits=None, environment=None):
    """Runs a command; returns how it failed, or "". Kills all processes that it started."""
    child = subprocess.Popen(command, cwd=folder, env=environment or ENVIRONMENT, start_new_session=True,
                             preexec_fn=limits, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = child.wait(timeout=seconds)
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}" if code else ""
    except subprocess.TimeoutExpired:
        return f"timed out after {seconds:.0f} s"
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


class Workshop:
    """A copy of the files that git knows, in `folder`/tree, and a build without optimisation, in `folder`/build."""

    def __init__(self, folder, leave=lambda name: False):
        """`leave` tells which files the caller writes itself; they are copied only if they are missing."""
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.copy_tree(leave)

    def copy_tree(self, leave):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout.splitlines()
        present = {name for name in listed if (ROOT / name).is_file()}
        for name in present:
            data, copy = (ROOT / name).read_bytes(), self.tree / name
            if copy.exists() and leave(name):
                continue
            if not copy.exists() or copy.read_bytes() != data:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(data)
                shutil.copymode(ROOT / name, copy)
        for file in list(self.tree.rglob("*")):
            if file.is_file() and str(file.relative_to(self.tree)) not in present:
                file.unlink()

    def environment(self):
        return {**ENVIRONMENT, "CCACHE_BASEDIR": str(self.folder)}

    def configure(self, definitions=()):
        """Configures the build; returns what cmake printed if it fails, else ""."""
        done = subprocess.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=",
                               "-DCMAKE_CXX_FLAGS=-w -O0 -fpch-preprocess -D_GLIBCXX_ASSERTIONS",
                               "-DOPMUX_BACKEND_OPENBLAS=OFF", "-DOPMUX_BACKEND_ONEDNN=OFF", *definitions],
                              env=self.environment(), capture_output=True, text=True)
        return f"{done.stdout[-4000:]}{done.stderr[-4000:]}" if done.returncode else ""

    def make(self, arguments):
        """Builds with the arguments of `cmake --build`; returns the ended process with its output."""
        return subprocess.run(["cmake", "--build", self.build, *arguments], env=self.environment(),
                              capture_output=True, text=True)
