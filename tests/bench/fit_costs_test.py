"""Tests of bench/fit_costs.py on synthetic measurements, whose table is known."""

from __future__ import annotations

import contextlib
import io
import json
import math
import pathlib
import random
import sys
import tempfile
import unittest
from dataclasses import replace
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


def candidate(counts: dict[str, float], truth: ct.Table, noise: float, now: ct.Table) -> tc.Candidate:
    """Of a model that adds up times, with `counts` of each entry; memory is counted by a rate.

    It is priced with `now` and measured with `truth`.
    """

    def parts(table: ct.Table) -> dict[str, float]:
        return {name: count * 1e-6 * (1e6 / table[name] if name.endswith(".bytes") else table[name])
                for name, count in counts.items()}

    terms = {name: -value if name.endswith(".bytes") else value for name, value in parts(now).items()}
    plan = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return tc.Candidate("direct", plan, sum(parts(now).values()), sum(parts(truth).values()) * noise, terms)


def synthetic(truth: ct.Table, noise: float = 0.0, now: ct.Table = TABLE) -> list[tc.Row]:
    random.seed(4)
    rows = []
    for i in range(12):
        counts = [{"direct.copies.row": random.uniform(1, 50), "direct.copies.element": random.uniform(1, 5),
                   "direct.bytes": random.uniform(1, 20)} for _ in range(8)]
        rows.append(tc.Row(f"spec {i}", "GPU", "sm_90a",
                           tuple(candidate(one, truth, 1 + random.uniform(-noise, noise), now) for one in counts)))
    return rows


class Fit(unittest.TestCase):
    def test_recovers_known_entries(self) -> None:
        truth = TABLE | {"direct.copies.row": 180, "direct.copies.element": 700, "direct.bytes": 2_600}
        now = TABLE
        self.assertGreater(tc.quality(synthetic(truth), "direct").misses, 0)
        for _ in range(3):  # each time priced with the table that was found
            now = now | fc.fit(synthetic(truth, now=now), "direct", now, ("direct",)).values
        self.assertEqual(tc.quality(synthetic(truth, now=now), "direct").misses, 0)
        for name in ("direct.copies.row", "direct.copies.element", "direct.bytes"):
            self.assertLess(abs(math.log(now[name] / truth[name])), 0.05, name)

    def test_a_good_table_stays(self) -> None:
        found = fc.fit(synthetic(TABLE), "direct", TABLE, ("direct",))
        self.assertEqual(found.values, {})

    def test_never_misses_more(self) -> None:
        for noise in (0.05, 0.3, 0.9):
            found = fc.fit(synthetic(TABLE, noise), "direct", TABLE, ("direct",))
            self.assertLessEqual(found.after.loss, found.before.loss)

    def test_leaves_other_tables_alone(self) -> None:
        rows = synthetic(TABLE | {"direct.copies.row": 150})
        shared = [replace(row, candidates=tuple(replace(one, terms=one.terms | {"fma.cycle": 0.01})
                                                for one in row.candidates)) for row in rows]
        found = fc.fit(shared, "direct", TABLE, ("direct",))
        self.assertFalse([name for name in found.values if not name.startswith("direct.")])

    def test_a_step_is_at_most_twofold(self) -> None:
        found = fc.fit(synthetic(TABLE | {"direct.copies.row": 10_000}), "direct", TABLE, ("direct",))
        self.assertLessEqual(found.values.get("direct.copies.row", 0), 200)

    def test_choices_among_families_count(self) -> None:
        # The other family is faster, and priced so; a smaller error of direct would take its choice.
        direct = tc.Candidate("direct", "", 2.0, 1.0, {"direct.copies.row": 2.0})
        row = tc.Row("spec", "GPU", "sm_90a", (direct, tc.Candidate("other", "", 1.5, 0.5, {})))
        self.assertEqual(fc.fit([row], "direct", TABLE, ("direct",)).after.ratios, ())

    def test_says_that_there_are_more_misses(self) -> None:
        before, after = (tc.Quality(4, 0.1, 0.2, ratios) for ratios in ((1.9, 1.0), (1.1, 1.1)))
        with mock.patch.object(fc, "fit", return_value=fc.Fit({"direct.bytes": 7}, before, after)):
            self.assertIn("WORSE: 1 more misses", fc.fit_text([], "direct", SOURCE, ("direct",))[0])


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

    def test_finds_a_recorded_plan_by_its_lines(self) -> None:
        row = tc.rows_of(TUNED)[0]
        now = [tc.Candidate("direct", "threads: 32; tile: 4x4", 7.0, None, {"direct.bytes": -7.0}),
               tc.Candidate("wgmma", "threads: 32; tile: 2x4", 8.0, None, {})]
        again = tc.priced(row, now)
        self.assertEqual([(one.modelled, one.measured) for one in again.candidates], [(7.0, 2.0), (8.0, None)])

    def test_the_program_fits_and_writes(self) -> None:
        rows = synthetic(TABLE | {"direct.copies.row": 180})
        document = {"device": "GPU", "arch": "sm_90a", "tuned": [
            {"spec": row.spec, "candidates": [{"family": one.family, "modelled_ms": one.modelled, "ms": one.measured,
                                               "plan": one.plan, "terms": one.terms} for one in row.candidates]}
            for row in rows]}
        with tempfile.TemporaryDirectory() as name:
            tuned, tables = pathlib.Path(name) / "tuned.json", pathlib.Path(name) / "tables.h"
            tuned.write_text(json.dumps(document), encoding="utf-8")
            tables.write_text(SOURCE, encoding="utf-8")
            output = io.StringIO()
            arguments = ["fit_costs.py", str(tuned), "--fit", "direct", "--tables", str(tables), "--write"]
            with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(output):
                self.assertEqual(fc.main(), 0)
            self.assertIn("    .direct = {.copies = {.row = 1", output.getvalue())
            written = ct.parse_tables(tables.read_text(encoding="utf-8"))
            self.assertLess(abs(math.log(written["direct.copies.row"] / 180)), 0.1)


if __name__ == "__main__":
    unittest.main()
