"""What the checks of the documentation need of Markdown: fenced blocks, headings with their anchors, links.

No parser of Markdown: it knows the forms that these pages use. Python 3.9, standard library only.
"""
from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Block:
    """A fenced block: its language, the line before it, and where its lines stand in the page, [first, end)."""
    language: str
    before: str
    lines: list[str]
    first: int
    end: int


def fenced_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    lines = text.split("\n")
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("```"):
            continue
        if start is None:
            start = number
            continue
        before = lines[start - 1] if start > 0 else ""
        language = lines[start].strip().strip("`")
        blocks.append(Block(language, before, lines[start + 1:number], start + 1, number))
        start = None
    return blocks


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside fenced blocks, with their numbers from 1."""
    lines = text.split("\n")
    inside = {number for block in fenced_blocks(text) for number in range(block.first - 1, block.end + 1)}
    return ((number + 1, line) for number, line in enumerate(lines) if number not in inside)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page, and those that it sets itself."""
    found: set[str] = set()
    for _, line in prose_lines(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-")
            number = 0
            while (f"{slug}-{number}" if number else slug) in found:
                number += 1
            found.add(f"{slug}-{number}" if number else slug)
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return found


def links(text: str) -> Iterator[tuple[int, str]]:
    """The targets of links and images, with the number of their line. A link's text may go on in the next line."""
    for number, line in prose_lines(text):
        plain = re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", plain):
            yield number, target
        for target in re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", plain):
            yield number, target
        for target in re.findall(r"<(?:img|source|a)\b[^>]*?(?:src|srcset|href)=\"([^\"]+)\"", plain):
            yield number, target


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    """Every Markdown page of the tree, less what builds and hidden folders hold."""
    found: list[pathlib.Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        found += [pathlib.Path(folder, name) for name in names if name.endswith(".md")]
    return sorted(found)
