"""Measured candidates of the cost model: read from files, priced anew, and compared with what the model chose.

Files are of `jitconv-run --tune --json=FILE`, or of runs that have a family and a time for each convolution
(`jitconv-run --json`, compare_pytorch.py, compare_gradients.py). The fit is in fit_costs.py.
"""

from __future__ import annotations

import functools
import json
import math
import pathlib
import re
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

MISS = 1.02  # times as long as the best: less is noise

Terms = dict[str, float]


@dataclass(frozen=True)
class Candidate:
    """A plan of a convolution; times in milliseconds, `measured` is None if it failed."""

    family: str
    plan: str
    modelled: float
    measured: float | None
    terms: Terms


@dataclass(frozen=True)
class Row:
    """A convolution on a GPU, and the candidates that were looked at."""

    spec: str
    device: str
    arch: str
    candidates: tuple[Candidate, ...]

    def measured(self) -> list[Candidate]:
        """Those that did not fail."""
        return [one for one in self.candidates if one.measured is not None]


# --- files ------------------------------------------------------------------------------------------------------------


def rows_of(document: dict[str, Any]) -> list[Row]:
    """Of one file: of a tuning, or of a run with one candidate for each convolution."""
    device, arch = _device_of(document)
    if "tuned" in document:
        return [Row(row["spec"], device, arch, tuple(_candidate(one) for one in row["candidates"]))
                for row in document["tuned"]]
    rows = []
    for result in document.get("results", []):
        family, ms = _measured(result)
        if family and ms:
            spec = _whole_spec(result, document)
            rows.append(Row(spec, device, arch, (Candidate(family, "", math.nan, float(ms), {}),)))
    return rows


def _device_of(document: dict[str, Any]) -> tuple[str, str]:
    """The names of the GPU and of its target; jitconv-run --json keeps both in an object."""
    device = document.get("device") or document.get("gpu") or "unknown"
    if isinstance(device, dict):
        return device["name"], device["arch"]
    return device, document.get("arch") or "sm_90a"


def _measured(result: dict[str, Any]) -> tuple[str | None, float | None]:
    """Family and milliseconds of a run's row: as jitconv-run prints them, or the scripts that compare with PyTorch."""
    if "ms_median" in result:
        return result["compiled"]["family"], result["ms_median"]
    ms = result.get("ms")
    return result.get("family"), ms.get("jitconv") if isinstance(ms, dict) else ms


def _candidate(one: dict[str, Any]) -> Candidate:
    measured = one.get("ms")
    terms = {name: float(value) for name, value in one.get("terms", {}).items()}
    return Candidate(one["family"], one["plan"], float(one["modelled_ms"]),
                     None if measured is None else float(measured), terms)


def _whole_spec(result: dict[str, Any], document: dict[str, Any]) -> str:
    """The spec of a row. Scripts that compare with PyTorch keep what all rows share in the file's head.

    compare_gradients.py keeps the operation beside the convolution's text, and gives a bias to weight gradients alone.
    """
    words = result["spec"].split()
    if (operation := result.get("operation")) is not None:
        bias = ["bias"] if operation == "weight_gradient" else []
        words = [word for word in words if word != "bias"] + bias + [f"operation={operation}"]
    given = {word.split("=")[0] for word in words}
    for key, names in (("math", ("math",)), ("dtype", ("dtype",)), ("layout", ("input_layout", "output_layout"))):
        if key in document:
            words += [f"{name}={document[key]}" for name in names if name not in given]
    return " ".join(words)


def read_files(paths: list[pathlib.Path]) -> list[Row]:
    """Rows of all files, in their order."""
    return [row for path in paths for row in rows_of(json.loads(path.read_text(encoding="utf-8")))]


# --- pricing anew -----------------------------------------------------------------------------------------------------


def lines_of(plan: str) -> frozenset[str]:
    """The parts of a plan in one line."""
    return frozenset(line.strip() for line in plan.split("; ") if line.strip())


def _places(row: Row, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, int]]:
    """The row's candidates that are among `candidates`, and their places there.

    A recorded plan has the lines that differ between its row's candidates; of the whole plans that have all of them,
    the one with the fewest others is the same. Of a run, whose plan is not known, it is the first of the family.
    """
    whole = [lines_of(one.plan) for one in candidates]
    for old in row.candidates:
        wanted = {line for line in lines_of(old.plan) if not line.startswith("family: ")}
        matches = [(len(lines) if wanted else 0, place) for place, lines in enumerate(whole)
                   if candidates[place].family == old.family and wanted <= lines]
        if matches:
            yield old, min(matches)[1]


def priced(row: Row, candidates: Sequence[Candidate]) -> Row:
    """The row with times and terms of `candidates`, which are priced but not measured; without what is not there."""
    found = ((old, candidates[place]) for old, place in _places(row, candidates))
    return replace(row, candidates=tuple(replace(old, modelled=now.modelled, terms=now.terms) for old, now in found))


