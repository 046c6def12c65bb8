"""OPMUX_LOG under Python: events go to standard error besides the logger."""

import logging

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth


@pytest.mark.parametrize(("level", "lines"), [("info", 1), ("warning", 0)])
def test_prints_from_the_level_that_settings_show(capfd, caplog, level, lines):
    caplog.set_level(logging.DEBUG, "opmux")
    runtime = opmux.create_runtime(environment=[("OPMUX_LOG", level)])
    assert any(s.key == "log" and s.value == level for s in runtime.settings())
    capfd.readouterr()
    runtime.op("softmax")(np.zeros((2, 4), "f4"))
    printed = [t for t in capfd.readouterr().err.splitlines() if t.startswith("opmux info ")]
    assert len([t for t in printed if "dispatch.chosen softmax/" in t]) == lines
    assert any(r.opmux_code == "dispatch.chosen" for r in caplog.records)


def test_prints_nothing_without_the_variable(capfd):
    runtime = opmux.create_runtime(environment=[])
    runtime.op("softmax")(np.zeros((2, 4), "f4"))
    assert "opmux info" not in capfd.readouterr().err
