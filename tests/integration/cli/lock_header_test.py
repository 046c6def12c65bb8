#!/usr/bin/env python3
"""Compiles a program with the header from `opmux lock --emit-header`; it must start and bind plans.

usage: lock_header_test.py OPMUX INCLUDE LIBRARY CXX
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include "locked.hpp"

#include <iostream>

int main() {
  static_assert(locked::kChoices.size() == 2 && locked::kSoftmax1.op == "softmax");
  opmux::Runtime runtime = opmux::Runtime::create().value();
  if (const opmux::Status fits = locked::check(runtime); !fits.ok()) {
    std::cout << fits.reason() << "\n";
    return 1;
  }
  float x[8] = {}, y[8];
  const opmux::TensorView in(x, opmux::f32, {2, 4}), out(y, opmux::f32, {2, 4});
  opmux::Operator softmax = runtime.op("softmax").value();
  opmux::Plan plan = softmax.bind(out, in).value();
  if (!locked::check(plan, locked::kSoftmax1).ok()) return 2;
  std::cout << plan.implementation() << " " << plan(out, in).ok() << "\n";
  std::cout << locked::check(plan, locked::kRmsNorm1).to_string() << "\n";
  std::cout << (locked::lockfile().digest() == locked::kDigest) << "\n";
}
"""


def main(opmux, include, library, cxx):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    chosen = {**clean, "OPMUX_PREFER": "reference"}

    def run(*command, env, **options):
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env, **options)

    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "main.cpp").write_text(PROGRAM, encoding="utf-8")
        made = run(opmux, "lock", "softmax x=f32[2,4]", "rms_norm x=f32[2,4]", "--emit-header",
                   "locked.hpp", "--namespace", "locked", env=chosen, cwd=folder)
        assert (made.returncode, made.stdout) == (0, ""), made
        built = run(cxx, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "main.cpp",
                    f"-I{include}", str(library), "-o", "program",
                    f"-Wl,-rpath,{pathlib.Path(library).parent}", env=clean, cwd=folder)
        assert built.returncode == 0, built.stderr
        started = run(str(at / "program"), env=chosen)
        lines = started.stdout.splitlines()
        assert lines[0] == "softmax/reference.scalar 1", started
        assert lines[1].startswith(
            "failed (lock.plan): the plan runs softmax/reference.scalar, but "
            "rms_norm/reference.scalar was locked when "), started
        assert lines[2:] == ["1"], started
        refused = run(str(at / "program"), env=clean)
        assert (refused.returncode, refused.stdout) == (1, "lock.misfit\n"), refused
    print("compiled, started, refused")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
