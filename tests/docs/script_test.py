"""Tests of the scripts that check the documentation: each finds what is planted for it."""
from __future__ import annotations

import contextlib
import pathlib
import stat
import sys
import tempfile
import unittest

import check_links
import check_messages
import check_tour
import markdown

sys.path.insert(0, str(markdown.ROOT / "docs"))
import make_api_reference as api


class Links(unittest.TestCase):
    def problems(self, pages: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name).resolve()
            for path, text in pages.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            return check_links.problems_of(root)

    def test_accepts_what_exists(self) -> None:
        page = "# A `b` (c)\n\n[a](docs/b.md#two-2nd) ![p](p.svg) [x](#a-b-c) [y](https://example.com/none)\n"
        self.assertEqual(self.problems({"a.md": page, "docs/b.md": "## Two: 2nd\n[a](../a.md)\n", "p.svg": ""}), [])

    def test_finds_a_missing_file(self) -> None:
        self.assertEqual(self.problems({"a.md": "\n[`b`](b.md)\n"}), ["a.md:2: b.md: does not exist"])

    def test_finds_a_missing_anchor(self) -> None:
        self.assertEqual(self.problems({"a.md": "# A\n[b](#b)\n"}), ["a.md:2: #b: no heading has this anchor"])

    def test_finds_a_link_out_of_the_project(self) -> None:
        self.assertEqual(self.problems({"a.md": "[b](../../etc)\n"}), ["a.md:1: ../../etc: leads out of the project"])

    def test_ignores_code(self) -> None:
        self.assertEqual(self.problems({"a.md": "```\n[b](b.md)\n# C\n```\n`[b](b.md)`\n"}), [])

    def test_headings_in_code_have_no_anchor(self) -> None:
        self.assertEqual(len(self.problems({"a.md": "[c](#c)\n```\n# C\n```\n"})), 1)

    def test_repeated_headings_are_numbered(self) -> None:
        self.assertEqual(markdown.anchors("# A\n## A\n## A-1\n"), {"a", "a-1", "a-1-1"})


class Tour(unittest.TestCase):
    PAGE = ("```sh\ndump --x jitconv-dump\n```\n```cuda\none\ntwo\n```\ntext\n```cuda\nthree\n```\n"
            "<!-- output of jitconv-dump: --emit=plan -->\n```text\nplan\n```\n")

    def renewed(self, source: str, plan: str = "plan") -> str:
        """The page, brought up to date with a program that prints these."""
        with tempfile.TemporaryDirectory() as name:
            program = pathlib.Path(name) / "dump"
            program.write_text(f'#!/bin/sh\ncase "$*" in *plan*) echo "{plan}";; *) printf "{source}";; esac\n',
                               encoding="utf-8")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            return check_tour.renewed(self.PAGE, str(program))

    def test_same_text_changes_nothing(self) -> None:
        self.assertEqual(self.renewed("one\\ntwo\\n\\nthree\\n"), self.PAGE)

    def test_changed_line_stays_in_its_block(self) -> None:
        self.assertEqual(self.renewed("one\\n2\\n\\nthree\\n"), self.PAGE.replace("two", "2"))

    def test_added_line_follows_the_one_before(self) -> None:
        self.assertEqual(self.renewed("one\\ntwo\\nand\\n\\nthree\\n"), self.PAGE.replace("two", "two\nand"))

    def test_last_line_is_not_lost(self) -> None:
        self.assertEqual(self.renewed("one\\ntwo\\n\\nthree\\nfour\\n"), self.PAGE.replace("three", "three\nfour"))

    def test_other_outputs_are_renewed(self) -> None:
        self.assertEqual(self.renewed("one\\ntwo\\n\\nthree\\n", "other"), self.PAGE.replace("\nplan", "\nother"))

    def test_failing_program_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "exit code 1"):
            check_tour.renewed(self.PAGE, "/bin/false")


class Messages(unittest.TestCase):
    def test_adjacent_literals_are_one(self) -> None:
        self.assertEqual(check_messages.joined_literals('f("a b"\n  " c", "d \\"e\\"")'), 'a b c\nd "e"')

    def test_parts_of_a_message(self) -> None:
        self.assertEqual(check_messages.fixed_parts("… is …, must be from … to …"), [", must be from"])

    def test_a_message_that_no_source_has(self) -> None:
        self.assertNotIn("the message that " + "nobody prints", check_messages.all_literals())
        self.assertIn("known keys are", check_messages.all_literals())


class ApiReference(unittest.TestCase):
    def one(self, text: str) -> api.Declaration:
        declarations = api.parse(api.with_line_comments(text).split("\n"))
        self.assertEqual(len(declarations), 1)
        return declarations[0]

    def test_function(self) -> None:
        one = self.one("/// Adds.\nJITCONV_API int add(int a,\n                    int b = 0);\n")
        self.assertEqual(api.name_of(one), "add()")
        self.assertEqual(api.signature(one.code), "int add(int a,\n        int b = 0);")
        self.assertEqual(one.doc, [" Adds."])

    def test_struct(self) -> None:
        one = self.one("/// S.\nstruct S {\n  int a = 1;  ///< first\n  /// second,\n  /// longer\n  int b = 2;\n"
                       "  bool operator==(const S&) const = default;\n};\n")
        self.assertEqual(api.field_rows(api.shown_members(one))[2:],
                         ["| `int a = 1` | first |", "| `int b = 2` | second, longer |"])

    def test_macro(self) -> None:
        one = self.one("/** Bytes. */\n#define MOST 10\n")
        self.assertEqual((api.name_of(one), one.code, one.doc), ("MOST", ["#define MOST 10"], [" Bytes."]))

    def test_c_enum(self) -> None:
        one = self.one("/** E. */\ntypedef enum E {\n  A = 0,\n  B = 1 /**< b */\n} E;\n")
        self.assertEqual([member.text for member in one.members], ["A = 0", "B = 1"])
        self.assertEqual([member.doc for member in one.members], [[], ["b"]])

    def test_class(self) -> None:
        one = self.one("/// C.\nclass JITCONV_API C : public B {\n public:\n  explicit C(int a) : B(a) {}\n"
                       "  /// F.\n  int f() const noexcept { return a_; }\n\n private:\n  int a_;\n};\n")
        self.assertEqual([api.signature(member.code) for member in one.members],
                         ["explicit C(int a);", "int f() const noexcept;"])
        self.assertEqual(api.undocumented([one]), [])

    def test_undocumented(self) -> None:
        text = "/// A.\nint a();\nint b();\nstruct S {\n  int f() const;\n};\n"
        self.assertEqual(api.undocumented(api.parse(text.split("\n"))), ["b()", "struct S", "S::f()"])

    def test_formulas_stay_as_they_are(self) -> None:
        self.assertEqual(api.prose([" Sum:", "   y = a * b", " of a*b in docs/host.md."]),
                         "Sum:\n\n```\n  y = a * b\n```\n\nof a\\*b in [host.md](../host.md).")

    def test_headers_are_read_whole(self) -> None:
        with contextlib.suppress(ValueError):
            self.assertEqual(len(api.pages()), 2)
        _, declarations = api.read("spec.h")
        self.assertIn("struct ConvSpec", [api.name_of(one) for one in declarations])


if __name__ == "__main__":
    unittest.main()
