#!/usr/bin/env python3
"""Tests of the mutation script itself: a list that rots is noticed, a mutant is applied and taken back, verdicts follow
from exit statuses, tables count right. Builds nothing: the build and the test programs are small shell scripts."""
import dataclasses
import os
import pathlib
import stat
import tempfile
import unittest

import layers
import report
import workshop
from mutants import MUTANTS
from mutants.mutant import Mutant


def mutant(**fields):
    return Mutant(**({"name": "one", "file": "cache/a.cpp", "old": "good", "new": "bad", "harm": "harm"} | fields))


class WithTree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name) / "root"
        (self.root / "cache").mkdir(parents=True)
        (self.root / "cache/a.cpp").write_text("good\n")


class TheListIsChecked(WithTree):
    def test_a_list_that_fits(self):
        self.assertEqual(workshop.problems_of([mutant()], self.root), [])

    def test_text_that_is_gone(self):
        self.assertIn("occurs 0 times", workshop.problems_of([mutant(old="lost")], self.root)[0])

    def test_text_that_occurs_too_often(self):
        (self.root / "cache/a.cpp").write_text("good good\n")
        self.assertIn("occurs 2 times", workshop.problems_of([mutant()], self.root)[0])
        self.assertEqual(workshop.problems_of([mutant(count=2)], self.root), [])

    def test_a_file_that_is_gone(self):
        self.assertIn("does not exist", workshop.problems_of([mutant(file="cache/b.cpp")], self.root)[0])

    def test_a_mutant_that_changes_nothing(self):
        self.assertIn("changes nothing", workshop.problems_of([mutant(new="good")], self.root)[0])

    def test_two_of_one_name(self):
        self.assertIn("2 mutants are named one", workshop.problems_of([mutant(), mutant(new="worse")], self.root)[0])

    def test_every_area_has_a_layer(self):
        for one in MUTANTS:
            self.assertTrue(any(layers.programs_for(one.area, layer) for layer in layers.LAYERS), one.name)


class AMutantIsRun(WithTree):
    """The workshop's build is replaced by one that does nothing; the program under test is a shell script."""

    def setUp(self):
        super().setUp()
        program = layers.Program("a_test", "tests", areas=("cache",), seconds=2)
        self.shop = workshop.Workshop(self.root, pathlib.Path(self.folder.name) / "work", ["unit"])
        self.shop._build = lambda area: (False, "")
        self.shop._copy_tree()
        patched = workshop.programs_for
        workshop.programs_for = lambda area, layer: [program]
        self.addCleanup(setattr, workshop, "programs_for", patched)
        self.one_program = program

    def program(self, text):
        path = self.shop.build / "tests/a_test"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_with(self, text):
        self.program(text)
        return self.shop.run(mutant())["layers"]["unit"]

    def test_the_program_sees_the_mutant_and_the_tree_is_restored(self):
        said = self.run_with("grep -q good cache/a.cpp")
        self.assertEqual(said["verdict"], "killed")
        self.assertEqual((self.shop.tree / "cache/a.cpp").read_text(), "good\n")
        self.assertEqual((self.root / "cache/a.cpp").read_text(), "good\n")

    def test_a_test_that_notices_nothing(self):
        result_of = self.run_with("exit 0")
        self.assertEqual(result_of["verdict"], "survived")

    def test_the_failed_test_is_named(self):
        said = self.run_with("echo '[  FAILED  ] Suite.Case (3 ms)'; exit 1")
        self.assertEqual((said["verdict"], said["by"]), ("killed", "Suite.Case"))

    def test_the_test_that_ended_the_program_is_named(self):
        said = self.run_with("echo '[ RUN      ] Suite.A'; echo '[ RUN      ] Suite.B'; kill -TRAP $$")
        self.assertEqual((said["verdict"], said["by"]), ("killed", "Suite.B"))

    def test_a_crash_counts(self):
        said = self.run_with("kill -SEGV $$")
        self.assertEqual((said["verdict"], said["by"]), ("killed", "a_test ends with signal 11"))

    def test_a_hang_counts_and_its_children_are_ended(self):
        said = self.run_with("sleep 60 & echo $! > child; wait")
        self.assertEqual((said["verdict"], said["by"]), ("killed", "a_test hangs"))
        child = int((self.shop.tree / "child").read_text())
        self.assertFalse(os.path.exists(f"/proc/{child}/cmdline") and
                         pathlib.Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"sleep"))

    def test_the_limit_follows_the_unchanged_tree(self):
        self.program("echo '[       OK ] Quick.A (500 ms)'; echo '[       OK ] Quick.B/0, where x = 1 (2000 ms)'")
        program = self.one_program
        self.shop.baseline = {program.target: self.shop._measure(program)}
        self.assertEqual(self.shop.baseline, {"a_test": {"Quick.A": 0.5, "Quick.B/0": 2.0}})
        self.assertEqual(self.shop._limit(program, layers.Tests()), 6 * 2.5)
        self.assertEqual(self.shop._limit(program, layers.Tests(("Quick.A",))), 6 * 0.5)
        self.assertEqual(self.shop._limit(program, layers.Tests(("Other*",))), program.seconds)

    def test_a_tree_on_which_a_test_fails_is_refused(self):
        self.program("exit 1")
        with self.assertRaises(SystemExit):
            self.shop._measure(self.one_program)

    def test_times_are_kept_while_the_tree_is_the_same(self):
        self.shop.baseline_path.write_text('{"tree": "ab", "seconds": {"a_test": {"": 3}}}')
        self.shop._load_baseline("ab")
        self.assertEqual(self.shop.baseline, {"a_test": {"": 3}})
        self.shop._load_baseline("cd")
        self.assertEqual(self.shop.baseline, {})

    def test_own_tests_run_first_and_the_others_if_they_pass(self):
        program = dataclasses.replace(self.one_program, in_steps=True)
        workshop.programs_for = lambda area, layer: [program]
        self.program('echo "$@" >> calls; grep -q good cache/a.cpp || test "$*" != "$(cat killer)"')
        (self.root / "cache/fallback").mkdir()
        (self.root / "cache/fallback/a.cpp").write_text("good\n")
        self.shop._copy_tree()
        (self.shop.tree / "killer").write_text("--gtest_filter=*-*Fallback*")
        (self.shop.tree / "cache/a.cpp").write_text("bad\n")
        result = self.shop.run(mutant(file="cache/fallback/a.cpp"))
        self.assertTrue(result["killed"])
        self.assertEqual((self.shop.tree / "calls").read_text().split(),
                         ["--gtest_filter=*Fallback*", "--gtest_filter=*-*Fallback*"])

    def test_only_the_first_layer_that_kills_runs_if_so_wanted(self):
        self.program("exit 1")
        self.shop.layers = ["host", "unit"]
        self.assertEqual(list(self.shop.run(mutant())["layers"]), ["host", "unit"])
        self.shop.first = True
        self.assertEqual(list(self.shop.run(mutant())["layers"]), ["host"])

    def test_a_mutant_that_does_not_build(self):
        self.shop._build = lambda area: (True, "error: no")
        result = self.shop.run(mutant())
        self.assertTrue(result["killed"])
        self.assertEqual(list(result["layers"]), ["build"])
        self.assertEqual((self.shop.tree / "cache/a.cpp").read_text(), "good\n")

    def test_files_that_are_equal_are_not_copied_again_and_old_ones_go(self):
        copy = self.shop.tree / "cache/a.cpp"
        os.utime(copy, (1, 1))
        (self.shop.tree / "cache/old.cpp").write_text("")
        self.shop._copy_tree()
        self.assertEqual(copy.stat().st_mtime, 1)
        self.assertFalse((self.shop.tree / "cache/old.cpp").exists())


