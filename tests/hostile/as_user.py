"""Runs a program as an ordinary user: as_user.py PROGRAM ARGUMENT...

Root gives up its rights first. Exit status 77 if that is impossible or if the user cannot start the
program, because a folder above it is private.
"""

import os
import sys

NOBODY = 65534


def main() -> int:
    program = sys.argv[1]
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if not os.access(program, os.R_OK | os.X_OK):
        print(f"user {os.geteuid()} cannot start {program}")
        return 77
    os.chdir("/")
    # The change of the user made this process undumpable; a program that it executes is dumpable.
    os.execv(program, sys.argv[1:])


sys.exit(main())
