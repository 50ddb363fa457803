#!/usr/bin/env python3
"""Rewrites the tables of docs/performance.md and README.md from the JSON files of a run.

    python3 bench/performance_table.py docs/performance

The folder holds what bench/compare_pytorch.py, bench/ablate.py and jitconv-run wrote on an H200. A table stands between the lines
`<!-- performance table NAME -->` and `<!-- end -->`; everything else in the documents is left alone. Also draws tensor.svg
in the folder.
"""

import json
import pathlib
import re
import statistics
import sys

import ceilings

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
            f"{comparison['cudnn']}, {comparison['date'][:10]}, commit {comparison['commit'][:7]}, {comparison['dtype']} tensors, "
            f"math mode `{comparison['math']}`, random data, median of {comparison['launches']} interleaved launches.")


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


MODES = {"tf32": "f32", "bf16": "bf16"}  # of the tables of tensor cores, and their tensors' types
TENSOR = ["A", "A_bias", "B", "B_bias", "C", "C_bias", "D", "D_bias", "KB_L1_50", "KB_L1_62", "KB_L1_86_pw", "KB_L1_87"]
VARIANTS = ["whole", "without loads", "without stores", "main loop alone"]


def cudnn_best(one, mode):
    return min(one["ms"][name] for name in (f"cudnn_{mode}", f"cudnn_{mode}_channels_last") if name in one["ms"])


def ratio_of(one, mode):
    return cudnn_best(one, mode) / one["ms"]["jitconv"]


def tensor_rows(comparison, mode, names):
    lines = ["| | family | floor ms | jitconv ms | of floor | TFLOP/s | cuDNN ms | channels_last ms | ratio |",
             "|---|---|---|---|---|---|---|---|---|"]
    for one in comparison["results"]:
        if names and one["config"] not in names:
            continue
        ms, floor = one["ms"], ceilings.floor_ms(one, one["family"], MODES[mode])
        ours, last = ms["jitconv"], ms.get(f"cudnn_{mode}_channels_last")
        lines.append(f"| {one['config']} | {one['family']} | {floor:.3f} | **{ours:.3f}** | {floor / ours:.0%} | "
                     f"{one['flop'] / ours * 1e-9:.0f} | {ms[f'cudnn_{mode}']:.3f} | {last:.3f} | "
                     f"{ratio_of(one, mode):.2f} |")
    return lines


def geometric_mean(values):
    return statistics.geometric_mean(values)


def list_sentence(comparison, mode):
    """A list's ratios, with weights packed in every launch and, where the comparison has it, once before."""

    def ratios(packed):
        return [cudnn_best(one, mode) / (one["ms"].get("jitconv_packed", one["ms"]["jitconv"]) if packed
                                         else one["ms"]["jitconv"]) for one in comparison["results"]]

    every, once = ratios(False), ratios(True)
    sentence = (f"jitconv is at or ahead of cuDNN's best layout on {sum(ratio >= 1 for ratio in every)} of {len(every)}; "
                f"geometric mean of the ratios {geometric_mean(every):.2f}, lowest {min(every):.2f}, highest "
                f"{max(every):.2f}.")
    if any("jitconv_packed" in one["ms"] for one in comparison["results"]):
        sentence += (f" With weights packed once: {sum(ratio >= 1 for ratio in once)} of {len(once)}, geometric mean "
                     f"{geometric_mean(once):.2f}.")
    nhwc = comparison["layout"] == "nhwc"
    its_name = f"cudnn_{mode}_channels_last" if nhwc else f"cudnn_{mode}"
    same = [one["ms"][its_name] / one["ms"]["jitconv"] for one in comparison["results"]]
    return sentence + (f" Of cuDNN on {'NHWC' if nhwc else 'NCHW'} tensors, the layout jitconv has here, it is at or "
                       f"ahead on {sum(ratio >= 1 for ratio in same)}, geometric mean {geometric_mean(same):.2f}.")


def best_layout_sentence(nchw, nhwc, mode):
    """Of a list measured in both layouts: jitconv's better one against cuDNN's better one of the same run."""
    ratios = {}
    for one in nchw["results"] + nhwc["results"]:
        ratios.setdefault(one["config"], []).append(ratio_of(one, mode))
    best = [max(of_one) for of_one in ratios.values()]
    return [f"Each in its better layout: jitconv is at or ahead on {sum(ratio >= 1 for ratio in best)} of {len(best)}, "
            f"geometric mean {geometric_mean(best):.2f}, lowest {min(best):.2f}."]


