"""Tests of tools/surface: the list of switches, and the code that removes one."""
import pathlib
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import surface_instrument  # noqa: E402
import surface_list  # noqa: E402
import surface_python  # noqa: E402
import surface_tests  # noqa: E402


class Lists(unittest.TestCase):
    def test_have_switches_of_every_kind(self):
        listed = set(surface_list.switches())
        for kind, name in (("option", "Options.threads"), ("option", "KernelFunctions.plan"),
                           ("policy", "Rule.prefer"), ("key", "a rule.prefer"), ("key", "breaker.window"),
                           ("environment", "OPMUX_LOG"), ("abi", "opmux_impl.verify"),
                           ("abi", "OPMUX_IMPL_SERIAL"), ("c", "opmux_policy.allow_none"),
                           ("c", "OPMUX_PLAN_FOR_CAPTURE"), ("command", "check_command --strict"),
                           ("command", "lock_command --output"), ("python", "implementation.available"),
                           ("python", "Runtime.__init__.threads"), ("python", "transformers.use.only")):
            self.assertIn(surface_list.Switch(kind, name), listed)

    def test_leave_out_only_what_has_a_reason(self):
        self.assertTrue(all(surface_list.exceptions().values()))

    def test_tests_of_every_form_are_found(self):
        found = surface_tests.tests_in_sources()
        for name in ("Surface.successes_is_the_number_of_probes_that_close_a_breaker", "cli.helps", "cli.json.list",
                     "CApi.calls_an_operator_and_computes", "plugin_check.right",
                     "cli.options.verify_takes_all_operators",
                     "python/tests/test_surface.py::test_options_keep_each_keyword"):
            self.assertIn(name, found)


class Members(unittest.TestCase):
    def rewritten(self, text):
        return surface_instrument.with_members(text, {"threads": [], "sink": []}, set())

    def test_are_replaced_where_they_are_read(self):
        self.assertEqual(self.rewritten("f(options.threads);"),
                         "f(surface::read<surface::of_threads>(options).threads);")
        self.assertEqual(self.rewritten("g(core->options(1)->sink);"),
                         "g(surface::read<surface::of_sink>(*(core->options(1))).sink);")

    def test_stay_where_they_are_written(self):
        for text in ("options.threads = 2;", "options.threads++;", "// options.threads", '"options.threads"',
                     "f(std::move(options).threads);"):
            self.assertEqual(self.rewritten(text), text)


class Counter:
    """Stands for a class of the extension module."""

    def __init__(self, *, step=1):
        self.step = step

    def add(self, to, by=1, times=1):
        return to + by * times * self.step

    @staticmethod
    def parse(text, name="none"):
        return text + name


class Extension(unittest.TestCase):
    LISTED = {"python:Counter.__init__.step": ([], False), "python:Counter.add.by": (["self", "to", "by", "times"], False),
              "python:Counter.parse.name": (["text", "name"], True)}

    def without(self, switch):
        """The class with an argument removed."""
        kind = type("Counter", (Counter,), {})
        package, core = types.ModuleType("fake"), types.ModuleType("fake._core")
        core.Counter, package._core = kind, core
        code = surface_python.EXTENSION.replace("{listed}", repr(self.LISTED))
        with unittest.mock.patch.dict(sys.modules, {"fake": package, "fake._core": core}):
            exec(code, {"__package__": "fake", "__name__": "fake", "_surface_name": switch})
        return core.Counter

    def test_an_argument_gets_its_default(self):
        self.assertEqual(self.without("python:Counter.add.by")().add(1, 5, 3), 4)
        self.assertEqual(self.without("python:Counter.add.by")().add(1, by=5, times=3), 4)
        self.assertEqual(self.without("python:Counter.parse.name").parse("a", "b"), "anone")

    def test_a_constructor_ignores_an_argument_and_is_still_the_class(self):
        kind = self.without("python:Counter.__init__.step")
        made = kind(step=7)
        self.assertEqual(made.step, 1)
        self.assertIsInstance(made, kind)
        self.assertEqual(kind.parse("a"), "anone")

    def test_without_a_switch_nothing_changes(self):
        kind = self.without("")
        self.assertEqual(kind(step=7).add(1, 5, 3), 106)


if __name__ == "__main__":
    unittest.main()
