"""Measured speeds: which files are found, and whether the policy lets them count."""

import pytest

import opmux


class Asked:
    """In place of the default runtime."""

    def __init__(self):
        self.checked = False

    def check_tuning(self):
        self.checked = True

    def tuning(self):
        return []


def test_a_file_that_is_no_bundle_is_listed_with_the_reason(tmp_path):
    path = tmp_path / "absent.bundle"
    runtime = opmux.Runtime(environment=[("OPMUX_TUNING", str(path))], backends=False)
    runtime.check_tuning()
    (found,) = [each for each in runtime.tuning() if each.path == str(path)]
    assert found.found_in == "OPMUX_TUNING" and "cannot be opened" in found.problem
    assert (found.rows, found.used, found.aged, found.foreign) == (0, 0, 0, 0)
    assert (found.stale, found.damaged) == (0, 0)


def test_rows_of_all_operators_are_read_if_it_is_asked_for(monkeypatch):
    asked = Asked()
    monkeypatch.setattr("opmux._information.default_runtime", lambda: asked)
    assert opmux.tuning() == [] and not asked.checked
    assert opmux.tuning(check=True) == [] and asked.checked


def test_a_policy_says_whether_they_count():
    runtime = opmux.Runtime(environment=[], backends=False)
    runtime.set_policy(opmux.policy(tuning="off"))
    assert [s.value for s in runtime.settings() if s.key == "tuning"] == ["off"]
    runtime.set_policy(opmux.policy(tuning="bundle"))
    assert [s.value for s in runtime.settings() if s.key == "tuning"] == ["bundle"]
    assert opmux.policy().tuning is None
    with pytest.raises(ValueError, match="'off' or 'bundle'"):
        opmux.policy(tuning="online")
