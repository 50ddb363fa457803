#!/usr/bin/env python3
"""Rewrites the tables and charts of README.md and docs/ from the JSON files of a run.

    python3 bench/performance_table.py docs/performance

The folder holds what bench/compare_pytorch.py, bench/compare_gradients.py, bench/ablate.py and jitconv-run wrote, under
names that bench/measure_all.sh gives them. A table stands between the lines `<!-- performance table NAME -->` and
`<!-- end -->`; everything else in the documents is left alone. A table whose file is missing is left alone and named.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys

import ceilings
import performance_charts as charts

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "docs/performance.md", "docs/performance-lists.md", "docs/laboratory.md")
HEADLINE = ["A", "A_bias", "B", "B_bias", "C", "C_bias", "D", "D_bias", "KB_L1_50", "KB_L1_82", "KB_L1_83", "KB_L1_84",
            "KB_L1_85", "KB_L1_86_dw"]
TENSOR = ["A", "A_bias", "B", "B_bias", "C", "C_bias", "D", "D_bias", "KB_L1_50", "KB_L1_62", "KB_L1_67", "KB_L1_76",
          "KB_L1_86_pw", "KB_L1_87"]
NAMED = ["A", "B", "C", "D", "KB_L1_50", "KB_L1_82", "KB_L1_86_pw"]  # those that README.md mentions
MODES = ("tf32-nchw", "tf32-nhwc", "bf16-nchw", "bf16-nhwc")
TITLES = {"tf32": "fp32 tensors, math mode tf32", "bf16": "bf16 tensors"}
VARIANTS = ["whole", "without loads", "without stores", "main loop alone"]


# --- what a convolution and a comparison are called ---------------------------------------------------------------------


def geometry(spec):
    """Input, weight and everything that is not a default, of a spec's text: "8 x 32 x 512 x 512", "64 x 32 x 5 x 9",
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


def conditions(comparison):
    return (f"{comparison['gpu']}, driver {comparison['driver']}, PyTorch {comparison['torch']}, cuDNN "
            f"{comparison['cudnn']}, {comparison['date'][:10]}, commit {comparison['commit'][:7]}, {comparison['dtype']} "
            f"tensors, {comparison['layout'].upper()}, math mode `{comparison['math']}`, random data, median of "
            f"{comparison['launches']} interleaved launches.")


def has_bias(spec):
    return "bias" in spec.split() or "bias=true" in spec.split()


# --- cuDNN's times in one row -------------------------------------------------------------------------------------------


def mode_of(comparison):
    """The name that cuDNN's times have for the arithmetic to compare with: TF32 off unless jitconv may use it."""
    if comparison["dtype"] != "f32":
        return comparison["dtype"]
    return "tf32" if comparison["math"] == "tf32" else "fp32"


def cudnn_ms(one, mode):
    """NCHW and NHWC, None if it did not fit into memory. A gradient has one arithmetic only, and so no mode in names."""
    ms = one["ms"]
    prefix = "cudnn" if "operation" in one else f"cudnn_{mode}"
    return ms.get(prefix), ms.get(f"{prefix}_channels_last")


def best_ms(one, mode):
    return min(ms for ms in cudnn_ms(one, mode) if ms is not None)


def ratio_of(one, mode):
    return best_ms(one, mode) / one["ms"]["jitconv"]


def ratios_of(comparison):
    mode = mode_of(comparison)
    return [ratio_of(one, mode) for one in comparison["results"] if any(cudnn_ms(one, mode))]


def number(ms, digits=3):
    return "no memory" if ms is None else f"{ms:.{digits}f}"


# --- tables ---------------------------------------------------------------------------------------------------------------


def configuration_rows(comparison, wanted):
    lines = ["| | input N x C x H x W | weight K x C/groups x R x S | |", "|---|---|---|---|"]
    for one in comparison["results"]:
        if wanted(one["config"]):
            lines.append(f"| {one['config']} | " + " | ".join(geometry(one["spec"])) + " |")
    return lines