class StepsOfAProgram(unittest.TestCase):
    def test_no_test_is_left_out_or_runs_twice(self):
        program = layers.Program("a_test", "tests", areas=(), in_steps=True)
        names = ["Quick.WgmmaBoxes", "Quick.WgmmaPlanes", "Quick.RowsOfTiles", "DepthwiseNhwc.Filters", "Gradients.All",
                 "WgmmaRowsPlan.Cut", "Huge.Reads"]
        for one in MUTANTS:
            steps = layers.steps_of(program, one)
            for name in names:
                self.assertEqual(sum(tests.has(name) for tests in steps), 1, (one.name, name))

    def test_every_kernel_family_has_tests_of_its_own(self):
        program = layers.Program("a_test", "tests", areas=(), in_steps=True)
        for folder in sorted((pathlib.Path(__file__).parents[2] / "codegen").glob("*/family.h")):
            self.assertGreater(len(layers.steps_of(program, mutant(file=str(folder)))), 1, folder)

    def test_a_program_without_steps_runs_whole(self):
        program = layers.Program("a_test", "tests", areas=())
        self.assertEqual([tests.arguments for tests in layers.steps_of(program, mutant(file="codegen/wgmma/a.cpp"))], [()])


class ResultsAreCounted(unittest.TestCase):
    RESULTS = [
        {"name": "a", "file": "f", "area": "cache", "harm": "h", "killed": True, "host_blind": "", "accepted": "",
         "layers": {"unit": {"verdict": "killed"}, "stress": {"verdict": "survived"}}},
        {"name": "b", "file": "f", "area": "template", "harm": "h", "killed": False, "host_blind": "", "accepted": "same",
         "layers": {"unit": {"verdict": "survived"}, "host": {"verdict": "survived"}}},
        {"name": "c", "file": "f", "area": "template", "harm": "h", "killed": True, "host_blind": "", "accepted": "",
         "layers": {"unit": {"verdict": "survived"}, "host": {"verdict": "killed"}}},
    ]

    def test_per_layer_and_in_all(self):
        self.assertEqual(report.counts(self.RESULTS), {
            "unit": {"killed": 1, "total": 3}, "host": {"killed": 1, "total": 2}, "stress": {"killed": 0, "total": 1},
            "all": {"killed": 2, "total": 3}})

    def test_survivors_are_named_with_their_reason(self):
        self.assertIn("survivor: b: same", report.summary_lines(self.RESULTS))
        self.assertIn("- `b` (f): same", report.tables(self.RESULTS))

    def test_the_document_keeps_its_prose(self):
        with tempfile.NamedTemporaryFile("w+", suffix=".md") as file:
            file.write("before\n" + report.BEGIN + "old\n" + report.END + "after\n")
            file.flush()
            report.write_document(file.name, self.RESULTS)
            text = pathlib.Path(file.name).read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertIn("| all | 3 | 2 | 66.7 % |", text)
        self.assertNotIn("old", text)


if __name__ == "__main__":
    unittest.main()
