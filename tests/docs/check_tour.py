#!/usr/bin/env python3
"""Checks that docs/tour.md shows what jitconv-dump prints.

    tests/docs/check_tour.py --dump=PROGRAM           compares; exit code 1 if they differ
    tests/docs/check_tour.py --dump=PROGRAM --write   brings the page up to date

PROGRAM is build/release/tools/jitconv-dump. The page's first shell command says what is dumped. Its blocks in CUDA are
the generated text, in order, less empty lines at their ends. A comment `output of jitconv-dump: FLAGS` says what the
block below it holds. Python 3.9, standard library only.
"""
from __future__ import annotations

import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

from markdown import ROOT, Block, fenced_blocks

OUTPUT = re.compile(r"<!-- output of jitconv-dump: (.*) -->")


def flags_of(blocks: list[Block]) -> list[str]:
    """What the page's first shell command passes to jitconv-dump."""
    for block in blocks:
        if block.language == "sh" and "jitconv-dump" in block.lines[0]:
            return shlex.split(block.lines[0])[1:]
    raise ValueError("no shell command runs jitconv-dump")


def dumped(program: str, flags: list[str]) -> list[str]:
    environment = {**os.environ, "JITCONV_CACHE": "off"}
    result = subprocess.run([program, *flags], capture_output=True, text=True, check=False, env=environment)
    if result.returncode != 0:
        raise ValueError(f"jitconv-dump {' '.join(flags)}: exit code {result.returncode}: {result.stderr.strip()}")
    return result.stdout.rstrip("\n").split("\n")


def dealt_out(blocks: list[list[str]], text: list[str]) -> list[list[str]]:
    """The lines of `text` in as many parts, each line with those of the old blocks that it replaces or follows."""
    old = [(line, number) for number, lines in enumerate(blocks) for line in lines]
    parts: list[list[str]] = [[] for _ in blocks]
    matcher = difflib.SequenceMatcher(None, [line for line, _ in old], text, autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        for i, line in enumerate(text[new_first:new_last]):
            at = first + i if tag == "equal" else max(first - 1, 0) if first == last else min(first + i, last - 1)
            parts[old[at][1]].append(line)
    return [trimmed(part) for part in parts]


def trimmed(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n")


def renewed(text: str, program: str) -> str:
    """The page with the program's present output."""
    blocks = fenced_blocks(text)
    flags = flags_of(blocks)
    kernel = [block for block in blocks if block.language == "cuda"]
    if not kernel:
        raise ValueError("no block in CUDA")
    replacements = dict(zip((block.first for block in kernel),
                            dealt_out([block.lines for block in kernel], dumped(program, flags))))
    for block in blocks:
        wanted = OUTPUT.match(block.before)
        if wanted:
            replacements[block.first] = dumped(program, flags + shlex.split(wanted[1]))
    lines = text.split("\n")
    for block in reversed(blocks):
        if block.first in replacements:
            lines[block.first:block.end] = replacements[block.first]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", required=True, help="the program")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "tour.md", help="default: %(default)s")
    parser.add_argument("--write", action="store_true", help="change the page instead of comparing")
    arguments = parser.parse_args()
    text = arguments.page.read_text(encoding="utf-8")
    try:
        wanted = renewed(text, arguments.dump)
    except ValueError as error:
        print(f"{arguments.page}: {error}", file=sys.stderr)
        return 1
    if wanted == text:
        return 0
    if arguments.write:
        arguments.page.write_text(wanted, encoding="utf-8")
        return 0
    difference = difflib.unified_diff(text.split("\n"), wanted.split("\n"), str(arguments.page), "jitconv-dump",
                                      lineterm="")
    print("\n".join(difference), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
