"""Tests of the checks on the source tree."""
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))


def load(name):
    """A tool without a .py ending, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


check_prose, check_skips = load("check_prose"), load("check_skips")
import check_layers  # noqa: E402
import check_sources  # noqa: E402
import check_symbols  # noqa: E402
import gen_walks  # noqa: E402
import tree_counts  # noqa: E402
from walks import Step  # noqa: E402


class Layers(unittest.TestCase):
    def problems(self, files):
        """The problems that check_layers finds in a tree of {path: text}."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.check_tree(root)[1]

    def test_the_command_fails_on_a_tree_with_a_forbidden_arrow(self):
        with tempfile.TemporaryDirectory() as folder:
            for layer, text in (("base", '#include "dispatch/plan.hpp"\n'), ("dispatch", "")):
                path = pathlib.Path(folder, "src", layer)
                path.mkdir(parents=True)
                (path / "plan.hpp").write_text(text)
            command = [sys.executable, str(TOOLS / "check_layers.py"), folder]
            ended = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("src/base/plan.hpp:1: base may not include dispatch", ended.stdout)

    def test_accepts_arrows_that_point_down(self):
        self.assertEqual(self.problems({
            "src/base/a.hpp": "#include <vector>\n#include <opmux/status.hpp>\n",
            "src/dispatch/b.cpp": '#include "policy/c.hpp"\n#include "base/a.hpp"\n',
            "src/policy/c.hpp": "#include <sys/mman.h>\n",
            "include/opmux/tensor.hpp": "#include <opmux/abi.h>\n",
        }), [])

    def test_refuses_siblings_including_each_other(self):
        self.assertEqual(self.problems({
            "src/policy/a.cpp": '#include "health/b.hpp"\n', "src/health/b.hpp": "",
        }), ["src/policy/a.cpp:1: policy may not include health"])

    def test_refuses_a_layer_that_includes_a_higher_public_header(self):
        self.assertEqual(self.problems({"src/registry/a.cpp": "#include <opmux/opmux.hpp>\n"}),
                         ["src/registry/a.cpp:1: registry may not include runtime"])

    def test_refuses_a_public_header_that_includes_a_private_one(self):
        self.assertEqual(self.problems({
            "include/opmux/tensor.hpp": '#include "base/a.hpp"\n', "src/base/a.hpp": "",
        }), ["include/opmux/tensor.hpp:1: include/opmux may not include src/base"])

    def test_asks_for_the_layer_of_an_unknown_public_header(self):
        found = self.problems({"include/opmux/new.hpp": ""})
        self.assertIn("include/opmux/new.hpp: unknown public header", found[0])

    def test_gives_backends_no_back_door(self):
        self.assertEqual(self.problems({
            "backends/simd/a.cpp": '#include "hwy/highway.h"\n#include <opmux/plugin.hpp>\n'
                                   '#include "common/c.hpp"\n#include "b.hpp"\n'
                                   '#include "base/d.hpp"\n#include <opmux/tensor.hpp>\n',
            "backends/simd/b.hpp": "", "backends/common/c.hpp": "#include <opmux/plugin.hpp>\n",
            "src/base/d.hpp": "",
        }), ["backends/common/c.hpp:1: backends may not include opmux/plugin.hpp",
             "backends/simd/a.cpp:5: backends/simd may not include src/base",
             "backends/simd/a.cpp:6: backends may not include opmux/tensor.hpp"])

    def test_gives_the_files_of_an_operator_the_layer_of_their_role(self):
        self.assertEqual(self.problems({
            "operators/twice/reference.cpp": "#include <opmux/plugin.hpp>\n"
                                             '#include "backends/common/c.hpp"\n'
                                             '#include "operators/common/reference/r.hpp"\n'
                                             '#include "verify/v.hpp"\n',
            "operators/twice/tolerance.cpp": '#include "verify/v.hpp"\n'
                                             '#include "operators/common/tolerance/t.hpp"\n'
                                             '#include "dispatch/d.hpp"\n',
            "operators/twice/cases.cpp": '#include "conformance/k.hpp"\n#include "verify/v.hpp"\n'
                                         '#include "operators/common/tolerance/t.hpp"\n',
            "operators/twice/helper.hpp": "", "operators/twice/test.cpp": "",
            "operators/common/reference/r.hpp": "", "operators/common/tolerance/t.hpp": "",
            "backends/common/c.hpp": "", "src/conformance/k.hpp": "", "src/dispatch/d.hpp": "",
            "src/verify/v.hpp": '#include "operators/common/tolerance/t.hpp"\n',
        }), ["src/verify/v.hpp:1: src/verify may not include operators/common/tolerance",
             "operators/twice/cases.cpp:3: cases may not include operators/common/tolerance",
             "operators/twice/helper.hpp: unknown role: give it a line in OPERATOR_ROLES of check_layers.py",
             "operators/twice/reference.cpp:4: backends/reference may not include src/verify",
             "operators/twice/tolerance.cpp:3: verify may not include dispatch"])

    def test_keeps_the_command_on_public_headers_and_shared_words(self):
        self.assertEqual(self.problems({
            "cli/main.cpp": '#include <CLI/CLI.hpp>\n#include <opmux/opmux.hpp>\n#include "x.hpp"\n'
                            '#include "base/a.hpp"\n#include "base/text.hpp"\n',
            "cli/x.hpp": "", "src/base/a.hpp": "", "src/base/text.hpp": "",
        }), ["cli/main.cpp:4: cli may not include src/base"])

    def test_keeps_third_party_libraries_out_of_the_library(self):
        self.assertEqual(self.problems({"src/runtime/a.cpp": "#include <nlohmann/json.hpp>\n"}),
                         ["src/runtime/a.cpp:1: src/runtime may not include the library nlohmann"])

    def test_refuses_a_folder_of_many_files_without_sub_folders(self):
        many = {f"src/runtime/a{i}.cpp": "" for i in range(26)}
        self.assertEqual(self.problems(many), ["src/runtime has 26 files and no sub-folder"])
        self.assertEqual(self.problems(many | {"src/runtime/calls/b.cpp": ""}), [])


