"""Plugin options: folders and required trust."""

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