def list_rows(comparison, mode):
    """A list's ratios in words, and the convolutions where cuDNN is ahead in a table."""
    ratios = {one["config"]: ratio_of(one, mode) for one in comparison["results"]}
    lines = [list_sentence(comparison, mode)]
    behind = [one for one in comparison["results"] if ratios[one["config"]] < 1]
    if behind:
        lines += ["", "| cuDNN is ahead on | family | jitconv ms | packed before | cuDNN ms | channels_last | ratio |",
                  "|---|---|---|---|---|---|---|"]
        for one in sorted(behind, key=lambda one: ratios[one["config"]]):
            ms = one["ms"]
            packed = f"{ms['jitconv_packed']:.4f}" if "jitconv_packed" in ms else "-"
            lines.append(f"| {one['spec']} | {one['family']} | {ms['jitconv']:.4f} | {packed} | {ms[f'cudnn_{mode}']:.4f} | "
                         f"{ms[f'cudnn_{mode}_channels_last']:.4f} | {ratios[one['config']]:.2f} |")
    return lines


def ablation_rows(results):
    ms = {(one["mode"], one["config"], one["variant"]): one["ms"] for one in results}
    lines = ["| | " + " | ".join(VARIANTS) + " |", "|---" * (len(VARIANTS) + 1) + "|"]
    for mode, config in dict.fromkeys((one["mode"], one["config"]) for one in results):
        cells = [f"{ms[mode, config, variant]:.3f}" for variant in VARIANTS]
        lines.append(f"| {config} {mode} | " + " | ".join(cells) + " |")
    return lines


def plot(comparisons):
    """Bars of floor, jitconv and cuDNN for the headline cases with bias, as SVG that light and dark pages can show."""
    bars = [("floor", "#8a8f98"), ("jitconv", "#2f9e6e"), ("cuDNN, best layout", "#c2703d")]
    groups = []
    for mode, comparison in comparisons.items():
        for one in comparison["results"]:
            if one["config"] in ("A_bias", "B_bias", "C_bias", "D_bias"):
                groups.append((f"{one['config'][0]} {mode}",
                               [ceilings.floor_ms(one, one["family"], MODES[mode]), one["ms"]["jitconv"],
                                cudnn_best(one, mode)]))
    left, top, height, width = 70, 40, 20, 620
    scale = (width - left - 60) / max(value for _, values in groups for value in values)
    rows, y = [], top
    for name, values in groups:
        rows.append(f'<text x="{left - 8}" y="{y + 34}" text-anchor="end">{name}</text>')
        for (_, colour), value in zip(bars, values):
            rows.append(f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="{height - 4}" fill="{colour}"/>')
            rows.append(f'<text x="{left + value * scale + 5:.1f}" y="{y + 13}">{value:.2f}</text>')
            y += height
        y += 14
    legend = "".join(f'<rect x="{left + 150 * i}" y="10" width="12" height="12" fill="{colour}"/>'
                     f'<text x="{left + 150 * i + 18}" y="21">{name}</text>' for i, (name, colour) in enumerate(bars))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" font-family="sans-serif" '
            f'font-size="12" fill="#8a8f98"><title>Milliseconds with bias, NVIDIA H200</title>{legend}'
            + "".join(rows) + "</svg>\n")


def main():
    folder = pathlib.Path(sys.argv[1])

    def load(name):
        return json.loads((folder / name).read_text())

    comparison, run = load("h200-ieee-vs-cudnn.json"), load("h200-ieee-run.json")
    tensor = {mode: load(f"h200-{mode}-vs-cudnn.json") for mode in MODES}
    tables = {
        "all": [conditions(comparison), ""] + comparison_rows(comparison, run),
        "headline": [conditions(comparison), ""] + comparison_rows(comparison, run, HEADLINE),
        "compile": compile_rows(run),
        "ablation": ablation_rows(load("h200-ablation.json")),
    }
    for mode, one in tensor.items():
        tables[mode] = [conditions(one), ""] + tensor_rows(one, mode, TENSOR)
    nhwc = load("h200-bf16-nhwc-vs-cudnn.json")
    tables["bf16-nhwc"] = [conditions(nhwc), ""] + tensor_rows(nhwc, "bf16", TENSOR)
    nhwc = load("h200-tf32-nhwc-vs-cudnn.json")
    tables["tf32-nhwc"] = [conditions(nhwc), ""] + tensor_rows(nhwc, "tf32", TENSOR)
    for name in ("kernelbench-l2", "deepbench", "deepbench-nhwc"):
        tables[name] = list_rows(load(f"h200-tf32-{name}.json"), "tf32")
    tables["deepbench-best"] = best_layout_sentence(load("h200-tf32-deepbench.json"),
                                                    load("h200-tf32-deepbench-nhwc.json"), "tf32")
    (folder / "tensor.svg").write_text(plot(tensor))
    for name in ("README.md", "docs/performance.md"):
        path = ROOT / name
        text = path.read_text()
        for table, lines in tables.items():
            block = f"<!-- performance table {table} -->\n" + "\n".join(lines) + "\n<!-- end -->"
            text = re.sub(rf"<!-- performance table {table} -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
        path.write_text(text)


if __name__ == "__main__":
    main()
