#!/usr/bin/env python3
"""Mutation testing: applies the mutants of mutants/ one at a time to a copy of the tree, builds, runs the test layers
and reports which of them noticed.

    tests/mutation/run.py                      every mutant, every layer that meets it; hours on two cores
    tests/mutation/run.py --only 'direct_*'    some, by name
    tests/mutation/run.py --layers host,unit   some layers
    tests/mutation/run.py --first              each mutant until a layer has killed it
    tests/mutation/run.py --check              only: does the list still fit the tree? (a ctest entry)

A layer kills a mutant if one of its programs fails, crashes or hangs. Every layer runs, whatever the others said, so
that the table shows what each is worth alone; with --first only until one has killed the mutant. The working tree is
never touched. Python 3.9, standard library only.
"""
import argparse
import concurrent.futures
import json
import pathlib
import queue
import sys

from layers import LAYERS, programs_for
from mutants import MUTANTS
from report import summary_lines, write_document, write_json
from workshop import Workshop, problems_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="check the list against the tree and stop")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="mutants of these names (shell patterns)")
    parser.add_argument("--layers", default=",".join(LAYERS), help="default: %(default)s")
    parser.add_argument("--first", action="store_true", help="run no more layers of a mutant that one has killed")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time, each with a tree and build of its own")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutation", help="default: %(default)s")
    parser.add_argument("--keep", action="store_true",
                        help="keep the results of an earlier run for mutants and layers that are not run now")
    parser.add_argument("--continue", dest="resume", action="store_true",
                        help="as --keep, and do not run again what has a result in all of these layers")
    parser.add_argument("--document", type=pathlib.Path, help="write the tables into this file, e.g. docs/mutation.md")
    return parser.parse_args()


def selected(patterns):
    if not patterns:
        return MUTANTS
    for pattern in patterns:
        if not any(pathlib.PurePath(mutant.name).match(pattern) for mutant in MUTANTS):
            sys.exit(f"run.py: no mutant is named {pattern}")
    return [one for one in MUTANTS if any(pathlib.PurePath(one.name).match(pattern) for pattern in patterns)]


def earlier_results(path, arguments):
    if not (arguments.keep or arguments.resume) or not path.exists():
        return {}
    known = {mutant.name for mutant in MUTANTS}
    results = json.loads(path.read_text())["mutants"]
    return {result["name"]: result for result in results if result["name"] in known}


def merged(earlier, result):
    """The new result, with the earlier one's other layers."""
    if earlier is None or "build" in result["layers"] or "build" in earlier["layers"]:
        return result
    layers = earlier["layers"] | result["layers"]
    return result | {"layers": layers, "killed": any(said["verdict"] == "killed" for said in layers.values())}


def is_complete(mutant, result, layers, first):
    if result is None:
        return False
    if first and result["killed"]:
        return True
    return "build" in result["layers"] or all(layer in result["layers"] or not programs_for(mutant.area, layer)
                                              for layer in layers)


def one_line(number, total, result):
    said = ", ".join(f"{name} {layer['verdict']}" for name, layer in result["layers"].items())
    return f"[{number}/{total}] {'killed' if result['killed'] else 'SURVIVED':8} {result['name']}: {said}"


def main():
    arguments = parse_arguments()
    problems = problems_of(MUTANTS, ROOT)
    for problem in problems:
        print(f"run.py: {problem}", file=sys.stderr)
    if problems or arguments.check:
        print(f"{len(MUTANTS)} mutants, {len(problems)} problems")
        return 1 if problems else 0
    layers = arguments.layers.split(",")
    for layer in layers:
        if layer not in LAYERS:
            sys.exit(f"run.py: no layer is named {layer}; there are {', '.join(LAYERS)}")
    mutants = selected(arguments.only)
    if arguments.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0

    json_path = arguments.work / "report.json"
    results = earlier_results(json_path, arguments)
    if arguments.resume:
        mutants = [mutant for mutant in mutants
                   if not is_complete(mutant, results.get(mutant.name), layers, arguments.first)]
    workshops = queue.Queue()
    for number in range(arguments.jobs):
        workshop = Workshop(ROOT, arguments.work / str(number), layers, arguments.first)
        workshop.prepare(mutants)
        workshops.put(workshop)

    def run(mutant):
        workshop = workshops.get()
        try:
            return workshop.run(mutant)
        finally:
            workshops.put(workshop)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for number, result in enumerate(pool.map(run, mutants), 1):
            result = merged(results.get(result["name"]), result)
            results[result["name"]] = result
            print(one_line(number, len(mutants), result), flush=True)
            ordered = [results[mutant.name] for mutant in MUTANTS if mutant.name in results]
            write_json(json_path, ordered)
    ordered = [results[mutant.name] for mutant in MUTANTS if mutant.name in results]
    print("\n".join(summary_lines(ordered)))
    if arguments.document:
        write_document(arguments.document, ordered)
    return 0


if __name__ == "__main__":
    sys.exit(main())
