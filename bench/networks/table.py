#!/usr/bin/env python3
"""Prints the Markdown table of docs/pytorch-performance.md from files that compare.py wrote.

    python bench/networks/table.py docs/performance/h100-pytorch-networks.json

A row is a network in one mode and precision. `in a CUDA graph` are milliseconds of a step without the host;
`launched` are those of a step as Python launches it. Ratios are of the faster of PyTorch's two memory formats over the
fastest conversion of the same rows.
"""

from __future__ import annotations

import json
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
PYTORCH = ("eager", "channels_last")
JITCONV = ("jitconv", "jitconv_channels_last", "jitconv_fused", "auto")
TITLES = ("eager", "channels_last", "jitconv", "jitconv channels_last", "jitconv fused", "auto")

Row = dict[str, Any]
Case = tuple[str, str, str]


def cases(rows: list[Row]) -> dict[Case, dict[str, Row]]:
    """Return the rows of each network, mode and precision by variant, in the order of the files."""
    found: dict[Case, dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["network"], row["mode"], row["precision"]), {})[row["variant"]] = row
    return found


def line(case: Case, variants: dict[str, Row]) -> str:
    """Return the line of a case."""
    network, mode, precision = case
    graphs = {name: row["graph_ms"] for name, row in variants.items() if row["graph_ms"]}
    fastest = min(graphs[name] for name in JITCONV if name in graphs)
    cells = [f"**{graphs[n]:.2f}**" if graphs.get(n) == fastest else f"{graphs[n]:.2f}" if n in graphs else "-"
             for n in PYTORCH + JITCONV]  # fmt: skip
    best = min(graphs[name] for name in PYTORCH)
    launched = [f"{variants[name]['ms']:.1f}" for name in ("eager", "jitconv", "auto")]
    precision = "TF32" if precision == "tf32" else precision
    return "| " + " | ".join([NAMES[network], mode, precision, *cells, f"{best / fastest:.2f}x", *launched]) + " |"


def main() -> int:
    """Print the table."""
    rows = [row for path in sys.argv[1:] for row in json.loads(pathlib.Path(path).read_text())["results"]]
    titles = [f"in a CUDA graph, ms: {TITLES[0]}", *TITLES[1:], "ratio", "launched, ms: eager", "jitconv", "auto"]
    print("| | mode | type | " + " | ".join(titles) + " |")
    print("|" + "---|" * (3 + len(titles)))
    for case, variants in cases(rows).items():
        print(line(case, variants))
    return 0


if __name__ == "__main__":
    sys.exit(main())
