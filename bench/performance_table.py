#!/usr/bin/env python3
"""Rewrites the tables of README.md, docs/performance.md and docs/performance-lists.md from the JSON files of a run.

    python3 bench/performance_table.py docs/performance

The folder holds what bench/compare_pytorch.py, bench/ablate.py and jitconv-run wrote on an H200. A table stands between the lines
`<!-- performance table NAME -->` and `<!-- end -->`; everything else in the documents is left alone. Also draws tensor.svg
in the folder.
"""

import argparse
import json
import pathlib
import re
import statistics

import ceilings

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADLINE = ["A", "A_bias", "B", "B_bias", "C", "C_bias", "D", "D_bias", "KB_L1_50", "KB_L1_82", "KB_L1_83", "KB_L1_84",
            "KB_L1_85", "KB_L1_86_dw"]


# Those that README.md mentions.
NAMED = ["A", "B", "C", "D", "KB_L1_50", "KB_L1_82", "KB_L1_86_pw"]


def geometry(spec):
    """Input, filter and everything that is not a default, of a spec's text: "8 x 32 x 512 x 512", "64 x 32 x 5 x 9",
    "padding 2,4, dilation 2,3"."""
    fields = dict(word.split("=") for word in spec.split() if "=" in word)
    rest = []
    for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1)):
        values = fields.get(name, str(default)).split(",")
        if set(values) != {str(default)}:
            rest.append(f"{name} {values[0] if len(set(values)) == 1 else ','.join(values)}")
    if "bias" in spec.split():
        rest.append("bias")
    return fields["input"].replace(",", " x "), fields["weight"].replace(",", " x "), ", ".join(rest)


def short_name(spec):
    """Of a convolution in a list: "16 x 512 x 28 x 28 to 256, 1x1, stride 2"."""
    of_input, of_filter, rest = geometry(spec)
    filters, _, *taps = of_filter.split(" x ")
    return f"{of_input} to {filters}, {'x'.join(taps)}" + (f", {rest}" if rest else "")


def configuration_rows(comparison, wanted):
    lines = ["| | input N x C x H x W | filter K x C/groups x R x S | |", "|---|---|---|---|"]
    for one in comparison["results"]:
        if wanted(one["config"]):
            lines.append(f"| {one['config']} | " + " | ".join(geometry(one["spec"])) + " |")
    return lines


