#!/usr/bin/env python3
"""Times jitconv next to PyTorch (cuDNN) on the documented forward configurations, in one run, on random data.

    python3 bench/compare_pytorch.py --library build/release/runtime/libjitconv.so --config A,C_bias --json result.json

Needs PyTorch with a GPU and the shared library, nothing else. The library is used through its C interface
(include/jitconv/jitconv.h) with ctypes; launches go to PyTorch's current stream.

For each configuration: jitconv with weights as they come and, if it packs them, with packed ones; then
torch.nn.functional.conv2d with TF32 off (unless --math=tf32) and on, contiguous and channels_last, all with
cudnn.benchmark. --shapes takes a list of convolutions (tests/shapes/*.csv) instead. Launches alternate (A B C A B C ...),
so that clocks and temperature treat all alike; the median counts. Every result, cuDNN's too, is checked on sampled outputs
against PyTorch in float64.
"""

import argparse
import csv
import datetime
import json
import math
import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # --help and --list work without
    torch = None

import ceilings
import provenance
from jitconv_library import Kernel, Library

# Short runs are measured behind a GPU that still spins while the host enqueues all of them: kernels, not the host's calls.
SPIN_CYCLES = 300_000
MATH = {"ieee": 0, "fp32": 1, "tf32": 2, "fp16x3": 3}
DTYPE = {"f32": (0, "float32"), "f16": (1, "float16"), "bf16": (2, "bfloat16")}  # jitconv's value, PyTorch's name
LAYOUT = {"nchw": 0, "nhwc": 1}

# tools/documented.cpp has the same forward convolutions; --list of the tools prints them.
CONFIGURATIONS = {
    "A": "input=8,64,512,1024 weight=128,64,3,3",
    "A_bias": "input=8,64,512,1024 weight=128,64,3,3 bias",
    "B": "input=16,16,1024,1024 weight=128,16,3,3",
    "B_bias": "input=16,16,1024,1024 weight=128,16,3,3 bias",
    "C": "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3",
    "C_bias": "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 bias",
    "D": "input=8,64,512,256 weight=128,64,5,7",
    "D_bias": "input=8,64,512,256 weight=128,64,5,7 bias",
    "KB_L1_50": "input=256,3,224,224 weight=96,3,11,11 stride=4 padding=2 bias",
    "KB_L1_55": "input=8,64,512,1024 weight=128,64,3,3",
    "KB_L1_56": "input=8,64,512,256 weight=128,64,5,7",
    "KB_L1_62": "input=8,32,512,512 weight=64,32,5,9",
    "KB_L1_63": "input=16,16,1024,1024 weight=128,16,3,3",
    "KB_L1_67": "input=32,64,1,131072 weight=128,64,1,3",
    "KB_L1_76": "input=64,64,1,524280 weight=128,64,1,3 stride=1,3 dilation=1,4",
    "KB_L1_80": "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3",
    "KB_L1_82": "input=16,64,512,512 weight=64,1,3,3 groups=64",
    "KB_L1_83": "input=64,8,512,512 weight=8,1,3,1 groups=8",
    "KB_L1_84": "input=64,128,256,512 weight=128,1,3,3 groups=128",
    "KB_L1_85": "input=32,128,128,256 weight=128,1,3,7 groups=128",
    "KB_L1_86_dw": "input=16,64,512,512 weight=64,1,3,3 padding=1 groups=64",
    "KB_L1_86_pw": "input=16,64,512,512 weight=128,64,1,1",
    "KB_L1_87": "input=16,64,1024,1024 weight=128,64,1,1",
    "KB_L1_55_small": "input=16,3,128,256 weight=64,3,3,3",
    "KB_L1_56_small": "input=16,3,256,128 weight=64,3,3,5",
    "KB_L1_62_small": "input=16,3,256,256 weight=64,3,3,5",
    "KB_L1_63_small": "input=16,3,256,256 weight=64,3,3,3",
    "KB_L1_67_small": "input=16,3,1,512 weight=64,3,1,3",
    "KB_L1_76_small": "input=16,3,1,256 weight=64,3,1,3 stride=1,3 dilation=1,4",
    "KB_L1_80_small": "input=16,3,256,256 weight=64,3,3,5 padding=1,2 dilation=2,1",
    "KB_L1_82_small": "input=16,3,256,256 weight=3,1,3,3 groups=3",
    "KB_L1_83_small": "input=16,3,256,256 weight=3,1,3,1 groups=3",
    "KB_L1_84_small": "input=16,3,128,256 weight=3,1,3,3 groups=3",
    "KB_L1_85_small": "input=16,3,128,256 weight=3,1,3,5 groups=3",
    "KB_L1_86_pw_small": "input=16,3,254,254 weight=64,3,1,1",
    "KB_L1_87_small": "input=16,3,256,256 weight=64,3,1,1",
}