class Counts(unittest.TestCase):
    def test_types_at_namespace_and_class_level_are_counted(self):
        self.assertEqual(tree_counts.types_of("""
            // struct Commented {};
            #define MACRO struct Macro {}
            namespace a { namespace {
            struct Forward;
            template <class T, typename U = std::vector<T>>
            class OPMUX_API Outer final : public Base<T> {
             public:
              enum class Inner : std::uint8_t { one, two };
              struct alignas(64) Nested { int x = 1; };
              Outer() : x_{1} { struct Local {}; }
              struct Forward make(struct Forward f) { return Forward{f}; }
              struct { int unnamed; } member_;
            };
            template <> struct Outer<int> { };
            using Alias = Outer<int>;
            union Either { int i; };
            const char* text = "struct Quoted {";
            }}
            extern "C" { typedef struct c_tag { int x; } c_tag; typedef struct { int y; } c_name; }
            """), ["Outer", "Inner", "Nested", "Either", "c_tag", "c_name"])

    def test_comments_after_code_count_and_slashes_in_strings_do_not(self):
        self.assertEqual(tree_counts.comment_share([
            "// one\n\nint x;  // two\n/* three\n   four */\nauto url = \"http://x\";\n"
            "int y;\nint z;\nint w;\n"]), 0.5)

    def test_functions_of_the_public_section_count_unless_deprecated(self):
        self.assertEqual(tree_counts.members_of("""
            class Runtime;
            /// class Runtime { public: void in_a_comment(); };
            class Runtime {
             public:
              static Result<Runtime> create(const Options& options = {});
              Runtime(Runtime&&) noexcept;
              template <class... Args>
              Status call(const Args&... args) const {
                if (sizeof...(args) == 0) { return f(); }
                return g(args...);
              }
              Part part() const { return Part(*core_); }
              [[deprecated("use part().new_name()")]] Status old_name() { return part().new_name(); }
             private:
              void hidden();
            };
            """, "Runtime"), 4)

    def table(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            command = [sys.executable, "-B", str(TOOLS / "check_layers.py"), "--count", folder]
            ended = subprocess.run(command, capture_output=True, text=True)
        rows = {}
        for line in ended.stdout.splitlines()[1:]:
            name, _, rest = line.strip().partition("  ")
            rows.setdefault(name, (rest.split() or [""])[0])
        return ended.returncode, ended.stdout, rows

    def test_the_table_counts_a_small_tree(self):
        code, out, rows = self.table({
            "src/base/a.hpp": "struct A {};\n", "src/base/a.cpp": '#include "base/a.hpp"\n' * 50,
            "src/base/b.hpp": "enum class B {};\n",
            "src/dispatch/c.cpp": '#include "base/a.hpp"\n#include "base/b.hpp"\n',
            "src/dispatch/d.cpp": '#include "base/b.hpp"\n',
            "include/opmux/x.hpp": "struct X {};  // used\n",
            "include/opmux/y.h": "typedef struct y { int n; } y;\n",
            "include/opmux/plugin/z.hpp": "struct Z {};\n",
            "include/opmux/detail/w.hpp": "struct W {};\n",
        })
        self.assertEqual(code, 0, out)
        self.assertEqual(rows["source files in src/"], "5")
        self.assertEqual(rows["median lines"], "1")
        self.assertEqual(rows["share under 40 lines"], "80")
        self.assertEqual(rows["types in src/"], "2")
        self.assertEqual(rows["public headers"], "2")
        self.assertEqual(rows["public types"], "1")
        self.assertEqual(rows["apart: structs of *.h"], "1")
        self.assertEqual(rows["apart: plugin/"], "1")
        self.assertEqual(rows["single-user headers (of 2)"], "1")  # a.hpp: a.cpp is its source
        self.assertEqual(rows["comments in public headers"], "25")
        self.assertEqual(rows["folders over 25 files, flat"], "0")

    def test_a_wide_folder_without_sub_folders_fails(self):
        wide = {f"src/base/f{number}.cpp": "" for number in range(26)}
        code, out, _ = self.table(wide)
        self.assertEqual(code, 1)
        self.assertIn("src/base has 26 files and no sub-folder", out)
        self.assertEqual(self.table(wide | {"src/base/part/a.cpp": ""})[0], 0)


class Walks(unittest.TestCase):
    FILES = {
        "src/policy/a.cpp": "void Store::put() { parts_.publish(); check(); }\n"
                            "void check() { if (other()) { return; } }\n",
        "src/runtime/b.cpp": "Core::Core() : store_({.publish = [this] { publish(); }}), n_{1} {}\n"
                             "void Core::publish() const { epoch.store(1); }  // mentions other()\n",
        "src/dispatch/c.hpp": "class Slot final {\n  void look() { return epoch.load(); }\n};\n",
    }
    PUT = Step("src/policy/a.cpp", "Store::put", "")

    def walk(self, *steps):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.FILES.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            with unittest.mock.patch.object(gen_walks, "ROOT", pathlib.Path(folder)):
                return gen_walks.Walk("", "", [self.PUT, *steps])

    def test_linked_steps_are_accepted_and_a_call_up_is_named(self):
        walk = self.walk(Step("src/policy/a.cpp", "check", ""),
                         Step("src/runtime/b.cpp", "Core::publish", "", after="Store::put",
                              via="publish", wired="src/runtime/b.cpp"),
                         Step("src/dispatch/c.hpp", "Slot::look", "", shares="epoch"))
        self.assertEqual(walk.problems, [])
        self.assertEqual([step.function for _, _, step in walk.up], ["Core::publish"])
        self.assertEqual(len(walk.files()), 3)

    def test_a_function_that_is_only_called_is_not_defined(self):
        self.assertEqual(self.walk(Step("src/policy/a.cpp", "other", "")).problems,
                         ["src/policy/a.cpp does not define other"])

    def test_steps_without_a_link_are_named(self):
        self.assertEqual(self.walk(Step("src/dispatch/c.hpp", "Slot::look", "")).problems,
                         ["Store::put in src/policy/a.cpp is not linked to Slot::look in "
                          "src/dispatch/c.hpp"])


class Contributing(unittest.TestCase):
    PAGE = (TOOLS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")

    def test_the_tree_has_every_folder(self):
        tree = re.search(r"^## The tree\n+```\n(.*?)^```", self.PAGE, re.S | re.M)[1]
        listed, path = set(), []
        for line in tree.splitlines():
            name = line.split()[0].rstrip("/")
            path = [*path[:(len(line) - len(line.lstrip())) // 2], name]
            listed.add("/".join(path))
        root, src = TOOLS.parent, TOOLS.parent / "src"
        folders = [folder for folder in root.iterdir() if folder.is_dir()
                   and not folder.name.startswith((".", "_")) and folder.name != "build"]
        folders += [folder for folder in src.rglob("*") if folder.is_dir()]
        names = {str(folder.relative_to(root)) for folder in folders} - {"include"}
        self.assertEqual(names - listed, set())
        self.assertEqual({name for name in listed if not (root / name).is_dir()}, set())

    def test_the_recipes_name_files_that_exist(self):
        recipes = self.PAGE.partition("## Recipes")[2].partition("## Code style")[0]
        paths = {path for path in re.findall(r"`([\w./]+/[\w./]*)(?: --\w+)?`", recipes)
                 if "NAME" not in path}
        self.assertGreater(len(paths), 40)
        self.assertEqual({path for path in paths if not (TOOLS.parent / path).exists()
                          and not (TOOLS.parent / "include" / path).exists()}, set())


class Symbols(unittest.TestCase):
    def test_exports_of_others_are_named(self):
        names = ["opmux_version", "opmux::name_of(opmux::Code)", "vtable for opmux::Error",
                 "typeinfo name for opmux::Error", "std::vector<opmux::Code>::~vector()", "helper"]
        self.assertEqual(check_symbols.foreign_exports(names), names[4:])

    def test_imports_that_print_or_end_the_process_are_named(self):
        names = ["abort@GLIBC_2.2.5", "_ZSt4cout", "__printf_chk", "puts", "exit", "__assert_fail"]
        allowed = ["snprintf", "malloc", "__cxa_atexit"]
        self.assertEqual(check_symbols.forbidden_imports(names + allowed), names)

    def test_libraries_beyond_the_run_time_are_named(self):
        names = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libyaml-0.so.2"]
        self.assertEqual(check_symbols.foreign_libraries(names), names[4:])


class Sources(unittest.TestCase):
    def test_long_wide_and_non_ascii_files_are_named(self):
        self.assertEqual(check_sources.problems_of("a.cpp", b"x\n" * 601, ".cpp"),
                         ["a.cpp: 601 lines, 600 allowed"])
        self.assertEqual(check_sources.problems_of("a.cpp", b"\n" + b"x" * 101, ".cpp"),
                         ["a.cpp:2: 101 columns, 100 allowed"])
        self.assertEqual(check_sources.problems_of("a.cpp", b"\n\xc3\xa9", ".cpp"),
                         ["a.cpp:2: non-ASCII character"])


class Prose(unittest.TestCase):
    def hits(self, text):
        refused, allowed = check_prose.load_words()
        return [word for word, _ in
                check_prose.find_hits(check_prose.Sentence("a", 1, text), refused, allowed)]

    def test_refused_words_are_named(self):
        self.assertEqual(self.hits("Whoever asks decides anew."), ["Whoever", "anew"])
        self.assertEqual(self.hits("What a plan is kept for."), ["What"])
        self.assertEqual(self.hits("The reference is no kernel."), ["is no "])

    def test_proper_uses_pass(self):
        self.assertEqual(self.hits("What does a call cost?"), [])
        self.assertEqual(self.hits("People who write kernels read `who` and there is no limit."), [])

    def blocks(self, text, name="src/a.cpp"):
        return [block for _, block in check_prose.c_blocks(name, text)]

    def test_comments_and_messages_are_read_apart(self):
        self.assertEqual(self.blocks("int a;  ///< One.\nint b;  ///< Two.\n// Three\n// four.\n"),
                         ["One.", "Two.", "Three\nfour."])
        self.assertEqual(self.blocks('f("there is " "a text", "id");'), ["there is a text"])

    def test_commit_subjects_have_an_area(self):
        self.assertTrue(check_prose.SUBJECT.match("policy: refuse a second rule of one name"))
        self.assertFalse(check_prose.SUBJECT.match("Fix the policy."))


class Skips(unittest.TestCase):
    def test_only_a_missing_instruction_set_is_a_reason(self):
        lacking, problems = check_skips.judge(
            [("a", "processor lacks amx_bf16"), ("b", "no engine"), ("c", "processor lacks avx2")],
            {"avx2"})
        self.assertEqual(lacking["amx_bf16"], ["a"])
        self.assertEqual([problem.split(":")[0] for problem in problems], ["b", "c"])

    def test_skipped_tests_are_read_from_both_runners(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.xml")
            report.write_text('<testsuite><testcase name="a" status="run"/>'
                              '<testcase name="b" status="notrun"><skipped message="x"/>'
                              '<system-out>processor lacks amx_bf16</system-out></testcase>'
                              '<testcase name="c"><skipped message="no engine"/></testcase></testsuite>')
            self.assertEqual([name for name, _ in check_skips.skipped_tests(report)], ["b", "c"])


if __name__ == "__main__":
    unittest.main()
