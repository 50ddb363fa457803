"""Text tables of what jitconv.torch reports: aligned columns on a terminal, rows as dictionaries for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns. `str(table)` aligns them; numbers stand at the right of their column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.rows)

    def as_dicts(self) -> list[dict[str, str]]:
        """Return one dictionary a row, by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def __str__(self) -> str:
        widths = [max(len(cell) for cell in cells) for cells in zip(self.columns, *self.rows, strict=True)]
        right = [bool(self.rows) and all(_is_number(row[i]) for row in self.rows) for i in range(len(self.columns))]
        lines = [self.title] if self.title else []
        lines += [_line(row, widths, right) for row in (self.columns, *self.rows)]
        return "\n".join([*lines, *self.notes])


def _is_number(cell: str) -> bool:
    return cell in ("", "-") or cell[0].isdigit()


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if at_right else cell.ljust(width)
        for cell, width, at_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()
