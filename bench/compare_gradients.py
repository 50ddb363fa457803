#!/usr/bin/env python3
"""Times jitconv's gradients next to PyTorch's (cuDNN), in one run, on random data.

    python3 bench/compare_gradients.py --library build/release/runtime/libjitconv.so --config A,B --math tf32

For each configuration of bench/compare_pytorch.py, or each row of --shapes: the data gradient and the weight gradient
(with that of the bias) of jitconv, and torch.ops.aten.convolution_backward with one of its outputs at a time, contiguous
and channels_last, with cudnn.benchmark. Launches alternate, the median counts. Results are compared with PyTorch's in
float32 without TF32; the exit status is 1 if one is wrong, or cannot be computed although there is memory for it.
"""

import argparse
import datetime
import json
import math
import sys

try:
    import torch
except ImportError:  # --help works without
    torch = None

import ceilings
import compare_pytorch as forward
import provenance
from jitconv_library import Kernel, Library

OPERATIONS = {"data_gradient": 1, "weight_gradient": 2}
# Of the largest value: rounding operands to TF32 or 16 bits stays below 0.01, a wrong gradient does not.
WRONG = 0.02


def largest_difference(result, want):
    """Relative to the largest value; infinite if something was not written."""
    difference = (result.float() - want.float()).abs().nan_to_num(float("inf")).max().item()
    return difference / max(want.float().abs().max().item(), 1e-30)


def backward(tensors, spec, operation):
    """The call of PyTorch that computes the gradient: dx, or dw and db."""
    dy, x, w = tensors
    axes = list(spec.stride), [spec.padding[0], spec.padding[2]], list(spec.dilation)
    mask = [operation == "data_gradient", operation == "weight_gradient", operation == "weight_gradient"]
    sizes = [w.shape[0]] if operation == "weight_gradient" else None
    call = torch.ops.aten.convolution_backward
    return lambda: call(dy, x, w, sizes, *axes, False, [0, 0], spec.groups, mask)


def spec_of(library, text, operation, options):
    spec = forward.spec_of(library, text, options)
    spec.operation = OPERATIONS[operation]
    spec.bias = 1 if operation == "weight_gradient" else 0
    return spec


def compare(library, name, text, operation, options):
    dtype = getattr(torch, forward.DTYPE[options.dtype][1])
    spec = spec_of(library, text, operation, options)
    shape = library.output_shape(spec)
    generator = torch.Generator(device="cuda").manual_seed(1)

    def random(extents):
        return torch.rand(extents, generator=generator, device="cuda", dtype=torch.float32).mul_(2).sub_(1).to(dtype)

    plain = dy, x, w = random(shape), random(tuple(spec.input)), random(tuple(spec.weight))
    last = tuple(tensor.contiguous(memory_format=torch.channels_last) for tensor in plain)
    ours_dy, ours_x = (last if options.layout == "nhwc" else plain)[:2]
    if operation == "data_gradient":
        result = torch.full_like(ours_x, float("nan"))
        kernel = Kernel(library, spec, dy=ours_dy, w=w, dx=result)
    else:
        result = torch.full_like(w, float("nan"))
        bias_result = torch.full((spec.weight[0],), float("nan"), device="cuda", dtype=dtype)
        kernel = Kernel(library, spec, x=ours_x, dy=ours_dy, dw=result, db=bias_result)

    tf32 = options.math == "tf32" or options.dtype != "f32"
    runs = {"jitconv": (lambda: None, kernel.launch)}
    for layout, tensors in (("", plain), ("_channels_last", last)):
        runs["cudnn" + layout] = (lambda: forward.use_tf32(tf32), backward(tensors, spec, operation))
    output = 0 if operation == "data_gradient" else 1
    forward.use_tf32(False)
    errors = {}
    try:
        want = backward(plain, spec, operation)()
        forward.use_tf32(tf32)
        kernel.launch()
        torch.cuda.synchronize()
        errors["jitconv"] = largest_difference(result, want[output])
        if operation == "weight_gradient":
            errors["jitconv_db"] = largest_difference(bias_result, want[2])
        errors["cudnn"] = largest_difference(runs["cudnn"][1]()[output], want[output])
        del want
    except torch.cuda.OutOfMemoryError:
        pass
    torch.cuda.empty_cache()
    element = x.element_size()
    moved = element * (x.numel() + w.numel() + dy.numel())
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    flush = torch.empty(2 * l2, dtype=torch.uint8, device="cuda") if moved < 4 * l2 else None
    medians, times = forward.median_ms(runs, options.launches, flush)
    family = kernel.family()
    kernel.close()
    return {
        "config": name,
        "operation": operation,
        "spec": text,
        "family": family,
        "ms": medians,
        "all_ms": {} if options.shapes else times,  # a list's samples would fill megabytes
        "errors": errors,
        "l2": "exceeded" if flush is None else "flushed",
        "flop": 2.0 * math.prod(shape) * math.prod(w.shape[1:]),
        "bytes": moved,
    }


