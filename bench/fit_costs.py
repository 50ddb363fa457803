#!/usr/bin/env python3
"""Compares the cost model with measured candidates, and fits the tables of codegen/costs/ to them.

    python3 bench/fit_costs.py tune/*.json                                   # how good the model is, family by family
    python3 bench/fit_costs.py tune/*.json --fit direct                      # and what its table should be
    python3 bench/fit_costs.py old/*.json --dump build/release/tools/jitconv-dump --fit direct

Files are of `jitconv-run --tune --json=FILE`, or of runs that have a family and a time for each convolution
(`jitconv-run --json`, compare_pytorch.py), of which only the error is known. A candidate's terms are milliseconds that
an entry of a table adds to the modelled time (codegen/cost_terms.h). With --dump, that program prices candidates anew:
of files without terms, and after a table has changed.

What counts is whether the cheapest candidate is the fastest: a miss is a convolution whose chosen candidate is slower
than the best one that was measured. The fit is a weighted least-squares problem in the logarithms of a table's entries,
with the terms as derivatives. A step changes no entry by more than a factor of two, since terms only hold near the
table they were computed with: put the new table in its place, build, price anew and fit again. A step is taken only as
far as misses do not grow.
"""

from __future__ import annotations

import argparse
import collections
import math
import pathlib
import statistics
import sys
from dataclasses import dataclass, replace

from cost_tables import Table, changed_tables, parse_tables, table_of
from tuned_candidates import Candidate, Quality, Row, Terms, choices, price_anew, quality, read_files, report

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "codegen" / "costs" / "h200.h"
LONGEST_STEP = math.log(2)
LEVEL_WEIGHT = 0.1  # of the error that all candidates of a convolution share, which decides only between families
DAMPING = (0.003, 0.03, 0.3)
FRACTIONS = (1.0, 0.5, 0.25, 0.125)
SHARED_TABLE = "fma"


def factor(term: float, step: float) -> float:
    """By how much of `term` the time changes where the entry changes by exp(step).

    Times grow with their entry, and what moves at a rate, whose term is negative, shrinks.
    """
    return math.expm1(step) if term >= 0 else -math.expm1(-step)


def predicted(one: Candidate, steps: dict[str, float]) -> Candidate:
    """The candidate priced with entries changed by exp(steps)."""
    change = sum(term * factor(term, steps[name]) for name, term in one.terms.items() if name in steps)
    return replace(one, modelled=max(one.modelled + change, one.modelled / 16))


def predicted_rows(rows: list[Row], steps: dict[str, float]) -> list[Row]:
    """Rows whose candidates are priced so."""
    return [replace(row, candidates=tuple(predicted(one, steps) for one in row.candidates)) for row in rows]


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Of a positive definite matrix, by elimination."""
    size = len(right)
    rows = [[*matrix[i], right[i]] for i in range(size)]
    for i in range(size):
        for j in range(i + 1, size):
            scale = rows[j][i] / rows[i][i]
            if scale:
                rows[j] = [a - scale * b for a, b in zip(rows[j], rows[i], strict=True)]
    result = [0.0] * size
    for i in reversed(range(size)):
        result[i] = (rows[i][size] - sum(rows[i][j] * result[j] for j in range(i + 1, size))) / rows[i][i]
    return result


def equations(rows: list[Row], family: str) -> list[tuple[Terms, float]]:
    """Coefficients of the steps, and what they should add up to, each weighted.

    Of each convolution: how the logarithm of a candidate's time differs from the mean of all, which decides the choice,
    and with a small weight the mean. Candidates far from the fastest count little.
    """
    result = []
    for row in rows:
        own = [one for one in row.measured() if one.family == family and one.measured and one.modelled > 0]
        if not own:
            continue
        best = min(one.measured or math.inf for one in own)
        weights = [(best / (one.measured or best)) ** 2 for one in own]
        total = sum(weights)
        errors = [math.log((one.measured or 1) / one.modelled) for one in own]
        gradients = [{name: term / one.modelled for name, term in one.terms.items()} for one in own]
        mean_error = sum(w * e for w, e in zip(weights, errors, strict=True)) / total
        mean: Terms = collections.defaultdict(float)
        for weight, gradient in zip(weights, gradients, strict=True):
            for name, value in gradient.items():
                mean[name] += weight * value / total
        level = LEVEL_WEIGHT * math.sqrt(total)
        result.append(({name: value * level for name, value in mean.items()}, mean_error * level))
        for weight, error, gradient in zip(weights, errors, gradients, strict=True):
            scale = math.sqrt(weight)
            names = mean.keys() | gradient.keys()
            result.append(({name: (gradient.get(name, 0.0) - mean[name]) * scale for name in names},
                           (error - mean_error) * scale))
    return result


def least_squares(system: list[tuple[Terms, float]], names: list[str], damping: float) -> dict[str, float]:
    """Steps in logarithms that fit the equations best, with `damping` of them as a penalty, cut to LONGEST_STEP."""
    place = {name: i for i, name in enumerate(names)}
    matrix = [[0.0] * len(names) for _ in names]
    right = [0.0] * len(names)
    for coefficients, wanted in system:
        own = [(place[name], value) for name, value in coefficients.items() if name in place and value]
        for i, a in own:
            right[i] += a * wanted
            for j, b in own:
                matrix[i][j] += a * b
    scale = max((matrix[i][i] for i in range(len(names))), default=0.0) or 1.0
    for i in range(len(names)):
        matrix[i][i] += damping * scale
    return {name: max(-LONGEST_STEP, min(LONGEST_STEP, step))
            for name, step in zip(names, solve(matrix, right), strict=True)}


def rounded(table: Table, steps: dict[str, float]) -> Table:
    """Whole numbers, at least 1: an entry of 0 has no terms."""
    return {name: max(1, round(table[name] * math.exp(step))) for name, step in steps.items()}


@dataclass(frozen=True)
class Fit:
    """New values of a family's entries that change, and the quality before and, as far as terms can say, after."""

    values: Table
    before: Quality
    after: Quality


