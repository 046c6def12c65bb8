"""Builds the instrumented copy of the tree of tools/surface, and runs tests in it with a switch removed."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import threading

import surface_instrument
import surface_list
import workshop

ROOT = pathlib.Path(__file__).resolve().parents[1]
SKIPPED = "exit code 77"
SECONDS = 120
LIKELY = 8  # candidates that are tried before the others
# The programs whose tests reach the switches. Kernels, models and tests that draw inputs take long and notice little.
TARGETS = """opmux backends/all opmux_command opmux_probe opmux_python
             unit_base unit_schema unit_registry unit_policy unit_health unit_crash unit_dispatch unit_shadow unit_replay
             unit_status unit_runtime unit_conformance hostile_test truth events reload filesystem conformance_suite device
             tests/unit/plugin/all tests/unit/c_api/all tests/abi/skew/all tests/crash/all
             tests/replay/all tests/integration/cli/all tests/integration/check/all""".split()
DEFINITIONS = ("-DOPMUX_PYTHON=ON", "-DOPMUX_WARNINGS=OFF", "-DOPMUX_HARDENING=OFF",
               "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12")


class Bench:
    """The instrumented copy. Its functions may be called from several threads."""

    def __init__(self, jobs):
        self.shop = workshop.Workshop(ROOT / "build/surface", leave=surface_instrument.rewritten)
        self.tree, self.build, self.jobs = self.shop.tree, self.shop.build, jobs
        self.instrumented = surface_instrument.Instrumented(ROOT, self.tree, surface_list.switches())
        self.programs, self.unchanged, self.lock = {}, {}, threading.Lock()

    def make(self):
        """Builds; leaves lines alone that do not compile when they are rewritten. Returns an error, or ""."""
        self.instrumented.write()
        self.instrumented.write_python()
        if not (self.build / "CMakeCache.txt").exists():
            definitions = [*DEFINITIONS, f"-DPython_EXECUTABLE={sys.executable}", f"-DPython3_EXECUTABLE={sys.executable}"]
            if (ROOT / "build/libyaml").exists():
                definitions.append(f"-DOPMUX_YAML_ROOT={ROOT}/build/libyaml")
            error = self.shop.configure(definitions)
            if error:
                return error
        for _ in range(12):
            done = self.shop.make(["-j", str(self.jobs), "--target", *TARGETS, "--", "-k", "0"])
            if done.returncode == 0:
                return ""
            if not self.leave_out(done.stdout):
                return done.stdout[-6000:] + done.stderr[-2000:]
            self.instrumented.write()
        return "too many lines do not compile"

    def leave_out(self, output):
        found = 0
        for path, line in re.findall(rf"^{re.escape(str(self.tree))}/(\S+?):(\d+):\d+: error:", output, re.M):
            if self.instrumented.leave_out(path, int(line)):
                print(f"not rewritten, because it does not compile: {path}:{line}", flush=True)
                found += 1
        return found

    def load_tests(self):
        shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.build, capture_output=True, text=True,
                               check=True).stdout
        self.programs = {test["name"]: test for test in json.loads(shown)["tests"] if "command" in test}

    def environment(self, switch):
        # The defaults that removed readers get are in static thread-local storage, of which Python reserves little.
        environment = dict(self.shop.environment()) | {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=65536"}
        if switch is not None:
            environment["SURFACE_MUTANT"] = f"{switch.kind}:{switch.name}"
        return environment

    def failure(self, test, switch=None):
        """How a test fails with a switch removed, or "" if it passes."""
        if "::" in test:
            return "failed" if test in self.failing_python([test], switch) else ""
        if test not in self.programs:
            return "not built"
        entry, environment = self.programs[test], self.environment(switch)
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        for pair in properties.get("ENVIRONMENT", []):
            name, _, value = pair.partition("=")
            environment[name] = value
        folder = properties.get("WORKING_DIRECTORY", str(self.build))
        how = workshop.ended(entry["command"], folder, SECONDS, environment=environment)
        return "" if how == SKIPPED and switch is not None else how

    def failing_python(self, tests, switch):
        """The tests among those of pytest that fail; all of them if pytest itself does not end as it should."""
        environment = self.environment(switch) | {"PYTHONPATH": f"{self.build}/python"}
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(command, cwd=self.tree, env=environment, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return set(tests)
        if done.returncode == 0:
            return set()
        named = re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout, re.M)
        return set(named) & set(tests) if done.returncode == 1 and named else set(tests)

    def passes_unchanged(self, test):
        with self.lock:
            known = self.unchanged.get(test)
        if known is None:
            known = not self.failure(test)
            with self.lock:
                self.unchanged[test] = known
        return known

    def noticed_in_program(self, tests, switch):
        """The tests among those of one GoogleTest program that fail, or that ended it, with a switch removed."""
        command = [self.programs[tests[0]]["command"][0], f"--gtest_filter={':'.join(tests)}"]
        try:
            done = subprocess.run(command, cwd=self.build, env=self.environment(switch), capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=SECONDS, errors="replace")
            printed = done.stdout
        except subprocess.TimeoutExpired as slow:
            printed = (slow.stdout or b"").decode(errors="replace")
        started = re.findall(r"^\[ RUN      \] (\S+)", printed, re.M)
        passed = set(re.findall(r"^\[       OK \] (\S+)|^\[  SKIPPED \] (\S+)", printed, re.M))
        passed = {name for pair in passed for name in pair}
        return [name for name in started if name not in passed]

    def suspects(self, switch, programs, python):
        """Tests that seem to fail with the switch removed, in the order in which it is cheap to find them."""
        together, alone = collections.defaultdict(list), []
        for test in programs:
            command = self.programs.get(test, {}).get("command", [])
            if any(word.startswith("--gtest_filter") for word in command):
                together[command[0]].append(test)
            elif command:
                alone.append(test)
        for tests in together.values():
            yield from self.noticed_in_program(tests, switch)
        yield from alone
        if python:
            failing = self.failing_python(python, switch)
            yield from (test for test in python if test in failing)

    def first_to_notice(self, switch, programs, python):
        """The first test that fails with the switch removed and passes without, or "". The likeliest are tried first."""
        for few, some in ((programs[:LIKELY], python[:LIKELY]), (programs[LIKELY:], python[LIKELY:])):
            for test in self.suspects(switch, few, some):
                if self.failure(test, switch) and self.passes_unchanged(test):
                    return test
        return ""