def print_table(rows, options, rates):
    print(f"{'config':24} {'operation':16} {'family':12} {'jitconv':>9} {'cuDNN':>9} {'ch. last':>9} {'same':>6} {'best':>6} "
          f"{'roof %':>6} {'error':>8} {'cuDNN':>8}")
    for row in rows:
        ms = row["ms"]
        same = ms["cudnn_channels_last" if options.layout == "nhwc" else "cudnn"]
        best = min(ms["cudnn"], ms["cudnn_channels_last"])
        share = 100 * ceilings.floor_ms(row, row["family"], options.dtype, rates) / ms["jitconv"]
        print(f"{row['config'][:24]:24} {row['operation']:16} {row['family']:12} {ms['jitconv']:9.4f} {ms['cudnn']:9.4f} "
              f"{ms['cudnn_channels_last']:9.4f} {same / ms['jitconv']:6.2f} {best / ms['jitconv']:6.2f} {share:6.1f} "
              f"{row['errors'].get('jitconv', math.nan):8.1e} {row['errors'].get('cudnn', math.nan):8.1e}")
    for operation in OPERATIONS:
        ratios = [(min(r["ms"]["cudnn"], r["ms"]["cudnn_channels_last"]) / r["ms"]["jitconv"]) for r in rows
                  if r["operation"] == operation]
        if ratios:
            ahead = sum(ratio >= 1 for ratio in ratios)
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{operation}: {ahead} of {len(ratios)} at or ahead of cuDNN's better layout, geometric mean {mean:.2f}, "
                  f"worst {min(ratios):.2f}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="libjitconv.so", help="path of libjitconv.so (default: the loader's)")
    parser.add_argument("--config", help="names, separated by commas (default: all)")
    parser.add_argument("--shapes", help="measure the convolutions of this CSV file")
    forward.add_part_argument(parser)
    parser.add_argument("--operation", choices=OPERATIONS, help="(default: both)")
    parser.add_argument("--math", choices=forward.MATH, default="tf32")
    parser.add_argument("--dtype", choices=forward.DTYPE, default="f32")
    parser.add_argument("--layout", choices=forward.LAYOUT, default="nchw", help="of jitconv's tensors")
    parser.add_argument("--launches", type=int, default=21, help="timed launches of each")
    parser.add_argument("--json", help="write everything to this file")
    options = parser.parse_args()
    options.configurations = (
        forward.read_shapes(options.shapes, bias=False) if options.shapes else forward.CONFIGURATIONS)
    options.names = forward.selected_names(parser, options)
    return options


def main():
    options = parse_arguments()
    if torch is None or not torch.cuda.is_available():
        print("compare_gradients.py: needs PyTorch with a GPU", file=sys.stderr)
        return 5
    torch.backends.cudnn.benchmark = True
    torch.zeros(1, device="cuda")  # makes PyTorch's context current before jitconv looks for one
    library = Library(options.library)
    properties = torch.cuda.get_device_properties(0)
    rates = ceilings.measure(torch)
    facts = {
        "gpu": properties.name,
        "driver": provenance.driver_version(),
        "torch": torch.__version__,
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
    operations = [options.operation] if options.operation else list(OPERATIONS)
    library.prepare([spec_of(library, options.configurations[name], operation, options)
                     for name in options.names for operation in operations])
    for name in options.names:
        for operation in operations:
            try:
                rows.append(compare(library, name, options.configurations[name], operation, options))
            except torch.cuda.OutOfMemoryError:
                skipped.append({"config": name, "operation": operation, "why": "not enough device memory"})
            except RuntimeError as error:
                failed = True
                skipped.append({"config": name, "operation": operation, "why": str(error)[:300]})
            torch.cuda.empty_cache()
    print_table(rows, options, rates)
    for row in skipped:
        print(f"{row['config']} {row['operation']}: not run: {row['why']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**facts, "results": rows, "skipped": skipped}, file, indent=2)
            file.write("\n")
    # NaN, what was not written, is no number below the bound.
    wrong = [f"{row['config']} {row['operation']}" for row in rows
             if any(not row["errors"].get(result, 0) <= WRONG for result in ("jitconv", "jitconv_db"))]
    if wrong:
        print(f"WRONG: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