def use_tf32(allowed):
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cuda.matmul.allow_tf32 = allowed


def sample(shape, count):
    """Distinct random positions, the corners among them, as one index tensor per axis."""
    total = math.prod(shape)
    generator = torch.Generator().manual_seed(7)
    flat = torch.randint(0, total, (min(count, total),), generator=generator)
    flat = torch.unique(torch.cat([flat, torch.tensor([0, total - 1])]))
    axes = []
    for extent in reversed(shape):
        axes.append(flat % extent)
        flat = flat // extent
    return tuple(axis.cuda() for axis in reversed(axes))


def expected_at(positions, spec, x, w, bias):
    """The outputs at `positions` in float64, and the sums of the magnitudes of their products: windows are gathered
    and multiplied, so that no float64 copy of a large tensor is needed."""
    n, k, p, q = positions
    filters, channels, taps_r, taps_s = w.shape
    height, width = x.shape[2:]
    first = (k // (filters // spec.groups)) * channels
    c = first[:, None] + torch.arange(channels, device="cuda")
    h = (p * spec.stride[0] - spec.padding[0])[:, None] + torch.arange(taps_r, device="cuda") * spec.dilation[0]
    v = (q * spec.stride[1] - spec.padding[2])[:, None] + torch.arange(taps_s, device="cuda") * spec.dilation[1]
    inside = ((h >= 0) & (h < height))[:, None, :, None] & ((v >= 0) & (v < width))[:, None, None, :]
    windows = x[
        n[:, None, None, None],
        c[:, :, None, None],
        h.clamp(0, height - 1)[:, None, :, None],
        v.clamp(0, width - 1)[:, None, None, :],
    ].double()
    products = torch.where(inside, windows, 0.0) * w[k].double()
    y, magnitude = products.sum((1, 2, 3)), products.abs().sum((1, 2, 3))
    if bias is not None:
        y, magnitude = y + bias[k].double(), magnitude + bias[k].double().abs()
    return y, magnitude


def error_bounds(magnitude, y, length, dtype, tf32):
    """What no correct result exceeds: gamma of Higham, Accuracy and Stability, for any order of the sum (four times as
    much for the truncating sums of tensor cores), operands rounded to TF32, the result rounded to its type."""
    tensor_cores = tf32 or dtype != torch.float32
    roundings = (length + 2) * 2.0 ** (-22 if tensor_cores else -24)
    operands = 2.0**-10 + 2.0**-22 if tf32 and dtype == torch.float32 else 0.0
    last = {torch.float32: 0.0, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[dtype]
    bound = (roundings / (1 - roundings) * (1 + operands) + operands) * magnitude
    return bound + last * (y.abs() + bound) + 2.0**-24


def median_ms(runs, launches, flush):
    """Medians of alternating launches: run 1, run 2, ..., run 1, run 2, ... A run is a pair of settings and launch."""
    times = {name: [] for name in runs}
    for prepare, run in runs.values():
        prepare()
        for _ in range(3):
            run()
    events = []
    for _ in range(launches):
        for name, (prepare, run) in runs.items():
            prepare()
            if flush is not None:
                flush.zero_()
                torch.cuda._sleep(SPIN_CYCLES)
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            events.append((name, begin, end))
    torch.cuda.synchronize()
    for name, begin, end in events:
        times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(values) for name, values in times.items()}, times


def spec_of(library, text, options):
    spec = library.parse(text)
    spec.dtype, spec.math = DTYPE[options.dtype][0], MATH[options.math]
    spec.input_layout = spec.output_layout = LAYOUT[options.layout]
    return spec


def compare(library, name, text, options):
    dtype = getattr(torch, DTYPE[options.dtype][1])
    spec = spec_of(library, text, options)
    shape = library.output_shape(spec)
    generator = torch.Generator(device="cuda").manual_seed(1)

    def random(extents):
        return torch.rand(extents, generator=generator, device="cuda", dtype=torch.float32).mul_(2).sub_(1).to(dtype)

    x, w = random(tuple(spec.input)), random(tuple(spec.weight))
    bias = random((shape[1],)) if spec.bias else None
    y = torch.full(shape, float("nan"), device="cuda", dtype=dtype)
    ours_x = x
    if options.layout == "nhwc":
        ours_x, y = x.to(memory_format=torch.channels_last), y.to(memory_format=torch.channels_last)
    kernel = Kernel(library, spec, x=ours_x, w=w, bias=bias, y=y)

    # PyTorch knows one amount per axis; the documented configurations need no more.
    padding = (spec.padding[0], spec.padding[2])
    if tuple(spec.padding) != (padding[0], padding[0], padding[1], padding[1]):
        raise RuntimeError("PyTorch's conv2d has no asymmetric padding")

    last = tuple(tensor.contiguous(memory_format=torch.channels_last) for tensor in (x, w))

    def torch_run(tf32, inputs):
        axes = tuple(spec.stride), padding, tuple(spec.dilation), spec.groups
        return lambda: use_tf32(tf32), lambda: F.conv2d(*inputs, bias, *axes)

    runs = {"jitconv": (lambda: None, kernel.launch)}
    if kernel.packed is not None:
        runs["jitconv_packed"] = (lambda: None, kernel.launch_packed)
    for mode in modes_of(options):
        tf32 = mode != "fp32"
        runs[f"cudnn_{mode}"] = torch_run(tf32, (x, w))
        runs[f"cudnn_{mode}_channels_last"] = torch_run(tf32, last)

    positions = sample(shape, max(64, min(4096, 2**25 // max(1, math.prod(w.shape[1:])))))
    want, magnitude = expected_at(positions, spec, x, w, bias)
    length = math.prod(w.shape[1:])
    errors, failed = {}, False
    for run_name, (prepare, run) in list(runs.items()):
        ours = run_name.startswith("jitconv")
        if ours:
            y.fill_(float("nan"))
        try:
            prepare()
            result = run()
            torch.cuda.synchronize()
        except torch.cuda.OutOfMemoryError:
            del runs[run_name]
            continue
        result = y if ours else result
        tf32 = "tf32" in run_name or (ours and options.math == "tf32")
        difference = (result[positions].double() - want).abs()
        ratio = (difference / error_bounds(magnitude, want, length, dtype, tf32)).nan_to_num(float("inf")).max().item()
        errors[run_name] = {"largest": difference.nan_to_num(float("inf")).max().item(), "of_bound": ratio}
        # cuDNN may use Winograd or FFT, whose errors this bound does not cover: reported only.
        failed = failed or (ours and not ratio <= 1)
        del result

    element = x.element_size()
    moved = element * (x.numel() + w.numel() + y.numel() + (bias.numel() if bias is not None else 0))
    flop = 2.0 * math.prod(shape) * length
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    flush = torch.empty(2 * l2, dtype=torch.uint8, device="cuda") if moved < 4 * l2 else None
    medians, times = median_ms(runs, options.launches, flush)
    family = kernel.family()
    kernel.close()
    return {
        "config": name,
        "spec": text,
        "family": family,
        "ms": medians,
        "all_ms": {} if options.shapes else times,  # a list's samples would fill megabytes
        "errors": errors,
        "failed": failed,
        "l2": "exceeded" if flush is None else "flushed",
        "flop": flop,
        "bytes": moved,
    }


def modes_of(options):
    """What PyTorch is measured with."""
    if options.dtype != "f32":
        return [options.dtype]
    return ["tf32"] if options.math == "tf32" else ["fp32", "tf32"]


def read_shapes(path, bias):
    """Convolutions of a list, by name, as the other configurations are written."""
    with open(path, encoding="utf-8", newline="") as file:
        return {
            row["name"]: "input={N},{C},{H},{W} weight={K},{per_group},{R},{S} stride={stride_h},{stride_w} "
            "padding={pad_h},{pad_w} dilation={dil_h},{dil_w} groups={groups}{bias}".format(
                **row, per_group=int(row["C"]) // int(row["groups"]), bias=" bias" if bias else "")
            for row in csv.DictReader(file)
        }


def best(row, mode):
    """The faster of both layouts, or None."""
    found = [ms for name, ms in row["ms"].items() if name in (f"cudnn_{mode}", f"cudnn_{mode}_channels_last")]
    return min(found) if found else None


def print_table(rows, modes, dtype, rates):
    titles = ["config", "family", "jitconv ms"]
    for mode in modes:
        titles += [f"cuDNN {mode} ms", f"channels_last ms", "best / jitconv"]
    titles += ["% of roofline", "error of bound", "L2"]
    lines = [titles]
    for row in rows:
        ours = row["ms"]["jitconv"]
        cells = [row["config"], row["family"], f"{ours:.4f}"]
        for mode in modes:
            plain, last = row["ms"].get(f"cudnn_{mode}"), row["ms"].get(f"cudnn_{mode}_channels_last")
            cells += [f"{ms:.4f}" if ms is not None else "no memory" for ms in (plain, last)]
            cells.append(f"{best(row, mode) / ours:.2f}" if best(row, mode) else "-")
        share = 100 * ceilings.floor_ms(row, row["family"], dtype, rates) / ours
        cells += [f"{share:.1f}", f"{row['errors']['jitconv']['of_bound']:.3f}", row["l2"]]
        lines.append(cells)
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    for line in lines:
        names = [cell.ljust(width) for cell, width in zip(line[:2], widths)]
        numbers = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:])]
        print("  ".join(names + numbers).rstrip())


def add_part_argument(parser):
    parser.add_argument("--part", default="1/1", metavar="I/N",
                        help="with --shapes: every Nth convolution from the Ith on, so that N runs share a list")


def selected_names(parser, options):
    """The names that --config and --part select of options.configurations; ends the program at an unknown one."""
    names = options.config.split(",") if options.config else list(options.configurations)
    first, step = map(int, options.part.split("/"))
    if not 1 <= first <= step:
        parser.error(f"--part: '{options.part}' is not I/N with 1 <= I <= N")
    for name in names:
        if name not in options.configurations:
            parser.error(f"--config: '{name}' is not a configuration; compare_pytorch.py --list names them")
    return names[first - 1::step]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="libjitconv.so", help="path of libjitconv.so (default: the loader's)")
    parser.add_argument("--config", help="names, separated by commas (default: all)")
    parser.add_argument("--shapes", help="measure the convolutions of this CSV file")
    parser.add_argument("--bias", action="store_true", help="with --shapes: add a bias")
    add_part_argument(parser)
    parser.add_argument("--list", action="store_true", help="print the configurations and stop")
    parser.add_argument("--math", choices=MATH, default="fp32")
    parser.add_argument("--dtype", choices=DTYPE, default="f32")
    parser.add_argument("--layout", choices=LAYOUT, default="nchw", help="of jitconv's tensors")
    parser.add_argument("--launches", type=int, default=21, help="timed launches of each (at least 20)")
    parser.add_argument("--json", help="write everything to this file")
    options = parser.parse_args()
    if options.launches < 20:
        parser.error("--launches must be at least 20")
    options.configurations = read_shapes(options.shapes, options.bias) if options.shapes else CONFIGURATIONS
    options.names = selected_names(parser, options)
    return options


def main():
    options = parse_arguments()
    if options.list:
        for name, text in options.configurations.items():
            print(f"{name:20} {text}")
        return 0
    if torch is None:
        print("compare_pytorch.py: needs PyTorch, which this Python does not have", file=sys.stderr)
        return 1
    if not torch.cuda.is_available():
        print("compare_pytorch.py: no GPU that this PyTorch can use", file=sys.stderr)
        return 5
    torch.backends.cudnn.benchmark = True
    torch.cuda.init()
    torch.zeros(1, device="cuda")  # makes PyTorch's context current before jitconv looks for one
    library = Library(options.library)
    properties = torch.cuda.get_device_properties(0)
    rates = ceilings.measure(torch)
    modes = modes_of(options)
    facts = {
        "gpu": properties.name,
        "driver": provenance.driver_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "jitconv": library.lib.jitconv_version().decode(),
        "commit": provenance.commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "math": options.math,
        "dtype": options.dtype,
        "layout": options.layout,
        "launches": options.launches,
        "rates": rates,
        "roofline": ceilings.describe(rates),
    }
    print(", ".join(f"{key} {value}" for key, value in facts.items()), file=sys.stderr)

    rows, skipped, failed = [], [], False
    library.prepare([spec_of(library, options.configurations[name], options) for name in options.names])
    for name in options.names:
        if sys.stderr.isatty():
            print(f"\r\033[K[{len(rows) + len(skipped) + 1}/{len(options.names)}] {name}", end="", file=sys.stderr)
        try:
            rows.append(compare(library, name, options.configurations[name], options))
        except torch.cuda.OutOfMemoryError:
            skipped.append({"config": name, "why": "not enough device memory"})
        except RuntimeError as error:
            failed = True
            skipped.append({"config": name, "why": str(error)})
        torch.cuda.empty_cache()
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)

    print_table(rows, modes, options.dtype, rates)
    for row in skipped:
        print(f"{row['config']}: not run: {row['why']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**facts, "results": rows, "skipped": skipped}, file, indent=2)
            file.write("\n")
    wrong = [row["config"] for row in rows if row["failed"]]
    if wrong:
        print(f"WRONG: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
