#!/usr/bin/env python3
"""Checks that the messages that docs/troubleshooting.md explains are those of the sources.

    tests/docs/check_messages.py

A heading in backquotes is a message, and so is the first cell of a row; `…` stands for what varies. Every fixed part of
it must occur in one of the string literals of the library, the tools, ./dev or cmake/. Names of CUDA's errors are not
looked for. Python 3.9, standard library only.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from markdown import ROOT, prose_lines

PAGE = ROOT / "docs" / "troubleshooting.md"
FOLDERS = ("codegen", "cache", "host", "runtime", "tools", "cmake")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SHORTEST = 4  # parts that are shorter occur anywhere


def joined_literals(source: str) -> str:
    """The string literals of a source, one a line; literals with nothing but space between them are one."""
    out: list[str] = []
    end = -1
    for match in LITERAL.finditer(source):
        if end >= 0 and not source[end:match.start()].strip() and out:
            out[-1] += match[1]
        else:
            out.append(match[1])
        end = match.end()
    return "\n".join(out).replace('\\"', '"').replace("\\n", " ")


def all_literals() -> str:
    texts: list[str] = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                texts.append(joined_literals(path.read_text(encoding="utf-8")))
            elif path.suffix == ".cmake":
                texts.append(path.read_text(encoding="utf-8"))
    for script in ("dev", "cmake/dev_setup.sh"):
        texts.append("dev: " + (ROOT / script).read_text(encoding="utf-8").replace('die "', 'die "dev: '))
    return re.sub(r"\$?\{[^{}\n]*\}", "…", "\n".join(texts))


def messages(page: str) -> Iterator[tuple[int, str]]:
    for number, line in prose_lines(page):
        message = re.match(r"### `(.*)`$", line) or re.match(r"\| `([^`]*)` \|", line)
        if message:
            yield number, message[1]


def fixed_parts(message: str) -> list[str]:
    parts = [part.strip() for part in message.split("…")]
    return [part for part in parts if len(part) >= SHORTEST and "CUDA_ERROR" not in part]


def main() -> int:
    literals = all_literals()
    problems: list[str] = []
    found = 0
    for number, message in messages(PAGE.read_text(encoding="utf-8")):
        found += 1
        parts = fixed_parts(message)
        if not parts:
            problems.append(f"{PAGE.name}:{number}: nothing in {message!r} can be looked for")
        problems += [f"{PAGE.name}:{number}: no source says {part!r}" for part in parts if part not in literals]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not found:
        print(f"{PAGE.name}: no message", file=sys.stderr)
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
