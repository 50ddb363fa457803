#!/usr/bin/env python3
"""Compares the cost model with measured candidates, and fits the tables of codegen/costs/ to them.

    python3 bench/fit_costs.py tune/*.json                                  # how good the model is, family by family
    python3 bench/fit_costs.py old/*.json --build build/release             # the same with the present tables
    python3 bench/fit_costs.py tune/*.json --build build/release --fit wgmma --write

Files are of `jitconv-run --tune --json=FILE`, or of runs that have a family and a time for each convolution
(`jitconv-run --json`, compare_pytorch.py, compare_gradients.py), of which only the error is known. With --build,
jitconv-dump of that folder prices candidates anew: a table may have changed since, or a version may have written no
prices.

What counts is whether the cheapest candidate is the fastest: a miss is a convolution whose chosen candidate is slower
than the best one that was measured. The fit is that of bench/cost_descent.cpp, which changes one entry after the other
for as long as choices get faster. Only what was measured can be chosen there; so measure the candidates of the new
table, too, and fit again to both.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

from cost_tables import Table, changed_tables, parse_tables, table_of
from tuned_candidates import Row, measured_places, merged, price_anew, read_files, report

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "codegen" / "costs" / "h200.h"
SHARED_TABLE = "fma"


def descent_input(rows: list[Row], dump: pathlib.Path, most: int) -> str:
    """What cost_descent reads: of each convolution its spec, and its measured candidates by their place."""
    lines = []
    for row in merged(rows):
        places = measured_places(row, str(dump), most)
        lines += [row.spec, " ".join(f"{place}:{ms:.6f}" for place, ms in sorted(places.items()))]
    return "\n".join(lines) + "\n"


def fit(rows: list[Row], tables: tuple[str, ...], build: pathlib.Path, seconds: float, most: int) -> Table:
    """Values of the entries that should change.

    Parameters
    ----------
    rows
        Measured candidates, all of one target.
    tables
        What may change: a family's table, a group or an entry of it, and that of all FMA kernels where it is meant to.
    build
        The folder of a build, whose programs price the candidates.
    seconds
        How long to look for better values.
    most
        Of a convolution's candidates, so many are looked at.
    """
    targets = {row.arch for row in rows}
    if len(targets) != 1:
        raise ValueError(f"candidates of one target can be fitted, not of {sorted(targets)}")
    command = [build / "bench" / "cost_descent", f"--tables={','.join(tables)}", f"--arch={targets.pop()}",
               f"--seconds={seconds}"]
    answer = subprocess.run(command, input=descent_input(rows, build / "tools" / "jitconv-dump", most), check=True,
                            stdout=subprocess.PIPE, text=True)
    return {name: int(value) for name, value in (line.split() for line in answer.stdout.splitlines())}


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, help="a build's folder: price the candidates anew")
    parser.add_argument("--fit", action="append", default=[], metavar="TABLE",
                        help="print a new table of a family, of which the group or the entry that a name such as "
                             "wgmma.store gives may change, or all")
    parser.add_argument("--shared", action="store_true", help=f"fit the table of all FMA kernels ({SHARED_TABLE}), too")
    parser.add_argument("--seconds", type=float, default=300, help="to look for better values of a family")
    parser.add_argument("--candidates", type=int, default=3000, help="of a convolution that are priced anew")
    parser.add_argument("--tables", type=pathlib.Path, default=TABLES)
    parser.add_argument("--write", action="store_true", help="change the file of the tables")
    arguments = parser.parse_args()
    if arguments.fit and arguments.build is None:
        parser.error("--fit needs --build, whose programs price the candidates")
    source = arguments.tables.read_text(encoding="utf-8")
    known = dict.fromkeys(name.split(".")[0] for name in parse_tables(source))
    for part in arguments.fit:
        if part.split(".")[0] not in known:
            parser.error(f"--fit: '{part}' has no table in {arguments.tables}, which has {', '.join(known)}")
    rows = read_files(arguments.files)
    shown = rows
    if arguments.build is not None:
        dump = str(arguments.build / "tools" / "jitconv-dump")
        shown = [price_anew(row, dump, arguments.candidates) for row in rows]
    print(report(shown))
    for part in arguments.fit:
        tables = (part, SHARED_TABLE) if arguments.shared else (part,)
        source = changed_tables(source, fit(rows, tables, arguments.build, arguments.seconds, arguments.candidates))
        print("\n".join(table_of(source, name.split(".")[0]) for name in tables))
    if arguments.write:
        arguments.tables.write_text(source, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