def comparison_rows(comparison, names=None):
    """One row for each configuration, or each of `names`."""
    mode = mode_of(comparison)
    lines = [conditions(comparison), "",
             "| | family | floor ms | jitconv ms | of floor | TFLOP/s | cuDNN NCHW ms | cuDNN NHWC ms | ratio |",
             "|---|---|---|---|---|---|---|---|---|"]
    for one in comparison["results"]:
        if names and one["config"] not in names:
            continue
        floor, ours = ceilings.floor_ms(one, one["family"], comparison["dtype"], comparison["rates"]), one["ms"]["jitconv"]
        nchw, nhwc = cudnn_ms(one, mode)
        lines.append(f"| {one['config']} | {one['family']} | {floor:.3f} | **{ours:.3f}** | {floor / ours:.0%} | "
                     f"{one['flop'] / ours * 1e-9:.0f} | {number(nchw)} | {number(nhwc)} | {ratio_of(one, mode):.2f} |")
    return lines


def gradient_rows(comparison):
    words = {"data_gradient": "dx", "weight_gradient": "dw and db"}
    lines = [conditions(comparison), "",
             "| | family | floor ms | jitconv ms | cuDNN NCHW ms | cuDNN NHWC ms | ratio |", "|---|---|---|---|---|---|---|"]
    for one in sorted(comparison["results"], key=lambda one: one["operation"]):
        floor = ceilings.floor_ms(one, one["family"], comparison["dtype"], comparison["rates"])
        nchw, nhwc = cudnn_ms(one, None)
        lines.append(f"| {one['config']}, {words[one['operation']]} | {one['family']} | {floor:.3f} | "
                     f"**{one['ms']['jitconv']:.3f}** | {number(nchw)} | {number(nhwc)} | {ratio_of(one, None):.2f} |")
    return lines


def summary_row(what, ratios):
    return (f"| {what} | {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} | {statistics.geometric_mean(ratios):.2f} | "
            f"{min(ratios):.2f} | {max(ratios):.2f} |")


SUMMARY_HEAD = ["| | at or ahead on | geometric mean of the ratios | lowest | highest |", "|---|---|---|---|---|"]


def list_summary(comparison):
    """A list's ratios, with weights packed in every launch and, where the comparison has it, once before."""
    mode, layout = mode_of(comparison), comparison["layout"].upper()
    results = comparison["results"]
    same = [cudnn_ms(one, mode)[layout == "NHWC"] / one["ms"]["jitconv"] for one in results]
    packed = [best_ms(one, mode) / one["ms"].get("jitconv_packed", one["ms"]["jitconv"]) for one in results]
    lines = [conditions(comparison), "", *SUMMARY_HEAD, summary_row("cuDNN's faster layout", ratios_of(comparison))]
    if any("jitconv_packed" in one["ms"] for one in results):
        lines.append(summary_row("the same, with weights packed once", packed))
    return lines + [summary_row(f"cuDNN on {layout} tensors", same)]


def modes_summary(comparisons):
    """One list in several modes, against cuDNN's faster layout."""
    first = next(iter(comparisons.values()))
    lines = [f"{first['gpu']}, driver {first['driver']}, PyTorch {first['torch']}, cuDNN {first['cudnn']}, "
             f"{first['date'][:10]}, commit {first['commit'][:7]}, "
             f"{'with' if has_bias(first['results'][0]['spec']) else 'without'} bias.", "", *SUMMARY_HEAD]
    return lines + [summary_row(mode.replace("-", " ").upper().replace("BF16", "bf16"), ratios_of(one))
                    for mode, one in comparisons.items()]


def gradient_summary(comparison):
    lines = [conditions(comparison), "", *SUMMARY_HEAD]
    for operation, words in (("data_gradient", "dx"), ("weight_gradient", "dw and db")):
        of_one = [one for one in comparison["results"] if one["operation"] == operation]
        lines.append(summary_row(f"{words}, against cuDNN's faster layout", [ratio_of(one, None) for one in of_one]))
        same = [cudnn_ms(one, None)[comparison["layout"] == "nhwc"] / one["ms"]["jitconv"] for one in of_one]
        lines.append(summary_row(f"{words}, against the same layout", same))
    return lines


