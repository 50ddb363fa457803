#!/usr/bin/env python3
"""Prints the Markdown tables of docs/pytorch-performance.md from files that compare.py wrote.

    python bench/networks/table.py docs/performance/h200-pytorch-networks.json

A row is a network in one mode and precision. The first table has milliseconds of a step in a CUDA graph, without the
host; `compiled` is by torch.compile in the mode that was measured, and `auto compiled` in that memory format. What was
not measured has no column. Ratios are of PyTorch's fastest over the fastest of the policy `auto`, and of eager over
`jitconv`, which compute the same tensors. The second table has what a step costs as Python launches it, the first step
with and without a cache on disk, memory, and how far losses are apart.
"""

from __future__ import annotations

import json
import math
import pathlib
import sys
from typing import Any

NAMES = {
    "resnet50": "ResNet-50",
    "convnext_t": "ConvNeXt-T",
    "efficientnet_b0": "EfficientNet-B0",
    "unet": "U-Net",
    "deeplabv3": "DeepLabV3",
    "edsr": "EDSR",
    "speech": "speech, 1-D",
}
PYTORCH = ("eager", "channels_last", "compiled")
ALWAYS = ("jitconv", "jitconv_channels_last", "jitconv_fused")
OWN_GRAPHS = ("reduce_overhead", "max_autotune")
AUTO = ("auto", "auto_channels_last", "auto_compiled")
RATIOS = ("PyTorch / auto", "eager / jitconv")
LAUNCHED = ("launched, ms: eager", "compiled", "jitconv", "auto", "first step, s: eager", "jitconv", "auto",
            "from disk, s: compiled", "jitconv", "auto", "peak MiB: eager", "jitconv", "loss")  # fmt: skip

Row = dict[str, Any]
Case = tuple[str, str, str]


def cases(rows: list[Row]) -> dict[Case, dict[str, Row]]:
    """Return the rows of each network, mode and precision by variant, in the order of the networks above."""
    found: dict[Case, dict[str, Row]] = {}
    for row in rows:
        variant = row["variant"].replace("channels_last_compiled", "compiled")
        variant = "compiled" if variant in OWN_GRAPHS else variant
        found.setdefault((row["network"], row["mode"], row["precision"]), {})[variant] = row
    names = list(NAMES)
    return dict(sorted(found.items(), key=lambda item: (names.index(item[0][0]), item[0][1], item[0][2] != "tf32")))


def step_ms(row: Row) -> float:
    """Return the time of a step in a CUDA graph, its own one or that of the comparison."""
    return row["graph_ms"] or row["ms"]  # type: ignore[no-any-return]


def fastest(variants: dict[str, Row], of: tuple[str, ...]) -> float:
    """Return the shortest time in a CUDA graph of some variants; NaN if none was measured."""
    return min((step_ms(variants[name]) for name in of if name in variants), default=math.nan)


def first_cells(case: Case) -> list[str]:
    """Return the cells that name a case."""
    network, mode, precision = case
    return [NAMES[network], mode, "TF32" if precision == "tf32" else precision]


def line(case: Case, variants: dict[str, Row], columns: tuple[str, ...]) -> str:
    """Return the line of a case in the first table."""
    best = fastest(variants, tuple(variants))
    times = [step_ms(variants[name]) if name in variants else None for name in columns]
    cells = ["-" if time is None else f"**{time:.2f}**" if time == best else f"{time:.2f}" for time in times]
    cells += ["-" if math.isnan(ratio) else f"{ratio:.2f}" for ratio in ratios(variants)]
    return "| " + " | ".join([*first_cells(case), *cells]) + " |"


def ratios(variants: dict[str, Row]) -> tuple[float, float]:
    """Return PyTorch's fastest over the fastest with `auto`, and eager over `jitconv`."""
    return (
        fastest(variants, PYTORCH) / fastest(variants, AUTO),
        step_ms(variants["eager"]) / step_ms(variants["jitconv"]),
    )


def launched_line(case: Case, variants: dict[str, Row]) -> str:
    """Return the line of a case in the second table."""

    def cells(key: str, digits: int, *names: str) -> list[str]:
        found = [variants.get(name, {}).get(key) for name in names]
        return ["-" if value is None else f"{value:.{digits}f}" for value in found]

    losses = [variants[name]["losses"] for name in variants if variants[name]["losses"]]
    apart = max((abs(a - b) / abs(b) for row in losses for a, b in zip(row, losses[0], strict=True)), default=None)
    return "| " + " | ".join([
        *first_cells(case), *cells("ms", 1, "eager", "compiled", "jitconv", "auto"),
        *cells("first_step_s", 1, "eager", "jitconv", "auto"),
        *cells("warm_first_step_s", 1, "compiled", "jitconv", "auto"),
        *cells("peak_mib", 0, "eager", "jitconv"), "-" if apart is None else f"{apart:.0e}",
    ]) + " |"  # fmt: skip


def print_header(titles: tuple[str, ...]) -> None:
    """Print the first two lines of a table."""
    print("| | mode | type | " + " | ".join(titles) + " |\n|" + "---|" * (3 + len(titles)))


def main() -> int:
    """Print the tables, and means of the ratios."""
    rows = [row for path in sys.argv[1:] for row in json.loads(pathlib.Path(path).read_text())["results"]]
    found = cases(rows)
    columns = tuple(name for name in PYTORCH + ALWAYS + AUTO if any(name in variants for variants in found.values()))
    print_header(tuple(name.replace("jitconv_", "jitconv ").replace("auto_", "auto ") for name in columns) + RATIOS)
    for case, variants in found.items():
        print(line(case, variants, columns))
    for name, values in zip(RATIOS, zip(*map(ratios, found.values()), strict=True), strict=True):
        values = [value for value in values if not math.isnan(value)]
        mean = math.exp(sum(map(math.log, values)) / len(values))
        ahead = sum(value >= 1 for value in values)
        print(f"\n{name}: {ahead} of {len(values)} at 1 or above, mean {mean:.2f}, lowest {min(values):.2f}")
    print()
    print_header(LAUNCHED)
    for case, variants in found.items():
        print(launched_line(case, variants))
    return 0


if __name__ == "__main__":
    sys.exit(main())
