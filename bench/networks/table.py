#!/usr/bin/env python3
"""Prints the Markdown tables of docs/pytorch-performance.md from files that compare.py wrote.

    python bench/networks/table.py docs/performance/h100-pytorch-networks.json

A row is a network in one mode and precision. `in a CUDA graph` are milliseconds of a step without the host;
`launched` are those of a step as Python launches it. Ratios are of the faster of PyTorch's two memory formats over the
fastest conversion of the same rows. If a model was compiled by torch.compile, in whichever mode, a second table has its
steps, which replay CUDA graphs, beside those of the graphs of the others.
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
COMPILED = ("max_autotune", "reduce_overhead")
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


def compiled_line(case: Case, variants: dict[str, Row]) -> str:
    """Return the line of a case in which torch.compile has rows."""
    network, mode, precision = case
    compiled = next(variants[name] for name in COMPILED if name in variants)
    shown = [variants[name] for name in ("eager", "channels_last")] + [compiled]
    shown += [variants[name] for name in JITCONV if name in variants and not name.startswith("auto")]
    times = [row["graph_ms"] or row["ms"] for row in shown]
    cells = [f"**{time:.2f}**" if time == min(times) else f"{time:.2f}" for time in times]
    seconds = [f"{row['first_step_s']:.0f}" for row in (compiled, variants["jitconv"])]
    memory = [f"{variants[name]['peak_mib']:.0f}" for name in ("eager", "jitconv")]
    ratio = times[2] / min(times[3:])
    precision = "TF32" if precision == "tf32" else precision
    name = compiled["variant"].replace("_", "-")
    return "| " + " | ".join([NAMES[network], mode, precision, name, *cells, f"{ratio:.2f}x", *seconds, *memory]) + " |"


def print_compiled(found: dict[Case, dict[str, Row]]) -> None:
    """Print the table of torch.compile."""
    titles = ["in a CUDA graph, ms: eager", "channels_last", "torch.compile", *TITLES[2:5], "torch.compile over the fastest",
              "first step, s: torch.compile", "jitconv", "peak MiB: eager", "jitconv"]  # fmt: skip
    print("\n| | mode | type | of torch.compile | " + " | ".join(titles) + " |")
    print("|" + "---|" * (4 + len(titles)))
    for case, variants in found.items():
        print(compiled_line(case, variants))


def main() -> int:
    """Print the tables."""
    rows = [row for path in sys.argv[1:] for row in json.loads(pathlib.Path(path).read_text())["results"]]
    titles = [f"in a CUDA graph, ms: {TITLES[0]}", *TITLES[1:], "ratio", "launched, ms: eager", "jitconv", "auto"]
    print("| | mode | type | " + " | ".join(titles) + " |")
    print("|" + "---|" * (3 + len(titles)))
    found = cases(rows)
    for case, variants in found.items():
        if "auto" in variants:
            print(line(case, variants))
    compiled = {case: variants for case, variants in found.items() if any(name in variants for name in COMPILED)}
    if compiled:
        print_compiled(compiled)
    return 0


if __name__ == "__main__":
    sys.exit(main())