def best_layout_sentence(comparisons):
    """Of a list measured in both layouts: jitconv's better one against cuDNN's better one of the same run."""
    ratios = {}
    for comparison in comparisons:
        for one in comparison["results"]:
            ratios.setdefault(one["config"], []).append(ratio_of(one, mode_of(comparison)))
    best = [max(of_one) for of_one in ratios.values()]
    return [f"If both may choose their faster layout, jitconv is at or ahead on {sum(ratio >= 1 for ratio in best)} of "
            f"{len(best)}. The geometric mean of the ratios is {statistics.geometric_mean(best):.2f}, the lowest "
            f"{min(best):.2f}."]


def behind_rows(comparison, below=1.0):
    """The convolutions of a list where cuDNN is ahead."""
    mode = mode_of(comparison)
    lines = [conditions(comparison), "",
             "| | family | jitconv ms | packed once | cuDNN NCHW ms | cuDNN NHWC ms | ratio |", "|---|---|---|---|---|---|---|"]
    behind = [one for one in comparison["results"] if any(cudnn_ms(one, mode)) and ratio_of(one, mode) < below]
    for one in sorted(behind, key=lambda one: ratio_of(one, mode)):
        packed = one["ms"].get("jitconv_packed")
        nchw, nhwc = cudnn_ms(one, mode)
        what = {"data_gradient": "dx: ", "weight_gradient": "dw: "}.get(one.get("operation"), "")
        lines.append(f"| {what}{short_name(one['spec'])} | {one['family']} | {one['ms']['jitconv']:.4f} | "
                     f"{number(packed, 4) if packed else '-'} | {number(nchw, 4)} | {number(nhwc, 4)} | "
                     f"{ratio_of(one, mode):.2f} |")
    return lines


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


def ablation_rows(results):
    ms = {(one["mode"], one["config"], one["variant"]): one["ms"] for one in results}
    lines = ["| | " + " | ".join(VARIANTS) + " |", "|---" * (len(VARIANTS) + 1) + "|"]
    for mode, config in dict.fromkeys((one["mode"], one["config"]) for one in results):
        cells = [f"{ms[mode, config, variant]:.3f}" for variant in VARIANTS]
        lines.append(f"| {config} {mode} | " + " | ".join(cells) + " |")
    return lines


# --- files ----------------------------------------------------------------------------------------------------------------


class Run:
    """The JSON files in a folder: `forward-tf32-nchw` is FOLDER/GPU-forward-tf32-nchw.json of the first of the GPUs that
    has one. Files that runs of a list in parts wrote, NAME.1.json and so on, are one."""

    def __init__(self, folder, gpus):
        self.folder, self.gpus = folder, gpus

    def __call__(self, name):
        parts = self.files(name)
        if not parts:
            raise FileNotFoundError(f"{name}.json of {' or '.join(self.gpus)}")
        first, *others = (json.loads(part.read_text()) for part in parts)
        for other in others:
            first["results"] += other["results"]
        return first

    def files(self, name):
        of_gpus = ([file for end in ("", ".[0-9]*") for file in sorted(self.folder.glob(f"{gpu}-{name}{end}.json"))]
                   for gpu in self.gpus)
        return next((files for files in of_gpus if files), [])

    def modes(self, name):
        """Of a list, the modes in which it was measured."""
        found = {mode: self(f"{name}-{mode}") for mode in MODES if self.files(f"{name}-{mode}")}
        if not found:
            raise FileNotFoundError(f"{name}-*.json of {' or '.join(self.gpus)}")
        return found


