"""The tables of codegen/costs/ as Python: their entries by name, and the file with other values."""

from __future__ import annotations

import re

Table = dict[str, int]

TOKEN = re.compile(r"//[^\n]*|\.(?P<name>\w+)\s*=\s*(?:(?P<open>\{)|(?P<value>[0-9']+))|(?P<close>\})")


def _values(source: str) -> list[tuple[str, re.Match[str]]]:
    """The entries of the tables, and where their values stand."""
    path: list[str] = []
    found = []
    for token in TOKEN.finditer(source):
        if token["open"]:
            path.append(token["name"])
        elif token["value"]:
            found.append((".".join([*path, token["name"]]), token))
        elif token["close"] and path:
            path.pop()
    return found


def parse_tables(source: str) -> Table:
    """The values of a file like codegen/costs/h200.h, by the names of entries."""
    return {name: int(token["value"].replace("'", "")) for name, token in _values(source)}


def changed_tables(source: str, values: Table) -> str:
    """The file with other values."""
    for name, token in reversed(_values(source)):
        if name in values:
            begin, end = token.span("value")
            source = source[:begin] + f"{values[name]:,}".replace(",", "'") + source[end:]
    return source


def table_of(source: str, family: str) -> str:
    """The lines of a family's table."""
    begin = source.index(f"    .{family} = {{")
    depth = 0
    for at in range(begin, len(source)):
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        if source[at] == "}" and depth == 0:
            return source[begin:at + 1] + ","
    raise ValueError(f"the table of {family} has no end")