@functools.cache
def _dumped(spec: str, arch: str, dump: str, most: int) -> tuple[Candidate, ...]:
    """The cheapest `most` candidates of a row's spec, cheapest first."""
    spec = re.sub(r"\b(bias|residual)\b(?!=)", r"\1=true", spec)
    command = [dump, f"--spec={spec}", f"--arch={arch}", "--emit=candidates", f"--candidates={most}"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return tuple(_candidate(one) for one in json.loads(answer.stdout)["candidates"])


def price_anew(row: Row, dump: str, most: int) -> Row:
    """Price a row with jitconv-dump, which is asked for the cheapest `most` candidates."""
    return priced(row, _dumped(row.spec, row.arch, dump, most))


def measured_places(row: Row, dump: str, most: int) -> dict[int, float]:
    """Milliseconds of a row's measured candidates by their place among those that jitconv-dump prints.

    If one was measured more than once, the shortest counts.
    """
    places: dict[int, float] = {}
    for old, place in _places(row, _dumped(row.spec, row.arch, dump, most)):
        if old.measured is not None:
            places[place] = min(old.measured, places.get(place, math.inf))
    return places


def merged(rows: list[Row]) -> list[Row]:
    """One row for each convolution on a GPU, with the candidates of all of its rows.

    Times of different GPUs cannot be compared, although their target may be the same.
    """
    found: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        key = row.spec, row.device, row.arch
        known = found.get(key)
        found[key] = replace(known, candidates=known.candidates + row.candidates) if known else row
    return list(found.values())


# --- how good the model is --------------------------------------------------------------------------------------------


def choice(row: Row) -> tuple[Candidate, float] | None:
    """The cheapest measured candidate and its time over that of the fastest; None if fewer than two were measured."""
    measured = row.measured()
    if len(measured) < 2:
        return None
    chosen = min(measured, key=lambda one: one.modelled)
    best = min(one.measured for one in measured if one.measured is not None)
    return chosen, (chosen.measured or math.nan) / best


def choices(rows: list[Row]) -> list[tuple[Row, Candidate, float]]:
    """Of the rows that have a choice: what is chosen, and its time over the best's."""
    found = []
    for row in rows:
        if (chosen := choice(row)) is not None:
            found.append((row, *chosen))
    return found


@dataclass(frozen=True)
class Quality:
    """Of a family on a GPU: errors are |modelled / measured - 1|, ratios chosen / best."""

    candidates: int
    median_error: float
    error_90: float
    ratios: tuple[float, ...]

    @property
    def misses(self) -> int:
        """Count choices that are slower than the best."""
        return sum(ratio > MISS for ratio in self.ratios)

    @property
    def loss(self) -> float:
        """The mean logarithm of the ratios: 0 if the fastest is always chosen."""
        return statistics.fmean(math.log(ratio) for ratio in self.ratios) if self.ratios else 0.0

    def text(self) -> str:
        """Say it in one line."""
        if not self.candidates:
            return "not measured"
        text = f"{self.candidates} candidates, error {self.median_error:.0%} (90 % of them up to {self.error_90:.0%})"
        if not self.ratios:
            return text
        return (f"{text}; {len(self.ratios)} choices, {self.misses} misses, {math.exp(self.loss):.3f} times the best's "
                f"time in the geometric mean, {max(self.ratios):.3f} at most")


def quality(rows: list[Row], family: str) -> Quality:
    """Errors of the family's candidates, and the choices that fell on it."""
    errors = sorted(abs(one.modelled / one.measured - 1) for row in rows for one in row.measured()
                    if one.family == family and one.measured and not math.isnan(one.modelled))
    ratios = tuple(ratio for _, chosen, ratio in choices(rows) if chosen.family == family)
    if not errors:
        return Quality(0, math.nan, math.nan, ratios)
    return Quality(len(errors), statistics.median(errors), errors[math.ceil(0.9 * len(errors)) - 1], ratios)


def report(rows: list[Row]) -> str:
    """Of each GPU and family: errors, then the misses, worst first."""
    lines = []
    for device in sorted({row.device for row in rows}):
        here = [row for row in rows if row.device == device]
        for family in sorted({one.family for row in here for one in row.candidates}):
            lines.append(f"{device}, {family}: {quality(here, family).text()}")
        for row, chosen, ratio in sorted(choices(here), key=lambda one: -one[2]):
            if ratio <= MISS:
                break
            best = min(row.measured(), key=lambda one: one.measured or math.inf)
            lines += [f"  {ratio:.3f}  {row.spec}",
                      f"         chosen {chosen.measured:.4f} ms, {chosen.family}: {chosen.plan}",
                      f"         best   {best.measured:.4f} ms, {best.family}: {best.plan}"]
    return "\n".join(lines)