def comparison_rows(comparison, run, names=None):
    floors = {one["config"]: one["floor_ms"] for one in run["results"]}
    lines = ["| | family | floor ms | jitconv ms | of floor | cuDNN NCHW ms | cuDNN NHWC ms | ratio |",
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
TITLES = {"tf32": "fp32 tensors, math mode tf32", "bf16": "bf16 tensors"}
JITCONV_COLOUR, CUDNN_COLOUR, FLOOR_COLOUR = "#2f9e6e", "#e08a4f", "#24292f"
VARIANTS = ["whole", "without loads", "without stores", "main loop alone"]


def cudnn_best(one, mode):
    return min(one["ms"][name] for name in (f"cudnn_{mode}", f"cudnn_{mode}_channels_last") if name in one["ms"])


def ratio_of(one, mode):
    return cudnn_best(one, mode) / one["ms"]["jitconv"]


def tensor_rows(comparison, mode, names):
    lines = ["| | family | floor ms | jitconv ms | of floor | TFLOP/s | cuDNN NCHW ms | cuDNN NHWC ms | ratio |",
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


def list_summary(comparison, mode):
    """A list's ratios, with weights packed in every launch and, where the comparison has it, once before."""

    def row(what, ratios):
        return (f"| {what} | {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} | {geometric_mean(ratios):.2f} | "
                f"{min(ratios):.2f} | {max(ratios):.2f} |")

    def over_ours(name_or_best, ours="jitconv"):
        return [(cudnn_best(one, mode) if name_or_best is None else one["ms"][name_or_best]) /
                one["ms"].get(ours, one["ms"]["jitconv"]) for one in comparison["results"]]

    layout = comparison["layout"].upper()
    same_layout = f"cudnn_{mode}" + ("_channels_last" if layout == "NHWC" else "")
    lines = [f"| jitconv on {layout} tensors, against | at or ahead on | geometric mean of the ratios | lowest | highest |",
             "|---|---|---|---|---|",
             row("cuDNN's faster layout", over_ours(None))]
    if any("jitconv_packed" in one["ms"] for one in comparison["results"]):
        lines.append(row("the same, with weights packed once", over_ours(None, "jitconv_packed")))
    return lines + [row(f"cuDNN on {layout} tensors", over_ours(same_layout))]


def best_layout_sentence(nchw, nhwc, mode):
    """Of a list measured in both layouts: jitconv's better one against cuDNN's better one of the same run."""
    ratios = {}
    for one in nchw["results"] + nhwc["results"]:
        ratios.setdefault(one["config"], []).append(ratio_of(one, mode))
    best = [max(of_one) for of_one in ratios.values()]
    return [f"If both may choose their faster layout, jitconv is at or ahead on {sum(ratio >= 1 for ratio in best)} of "
            f"{len(best)}. The geometric mean of the ratios is {geometric_mean(best):.2f}, the lowest {min(best):.2f}."]


def behind_rows(comparison, mode):
    """The convolutions of a list where cuDNN is ahead."""
    lines = ["| | family | jitconv ms | packed once | cuDNN NCHW ms | cuDNN NHWC ms | ratio |", "|---|---|---|---|---|---|---|"]
    behind = [one for one in comparison["results"] if ratio_of(one, mode) < 1]
    for one in sorted(behind, key=lambda one: ratio_of(one, mode)):
        ms = one["ms"]
        packed = f"{ms['jitconv_packed']:.4f}" if "jitconv_packed" in ms else "-"
        lines.append(f"| {short_name(one['spec'])} | {one['family']} | {ms['jitconv']:.4f} | {packed} | "
                     f"{ms[f'cudnn_{mode}']:.4f} | {ms[f'cudnn_{mode}_channels_last']:.4f} | {ratio_of(one, mode):.2f} |")
    return lines


def ablation_rows(results):
    ms = {(one["mode"], one["config"], one["variant"]): one["ms"] for one in results}
    lines = ["| | " + " | ".join(VARIANTS) + " |", "|---" * (len(VARIANTS) + 1) + "|"]
    for mode, config in dict.fromkeys((one["mode"], one["config"]) for one in results):
        cells = [f"{ms[mode, config, variant]:.3f}" for variant in VARIANTS]
        lines.append(f"| {config} {mode} | " + " | ".join(cells) + " |")
    return lines


def bar(x, y, ms, scale, colour):
    width = ms * scale
    return (f'<rect x="{x}" y="{y}" width="{width:.1f}" height="11" fill="{colour}"/>'
            f'<text x="{x + width + 4:.1f}" y="{y + 10}" font-size="11">{ms:.2f}</text>')


def panel(x, y, scale, title, comparison, mode):
    """One arithmetic's headline cases from (x, y) down: jitconv's bar above cuDNN's, and a line through both at the
    floor."""
    parts = [f'<text x="{x}" y="{y}" font-weight="bold">{title}</text>']
    y -= 8
    for one in comparison["results"]:
        name, _, with_bias = one["config"].partition("_")
        if len(name) > 1:
            continue
        y += 14 if with_bias else 22
        floor = x + scale * ceilings.floor_ms(one, one["family"], MODES[mode])
        parts += [f'<text x="{x - 6}" y="{y + 15}" text-anchor="end">{name}{", bias" if with_bias else ""}</text>',
                  bar(x, y, one["ms"]["jitconv"], scale, JITCONV_COLOUR),
                  bar(x, y + 12, cudnn_best(one, mode), scale, CUDNN_COLOUR),
                  f'<line x1="{floor:.1f}" y1="{y - 2}" x2="{floor:.1f}" y2="{y + 25}" stroke="{FLOOR_COLOUR}" '
                  f'stroke-width="2"/>']
        y += 24
    return parts, y


def plot(comparisons):
    """The headline cases with and without bias as an SVG with a ground of its own, for light and dark pages."""
    width, labels, panels = 900, 60, []
    longest = max(cudnn_best(one, mode) for mode, comparison in comparisons.items() for one in comparison["results"]
                  if len(one["config"].partition("_")[0]) == 1)
    scale, bottom = (width / 2 - labels - 50) / longest, 0
    for i, (mode, comparison) in enumerate(comparisons.items()):
        parts, bottom = panel(labels + i * width / 2, 76, scale, TITLES[mode], comparison, mode)
        panels += parts
    one = comparisons["tf32"]
    legend = "".join(f'<rect x="{at}" y="36" width="12" height="12" fill="{colour}"/><text x="{at + 18}" y="46">{text}</text>'
                     for at, colour, text in ((labels, JITCONV_COLOUR, "jitconv"),
                                              (labels + 90, CUDNN_COLOUR, "cuDNN, the faster of NCHW and NHWC")))
    legend += (f'<line x1="{labels + 362}" y1="34" x2="{labels + 362}" y2="50" stroke="{FLOOR_COLOUR}" stroke-width="2"/>'
               f'<text x="{labels + 370}" y="46">floor</text>')
    title = f"Milliseconds per launch, less is better: convolutions A to D, NCHW tensors, {one['gpu']}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 34}" '
            f'viewBox="0 0 {width} {bottom + 34}" font-family="sans-serif" font-size="12" fill="#24292f"><title>{title}</title>'
            f'<rect width="100%" height="100%" fill="#ffffff"/><text x="{labels}" y="22" font-size="14">{title}</text>'
            f'{legend}{"".join(panels)}<text x="{labels}" y="{bottom + 22}" font-size="11">driver {one["driver"]}, cuDNN '
            f'{one["cudnn"]}, {one["date"][:10]}, commit {one["commit"][:7]}; random data, medians of {one["launches"]} '
            f'launches</text></svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the JSON files are; tensor.svg is drawn there")
    folder = parser.parse_args().folder

    def load(name):
        return json.loads((folder / name).read_text())

    comparison, run = load("h200-ieee-vs-cudnn.json"), load("h200-ieee-run.json")
    tensor = {mode: load(f"h200-{mode}-vs-cudnn.json") for mode in MODES}
    tables = {
        "all": [conditions(comparison), ""] + comparison_rows(comparison, run),
        "headline": [conditions(comparison), ""] + comparison_rows(comparison, run, HEADLINE),
        "configurations": configuration_rows(comparison, lambda name: name in NAMED),
        "full-configurations": configuration_rows(comparison, lambda name: not name.endswith(("_bias", "_small"))),
        "small-configurations": configuration_rows(comparison, lambda name: name.endswith("_small")),
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
        one = load(f"h200-tf32-{name}.json")
        tables[name] = [conditions(one), ""] + list_summary(one, "tf32")
        tables[f"{name}-behind"] = [conditions(one), ""] + behind_rows(one, "tf32")
    tables["deepbench-best"] = best_layout_sentence(load("h200-tf32-deepbench.json"),
                                                    load("h200-tf32-deepbench-nhwc.json"), "tf32")
    (folder / "tensor.svg").write_text(plot(tensor))
    for name in ("README.md", "docs/performance.md", "docs/performance-lists.md", "docs/laboratory.md"):
        path = ROOT / name
        text = path.read_text()
        for table, lines in tables.items():
            block = f"<!-- performance table {table} -->\n" + "\n".join(lines) + "\n<!-- end -->"
            text = re.sub(rf"<!-- performance table {table} -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
        path.write_text(text)


if __name__ == "__main__":
    main()
