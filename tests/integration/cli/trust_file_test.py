#!/usr/bin/env python3
"""The trust file of the machine, /etc/opmux/trust.conf, in a copy of /etc that is mounted over it in a
separate mount namespace.

usage: trust_file_test.py OPMUX
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
OPMUX = sys.argv[1]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}


def in_own_namespace():
    """Starts this test again in a mount namespace in which it is root; returns its exit code."""
    # Root in a container may lack the right to mount, but have it in a user namespace. In a user namespace of
    # another user the folders of root belong to no known user.
    if os.geteuid() != 0:
        print("only root can have a trust file")
        return SKIPPED
    for alone in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        if subprocess.run([*alone, "true"], capture_output=True).returncode == 0:
            inside = [*alone, sys.executable, "-B", __file__, OPMUX, "inside"]
            return subprocess.run(inside, timeout=120).returncode
    print("the system refuses a mount namespace")
    return SKIPPED


def show(*words, **variables):
    """The exit code and the output of `opmux config show`."""
    ran = subprocess.run([OPMUX, "config", "show", *words], capture_output=True, text=True, timeout=60,
                         env=CLEAN | variables)
    return ran.returncode, ran.stdout + ran.stderr


def expect(shown, code, *texts):
    found, output = shown
    assert found == code, (found, output)
    for text in texts:
        assert text in output, (text, output)


def rules_apply(folder):
    trust = pathlib.Path("/etc/opmux/trust.conf")
    policy = folder / "policy.yaml"
    policy.write_text("opmux: 1\ndefaults: {prefer: [vendor]}\n", encoding="utf-8")
    policy.chmod(0o666)
    writable = {"OPMUX_CONFIG": str(policy), "OPMUX_STATE_DIR": str(folder / "state"), "OPMUX_LOG": "warning"}

    expect(show(**writable), 0, "policy.writable_by_others")
    expect(show("--policy-trust", "refuse", **writable), 2, "revoke that with chmod go-w")
    assert show("--policy-trust", "sometimes")[0] == 2

    trust.parent.mkdir(mode=0o755, exist_ok=True)
    trust.write_text("policy_trust = refuse\n", encoding="utf-8")
    trust.chmod(0o644)
    expect(show(**writable), 2, "can be written or replaced by users other than this one and root")
    expect(show("--policy-trust", "warn", **writable), 2)
    # No variable names another trust file; an unknown one is an error.
    expect(show(OPMUX_TRUST_FILE="/dev/null", **writable), 2, "OPMUX_TRUST_FILE")
    policy.chmod(0o644)
    folder.chmod(0o755)
    expect(show(**writable), 0, "trust_file.policy_trust", "refuse", "/etc/opmux/trust.conf")

    trust.write_text("policy_trust = warn\n", encoding="utf-8")
    trust.chmod(0o666)
    expect(show(**writable), 0, "trust.file", "strictest rules", "trust_file.require_confinement")
    policy.chmod(0o666)
    expect(show(**writable), 2, "can be written or replaced")


def main():
    if sys.argv[2:] != ["inside"]:
        return in_own_namespace()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        # Programs need these to start: the linker's files, users, and the configuration of OpenCL.
        copy = folder / "etc"
        copy.mkdir()
        for name in ("ld.so.cache", "ld.so.conf", "passwd", "group", "nsswitch.conf", "alternatives", "OpenCL"):
            path = pathlib.Path("/etc") / name
            if path.is_dir():
                shutil.copytree(path, copy / name, symlinks=True)
            elif path.exists():
                shutil.copy(path, copy / name)
        copy.chmod(0o755)
        subprocess.run(["mount", "--bind", copy, "/etc"], check=True, timeout=60)
        try:
            work = folder / "work"
            work.mkdir()
            rules_apply(work)
        finally:
            subprocess.run(["umount", "/etc"], check=True, timeout=60)
    return 0


sys.exit(main())