def fit(rows: list[Row], family: str, table: Table, tables: tuple[str, ...]) -> Fit:
    """The best step for a family: the fewest misses, then the smallest error. No step if none has fewer or as many.

    Parameters
    ----------
    rows
        Measured candidates with terms.
    family
        Whose candidates are fitted.
    table
        The present values of all entries.
    tables
        Whose entries may change: the family's, and that of all FMA kernels where it is meant to.
    """
    before = quality(rows, family)
    everything = _loss(rows)
    names = sorted({name for row in rows for one in row.measured() if one.family == family for name in one.terms
                    if name.split(".")[0] in tables and table.get(name)})
    best = Fit({}, before, before)
    least = (everything, before.median_error)
    system = equations(rows, family)
    for damping in DAMPING if names else ():
        whole = least_squares(system, names, damping)
        for fraction in FRACTIONS:
            values = rounded(table, {name: step * fraction for name, step in whole.items()})
            changed = {name: value for name, value in values.items() if value != table[name]}
            there = predicted_rows(rows, {name: math.log(value / table[name]) for name, value in changed.items()})
            now = (_loss(there), quality(there, family).median_error)
            if now < least:
                best, least = Fit(changed, before, quality(there, family)), now
    return best


def _loss(rows: list[Row]) -> float:
    """Of the choices among all families, rounded so that equal choices are equal."""
    ratios = [ratio for _, _, ratio in choices(rows)]
    return round(statistics.fmean(map(math.log, ratios)), 9) if ratios else 0.0


def fit_text(rows: list[Row], family: str, source: str, tables: tuple[str, ...]) -> tuple[str, str]:
    """What is to be said of a fit, and the file with the new table."""
    found = fit(rows, family, parse_tables(source), tables)
    new = changed_tables(source, found.values)
    lines = [f"{family} now: {found.before.text()}"]
    if not found.values:
        lines.append("no step has fewer misses, or as many and a smaller error: the table stays as it is")
    else:
        lines.append(f"{family} then, as far as its terms can say: {found.after.text()}")
        if found.after.misses > found.before.misses:
            lines.append(f"WORSE: {found.after.misses - found.before.misses} more misses, though shorter ones")
        lines += [table_of(new, name) for name in tables]
    return "\n".join(lines), new


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--fit", action="append", default=[], metavar="FAMILY", help="print a new table for it")
    parser.add_argument("--shared", action="store_true", help=f"fit the table of all FMA kernels ({SHARED_TABLE}), too")
    parser.add_argument("--dump", help="jitconv-dump: price the candidates anew")
    parser.add_argument("--candidates", type=int, default=400, help="of a convolution that --dump prices")
    parser.add_argument("--tables", type=pathlib.Path, default=TABLES)
    parser.add_argument("--write", action="store_true", help="change the file of the tables")
    arguments = parser.parse_args()
    rows = read_files(arguments.files)
    if arguments.dump:
        rows = [price_anew(row, arguments.dump, arguments.candidates) for row in rows]
    print(report(rows))
    source = arguments.tables.read_text(encoding="utf-8")
    for family in arguments.fit:
        if not any(one.terms for row in rows for one in row.measured() if one.family == family):
            print(f"{family}: no measured candidate has terms, --dump makes them", file=sys.stderr)
            return 1
        text, source = fit_text(rows, family, source, (family, SHARED_TABLE) if arguments.shared else (family,))
        print(text)
    if arguments.write:
        arguments.tables.write_text(source, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
