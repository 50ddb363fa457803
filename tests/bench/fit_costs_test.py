"""Tests of bench/fit_costs.py and of the program that fits, on measurements that are made up."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import cost_tables as ct
import fit_costs as fc
import tuned_candidates as tc

SOURCE = """inline constexpr Costs kCosts = {
    // Units: .direct = nothing {
    .fma = {.bytes = 4'000'000, .cycle = 505},
    .direct = {.copies = {.row = 100, .element = 1'000},
               .bytes = 2'000},  // a rate
    .other = {.start = 3},
};
"""
TABLE = ct.parse_tables(SOURCE)


SPEC = "input=32,256,28,28 weight=256,256,1,1 math=tf32"


class Fit(unittest.TestCase):
    """The programs of a build, on measurements that the table contradicts."""

    BUILD = pathlib.Path(os.environ.get("JITCONV_BUILD", ROOT / "build" / "release"))

    def setUp(self) -> None:
        dump = self.BUILD / "tools" / "jitconv-dump"
        answer = subprocess.run([dump, f"--spec={SPEC}", "--arch=sm_90a", "--emit=candidates", "--candidates=40"],
                                check=True, capture_output=True, text=True)
        self.document = json.loads(answer.stdout)

    def tuned(self, factor: Callable[[str], float]) -> dict[str, Any]:
        """A file of candidates that take so many times what the table says."""
        candidates = [one | {"ms": one["modelled_ms"] * factor(one["plan"])} for one in self.document["candidates"]]
        return {"device": "GPU", "arch": "sm_90a",
                "tuned": [{"spec": self.document["spec"], "candidates": candidates}]}

    def fitted(self, document: dict[str, Any]) -> tuple[str, ct.Table]:
        """What fit_costs.py prints, and the tables it writes."""
        with tempfile.TemporaryDirectory() as name:
            tuned, tables = pathlib.Path(name) / "tuned.json", pathlib.Path(name) / "tables.h"
            tuned.write_text(json.dumps(document), encoding="utf-8")
            tables.write_text(fc.TABLES.read_text(encoding="utf-8"), encoding="utf-8")
            output = io.StringIO()
            arguments = ["fit_costs.py", str(tuned), "--build", str(self.BUILD), "--fit", "wgmma", "--candidates=40",
                         "--seconds=10", "--tables", str(tables), "--write"]
            with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(output):
                self.assertEqual(fc.main(), 0)
            return output.getvalue(), ct.parse_tables(tables.read_text(encoding="utf-8"))

    def test_a_table_that_is_right_stays(self) -> None:
        before = ct.parse_tables(fc.TABLES.read_text(encoding="utf-8"))
        _, after = self.fitted(self.tuned(lambda _: 1.0))
        self.assertEqual(after, before)

    def test_finds_a_table_that_chooses_the_fastest(self) -> None:
        # Packed weights take twice as long as the table says.
        before = ct.parse_tables(fc.TABLES.read_text(encoding="utf-8"))
        text, after = self.fitted(self.tuned(lambda plan: 2.0 if "pack_weights" in plan else 1.0))
        changed = {name for name in after if after[name] != before[name]}
        self.assertTrue(changed)
        self.assertTrue(all(name.startswith("wgmma.") for name in changed), changed)
        self.assertGreater(after["wgmma.launches.pack_weights"], before["wgmma.launches.pack_weights"])
        self.assertIn("    .wgmma = {.picoseconds_per_cycle = ", text)

    def descent(self, text: str, tables: str = "wgmma") -> tuple[int, str]:
        """Exit status and messages of cost_descent with this input."""
        command = [self.BUILD / "bench" / "cost_descent", f"--tables={tables}", "--seconds=0"]
        answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return answer.returncode, answer.stderr

    def test_the_descent_refuses_what_it_cannot_read(self) -> None:
        self.assertEqual(self.descent(f"{SPEC}\n0:1.5 1:2.5\n")[0], 0)
        for word in ("2:0", "2:-1", "2:fast", "2", "2:1.5x", "-1:2", "1000000:2"):
            code, message = self.descent(f"{SPEC}\n0:1.5 1:2.5 {word}\n")
            self.assertEqual(code, 1, word)
            self.assertRegex(message, f"input: '{word}' is not place:milliseconds with a place below [0-9]+ and a time")
        code, message = self.descent(f"{SPEC}\n0:1.5 1:2.5\n{SPEC}\n")
        self.assertEqual((code, f"input: '{SPEC}' is not followed by a line of its candidates" in message), (1, True))

    def test_the_descent_takes_groups_and_entries(self) -> None:
        for part in ("wgmma.store", "wgmma.store.latency", "depthwise,wgmma.tile"):
            self.assertEqual(self.descent(f"{SPEC}\n0:1.5 1:2.5\n", part)[0], 0, part)

    def test_refuses_tables_that_are_not_there(self) -> None:
        for part in ("wgma", "wgmma.stor", "store"):
            code, message = self.descent(f"{SPEC}\n0:1.5 1:2.5\n", f"wgmma,{part}")
            self.assertEqual((code, f"--tables: '{part}' is not a table" in message), (2, True), message)
        errors = io.StringIO()
        arguments = ["fit_costs.py", "none.json", "--build", str(self.BUILD), "--fit", "wgma"]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(errors):
            self.assertRaises(SystemExit, fc.main)
        self.assertIn("--fit: 'wgma' has no table in ", errors.getvalue())

    def test_refuses_candidates_of_several_targets(self) -> None:
        row = tc.Row(SPEC, "GPU", "sm_80", ())
        with self.assertRaisesRegex(ValueError, r"not of \['sm_80', 'sm_90a'\]"):
            fc.fit([row, replace(row, arch="sm_90a")], ("wgmma",), self.BUILD, 1, 40)

    def test_rows_of_one_convolution_are_merged(self) -> None:
        rows = tc.rows_of(self.tuned(lambda _: 3.0)) + tc.rows_of(self.tuned(lambda _: 2.0))
        row, = tc.merged(rows)
        places = tc.measured_places(row, str(self.BUILD / "tools" / "jitconv-dump"), 40)
        self.assertEqual(sorted(places), list(range(len(self.document["candidates"]))))
        for place, one in enumerate(self.document["candidates"]):
            self.assertAlmostEqual(places[place], 2.0 * one["modelled_ms"])

    def test_rows_of_different_gpus_are_not_merged(self) -> None:
        row = tc.Row(SPEC, "H100", "sm_90a", (tc.Candidate("wgmma", "", 1.0, 3.0, {}),))
        other = replace(row, device="H200", candidates=(tc.Candidate("wgmma", "", 1.0, 2.0, {}),))
        self.assertEqual(tc.merged([row, other, row]), [replace(row, candidates=2 * row.candidates), other])


class Tables(unittest.TestCase):
    def test_reads_values_by_name(self) -> None:
        self.assertEqual(TABLE, {"fma.bytes": 4_000_000, "fma.cycle": 505, "direct.copies.row": 100,
                                 "direct.copies.element": 1_000, "direct.bytes": 2_000, "other.start": 3})

    def test_prints_the_form_of_the_source(self) -> None:
        text = ct.table_of(ct.changed_tables(SOURCE, {"direct.copies.element": 12_345}), "direct")
        self.assertEqual(text, "    .direct = {.copies = {.row = 100, .element = 12'345},\n               .bytes = 2'000},")

    def test_knows_the_tables_of_the_library(self) -> None:
        table = ct.parse_tables(fc.TABLES.read_text(encoding="utf-8"))
        self.assertIn("wgmma.loads.latency", table)
        listed = (ROOT / "codegen" / "costs" / "entries.cpp").read_text(encoding="utf-8")
        self.assertEqual([name for name in table if f"ENTRY({name})" not in listed], [])
        self.assertEqual(listed.count("ENTRY("), len(table) + 1)


TUNED = {"device": "GPU", "arch": "sm_90a", "tuned": [{"spec": "input=1", "candidates": [
    {"family": "direct", "modelled_ms": 1.0, "ms": 3.0, "plan": "tile: 2x4", "note": ""},
    {"family": "direct", "modelled_ms": 2.0, "ms": 2.0, "plan": "tile: 4x4", "terms": {"direct.bytes": -1.5}},
    {"family": "wgmma", "modelled_ms": 3.0, "ms": None, "plan": "", "note": "failed"}]}]}


class Files(unittest.TestCase):
    def test_report_names_misses(self) -> None:
        text = tc.report(tc.rows_of(TUNED))
        self.assertIn("GPU, direct: 2 candidates, error 33% (90 % of them up to 67%)", text)
        self.assertIn("1 choices, 1 misses, 1.500 times the best's time", text)
        self.assertIn("  1.500  input=1\n         chosen 3.0000 ms, direct: tile: 2x4\n"
                      "         best   2.0000 ms, direct: tile: 4x4", text)

    def test_reads_comparisons(self) -> None:
        rows = tc.rows_of({"gpu": "GPU", "math": "fp32", "dtype": "bf16", "layout": "nhwc",
                           "results": [{"spec": "input=1 bias", "family": "direct", "ms": {"jitconv": 2.0}},
                                       {"spec": "input=2", "family": None, "ms": {"jitconv": 2.0}}]})
        self.assertEqual([row.spec for row in rows],
                         ["input=1 bias math=fp32 dtype=bf16 input_layout=nhwc output_layout=nhwc"])
        self.assertIsNone(tc.choice(rows[0]))

    def test_reads_runs_of_jitconv_run(self) -> None:
        whole = "input=1 math=ieee bias=true"
        row, = tc.rows_of({"device": {"name": "GPU", "arch": "sm_80"}, "results": [
            {"spec": whole, "compiled": {"family": "direct"}, "ms_median": 2.0, "ms": [1.0, 2.0, 3.0]},
            {"spec": whole, "outcome": "failed"}, {"spec": whole, "compiled": {"family": "direct"}}]})
        self.assertEqual((row.spec, row.device, row.arch), (whole, "GPU", "sm_80"))
        self.assertEqual([(one.family, one.measured) for one in row.candidates], [("direct", 2.0)])

    def test_reads_gradients_as_what_they_are(self) -> None:
        rows = tc.rows_of({"gpu": "GPU", "math": "tf32", "results": [
            {"spec": "input=1 bias", "operation": operation, "family": "wgmma", "ms": {"jitconv": 2.0}}
            for operation in ("data_gradient", "weight_gradient")]})
        self.assertEqual([row.spec for row in rows], ["input=1 operation=data_gradient math=tf32",
                                                      "input=1 bias operation=weight_gradient math=tf32"])

    def test_a_field_whose_name_ends_like_another_is_another(self) -> None:
        row, = tc.rows_of({"dtype": "bf16", "results": [
            {"spec": "input=1 output_dtype=f32", "family": "wgrad", "ms": {"jitconv": 2.0}}]})
        self.assertEqual(row.spec, "input=1 output_dtype=f32 dtype=bf16")

    def test_finds_a_recorded_plan_by_its_lines(self) -> None:
        row = tc.rows_of(TUNED)[0]
        now = [tc.Candidate("direct", "threads: 32; tile: 4x4", 7.0, None, {"direct.bytes": -7.0}),
               tc.Candidate("wgmma", "threads: 32; tile: 2x4", 8.0, None, {})]
        again = tc.priced(row, now)
        self.assertEqual([(one.modelled, one.measured) for one in again.candidates], [(7.0, 2.0), (8.0, None)])


if __name__ == "__main__":
    unittest.main()
