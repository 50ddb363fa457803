"""The page of explain(): a bar for each time, as one HTML file without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

#: What is shown of one operation: its name, kernel family, reason, and the times of floor, jitconv and PyTorch in ms.
Bar: TypeAlias = tuple[str, str, str, float | None, float | None, float | None]

_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; color: #222; }
table { border-collapse: collapse; width: 100%; }
td { padding: 3px 8px; vertical-align: middle; border-top: 1px solid #ddd; }
td.name { white-space: nowrap; }
td.name small { color: #666; display: block; }
td.bars { width: 60%; }
.track { position: relative; height: 13px; margin: 1px 0; }
.bar { height: 100%; border-radius: 2px; }
.jitconv { background: #2a78b8; } .pytorch { background: #e0803a; }
.floor { position: absolute; top: 0; bottom: 0; width: 2px; background: #222; }
.ms { position: absolute; top: -3px; font-size: 11px; padding-left: 4px; white-space: nowrap; }
.slower { color: #b00; font-weight: bold; }
"""


def page(title: str, bars: Sequence[Bar], notes: Sequence[str]) -> str:
    """Return the page.

    Parameters
    ----------
    title
        What stands above: the device and the versions.
    bars
        The operations, in order. All bars have one scale.
    notes
        Lines below.
    """
    longest = max((ms for bar in bars for ms in bar[3:] if ms is not None), default=0.0)
    rows = "\n".join(_row(bar, longest) for bar in bars)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>jitconv</title><style>{_STYLE}</style>'
        f"</head><body><h1>Convolutions by kernel</h1><p>{escape(title)}. "
        '<span class="jitconv">&emsp;</span> jitconv, <span class="pytorch">&emsp;</span> PyTorch, '
        "a black line: what the GPU's rates allow at best.</p>\n"
        f"<table>\n{rows}\n</table>\n{below}</body></html>\n"
    )


def _row(bar: Bar, longest: float) -> str:
    name, family, why, floor, mine, theirs = bar
    slower = mine is not None and theirs is not None and mine > theirs
    ratio = "" if mine is None or theirs is None else f"{theirs / mine:.2f}x"
    tracks = "".join(_track(ms, floor, css, longest) for ms, css in ((mine, "jitconv"), (theirs, "pytorch")))
    return (
        f'<tr title="{escape(why)}"><td class="name">{escape(name)}<small>{escape(family)}</small></td>'
        f'<td class="{"slower" if slower else "faster"}">{ratio}</td><td class="bars">{tracks}</td></tr>'
    )


def _track(ms: float | None, floor: float | None, css: str, longest: float) -> str:
    if ms is None or longest <= 0:
        return ""
    width = 85 * ms / longest
    tick = "" if floor is None else f'<div class="floor" style="left:{85 * floor / longest:.2f}%"></div>'
    return (
        f'<div class="track"><div class="bar {css}" style="width:{width:.2f}%"></div>{tick}'
        f'<span class="ms" style="left:{width:.2f}%">{ms:.4f} ms</span></div>'
    )
