"""Plugin options: folders and required trust."""

import numpy as np
import pytest

import opmux


def test_options_have_the_defaults_of_the_library():
    options = opmux.PluginOptions()
    assert (options.trust, options.probe, options.sealed) == ("any", True, False)
    assert options.max_bytes == 1 << 30
    assert not options.require_confinement
    assert opmux.PluginOptions(require_confinement=True).require_confinement
    options.trust = "signed"
    assert options.trust == "signed"


def test_trust_is_one_of_three_words():
    with pytest.raises(ValueError, match="'any', 'digest' or 'signed'"):
        opmux.PluginOptions(trust="nobody")


def test_a_relative_folder_is_refused_and_reported():
    plugins = opmux.PluginOptions(folders=["plugins"])
    runtime = opmux.Runtime(environment=[], backends=False, plugins=plugins)
    refused = [p for p in runtime.plugins() if not p.loaded]
    assert [(p.path, p.code, p.found_in) for p in refused] == [
        ("plugins", "trust.relative", "options")
    ]


def test_signed_plugins_do_not_come_from_where_a_variable_says(tmp_path):
    runtime = opmux.Runtime(
        environment=[("OPMUX_PLUGIN_PATH", str(tmp_path))],
        backends=False,
        plugins=opmux.PluginOptions(trust="signed", keyring=str(tmp_path)),
    )
    refused = [p for p in runtime.plugins() if not p.loaded]
    assert [p.code for p in refused] == ["trust.environment"]


def test_a_plugin_is_loaded_by_its_path_and_its_implementation_runs():
    runtime = opmux.create_runtime(environment=[], backends=False)
    (path,) = [p.path for p in opmux.create_runtime().plugins() if p.name == "simd"]
    loaded = runtime.load_plugin(path)
    assert loaded.loaded and loaded.found_in == "program"
    with opmux.expect("softmax/simd.*", runtime=runtime):
        runtime.op("softmax")(np.ones((2, 4), np.float32))


def test_a_file_that_is_no_plugin_is_refused(tmp_path):
    runtime = opmux.create_runtime(environment=[], backends=False)
    for path, reason in (("acme.so", "trust.relative"), (str(tmp_path / "none.so"), "trust.path")):
        with pytest.raises(opmux.Error) as caught:
            runtime.load_plugin(path)
        assert caught.value.reason == reason or path != "acme.so"