def tables_of(run):
    """Name and maker of every table."""
    forward = lambda mode, names=None: lambda: comparison_rows(run(f"forward-{mode}"), names)  # noqa: E731
    tables = {
        "configurations": lambda: configuration_rows(run("forward-ieee-nchw"), lambda name: name in NAMED),
        "full-configurations": lambda: configuration_rows(run("forward-ieee-nchw"),
                                                          lambda name: not name.endswith(("_bias", "_small"))),
        "small-configurations": lambda: configuration_rows(run("forward-ieee-nchw"), lambda name: name.endswith("_small")),
        "ieee": forward("ieee-nchw", HEADLINE),
        "ieee-all": forward("ieee-nchw"),
        "fp32-nchw": forward("fp32-nchw", TENSOR),
        "fp32-nhwc": forward("fp32-nhwc", TENSOR),
        "fp16x3-nchw": lambda: comparison_rows(run("forward-fp16x3-nchw"), TENSOR),
        "fp16x3-nhwc": lambda: comparison_rows(run("forward-fp16x3-nhwc"), TENSOR),
        "compile": lambda: compile_rows(run("ieee-run")),
        "deepbench-best": lambda: best_layout_sentence([run(f"deepbench-tf32-{layout}") for layout in ("nchw", "nhwc")]),
        "networks": lambda: modes_summary(run.modes("networks")),
        "networks-bias": lambda: modes_summary(run.modes("networks-bias")),
        "depthwise-nhwc-bf16": lambda: list_summary(run("depthwise-bf16-nhwc")),
        "depthwise-nhwc-f32": lambda: list_summary(run("depthwise-tf32-nhwc")),
        "transposed": lambda: gradient_rows(run("transposed-tf32-nchw")),
        "gradients-deepbench": lambda: gradient_summary(run("gradients-deepbench-tf32-nchw")),
        "gradients-deepbench-behind": lambda: behind_rows(run("gradients-deepbench-tf32-nchw")),
    }
    for mode in MODES:
        tables[mode] = forward(mode, TENSOR)
        tables[f"gradients-{mode}"] = lambda mode=mode: gradient_rows(run(f"gradients-{mode}"))
        tables[f"networks-{mode}-behind"] = lambda mode=mode: behind_rows(run(f"networks-{mode}"))
        tables[f"networks-bias-{mode}-behind"] = lambda mode=mode: behind_rows(run(f"networks-bias-{mode}"))
    tables["gradients-ieee-nchw"] = lambda: gradient_rows(run("gradients-ieee-nchw"))
    for name in ("kernelbench-l2-tf32-nchw", "deepbench-tf32-nchw", "deepbench-tf32-nhwc", "deepbench-bias-tf32-nchw",
                 "networks-bias-fp32-nchw", "networks-bias-fp32-nhwc"):
        tables[name] = lambda name=name: list_summary(run(name))
        tables[f"{name}-behind"] = lambda name=name: behind_rows(run(name))
    return tables


def charts_of(run):
    """Name and maker of every chart."""
    def headline():
        panels = []
        for mode in ("tf32", "bf16"):
            comparison = run(f"forward-{mode}-nchw")
            panels.append((TITLES[mode], comparison, comparison["dtype"], lambda one, mode=mode: best_ms(one, mode)))
        return charts.bars(panels)

    def dots(name, title):
        modes = run.modes(name)
        lists = [(mode.replace("-", " "), ratios_of(one)) for mode, one in modes.items()]
        return charts.dots(f"{title}: cuDNN's faster layout over jitconv, sorted, one dot for each convolution", lists)

    return {"tensor": headline, "networks": lambda: dots("networks", "Convolutions of published networks"),
            "networks-bias": lambda: dots("networks-bias", "Convolutions of published networks, with bias")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the JSON files are; charts are drawn there")
    parser.add_argument("--gpu", default="h200,h100", metavar="NAME,...",
                        help="first words of the files' names, the one to take where there are several first (default: "
                             "%(default)s)")
    options = parser.parse_args()
    run, tables, missing = Run(options.folder, options.gpu.split(",")), {}, []
    for name, make in tables_of(run).items():
        try:
            tables[name] = make()
        except FileNotFoundError as error:
            missing.append(f"table {name}: {error}")
    for name, make in charts_of(run).items():
        try:
            (options.folder / f"{name}.svg").write_text(make())
        except FileNotFoundError as error:
            missing.append(f"chart {name}: {error}")
    ablation = options.folder / "h200-ablation.json"
    tables["ablation"] = ablation_rows(json.loads(ablation.read_text()))
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text()
        for table, lines in tables.items():
            block = f"<!-- performance table {table} -->\n" + "\n".join(lines) + "\n<!-- end -->"
            text = re.sub(rf"<!-- performance table {table} -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
        path.write_text(text)
    print("\n".join(f"left alone, {what} is missing" for what in missing), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
