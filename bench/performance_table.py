#!/usr/bin/env python3
"""Rewrites the tables of docs/performance.md and README.md from the JSON files of a run.

    python3 bench/performance_table.py docs/performance/h200-ieee-vs-cudnn.json docs/performance/h200-ieee-run.json

The first file is bench/compare_pytorch.py's, the second jitconv-run's. A table stands between the lines
`<!-- performance table NAME -->` and `<!-- end -->`; everything else in the documents is left alone.
"""

import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADLINE = ["A", "A_bias", "B", "B_bias", "C", "C_bias", "D", "D_bias", "KB_L1_50", "KB_L1_82", "KB_L1_83", "KB_L1_84",
            "KB_L1_85", "KB_L1_86_dw"]


def comparison_rows(comparison, run, names=None):
    floors = {one["config"]: one["floor_ms"] for one in run["results"]}
    lines = ["| | family | floor ms | jitconv ms | of floor | cuDNN fp32 ms | channels_last ms | ratio |",
             "|---|---|---|---|---|---|---|---|"]
    for one in comparison["results"]:
        if names and one["config"] not in names:
            continue
        ms, floor = one["ms"], floors[one["config"]]
        best = min(ms["cudnn_fp32"], ms["cudnn_fp32_channels_last"])
        lines.append(
            f"| {one['config']} | {one['family']} | {floor:.3f} | **{ms['jitconv']:.3f}** | {floor / ms['jitconv']:.0%} "
            f"| {ms['cudnn_fp32']:.3f} | {ms['cudnn_fp32_channels_last']:.3f} | {best / ms['jitconv']:.2f} |")
    return lines


def conditions(comparison):
    return (f"{comparison['gpu']}, driver {comparison['driver']}, PyTorch {comparison['torch']}, cuDNN "
            f"{comparison['cudnn']}, {comparison['date'][:10]}, commit {comparison['commit']}, math mode "
            f"`{comparison['math']}`, random data, median of {comparison['launches']} interleaved launches.")


def compile_rows(run):
    compiled = [one["compiled"] for one in run["results"]]
    cold = [one["cold_ms"] for one in compiled if one.get("cold_ms")]
    warm = [one["warm_ms"] for one in compiled if one.get("warm_ms")]
    load = [one["load_ms"] for one in run["results"] if one.get("load_ms")]
    lines = ["| | median ms | worst ms |", "|---|---|---|"]
    for name, values in (("cold: plan, generate, NVRTC", cold), ("warm: plan, generate, disk cache", warm),
                         ("load into the context", load)):
        lines.append(f"| {name} | {statistics.median(values):.2f} | {max(values):.2f} |")
    return lines


def main():
    comparison, run = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
    tables = {
        "all": [conditions(comparison), ""] + comparison_rows(comparison, run),
        "headline": [conditions(comparison), ""] + comparison_rows(comparison, run, HEADLINE),
        "compile": compile_rows(run),
    }
    for name in ("README.md", "docs/performance.md"):
        path = ROOT / name
        text = path.read_text()
        for table, lines in tables.items():
            block = f"<!-- performance table {table} -->\n" + "\n".join(lines) + "\n<!-- end -->"
            text = re.sub(rf"<!-- performance table {table} -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
        path.write_text(text)


main()
