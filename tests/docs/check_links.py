#!/usr/bin/env python3
"""Checks the links of every Markdown page: files and anchors exist. Links to other sites are not looked at.

    tests/docs/check_links.py [FOLDER]     default: the project

Python 3.9, standard library only.
"""
from __future__ import annotations

import pathlib
import re
import sys
import urllib.parse

from markdown import ROOT, anchors, links, pages


def problem_of(page: pathlib.Path, target: str, root: pathlib.Path) -> str | None:
    """Why a link leads nowhere; None if it is right or leads to another site."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    path = (page.parent / urllib.parse.unquote(name)).resolve() if name else page
    if not path.is_relative_to(root):
        return "leads out of the project"
    if not path.exists():
        return "does not exist"
    if anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
        return "no heading has this anchor"
    return None


def problems_of(root: pathlib.Path) -> list[str]:
    problems: list[str] = []
    for page in pages(root):
        for line, target in links(page.read_text(encoding="utf-8")):
            problem = problem_of(page, target, root)
            if problem:
                problems.append(f"{page.relative_to(root)}:{line}: {target}: {problem}")
    return problems


def main() -> int:
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    if not pages(root):
        print(f"check_links.py: no page in {root}", file=sys.stderr)
        return 1
    problems = problems_of(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
