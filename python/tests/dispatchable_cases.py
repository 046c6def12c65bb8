"""Verifiers that count their calls."""


class Counted:
    """A verifier that counts its calls."""

    def __init__(self, check):
        self.check, self.asked = check, 0

    def __call__(self, *args, **kwargs):
        self.asked += 1
        return self.check(*args, **kwargs)


def counted(scan, check):
    asked = Counted(check)
    scan.implementation("acme.fast")(lambda *a, **k: "acme").verifier(asked)
    return asked
