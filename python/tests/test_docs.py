"""The Python programs of the documentation run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# Sizes that the CPU can do: PyTorch computes these programs unless they ask for jitconv.
SMALLER = {"8, 32, 512, 512": "1, 32, 24, 24"}


def programs() -> list[object]:
    found: list[object] = []
    for page in ("README.md", "docs/pytorch.md", "python/README.md"):
        blocks = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / page).read_text(), re.M | re.S)
        found += [pytest.param(block, id=f"{page}-{i}") for i, block in enumerate(blocks)]
    return found


PROGRAMS = programs()


def test_all_pages_have_programs() -> None:
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str) -> None:
    for size, smaller in SMALLER.items():
        program = program.replace(size, smaller)
    exec(compile(program, "documentation", "exec"), {})
