#!/usr/bin/env python3
"""Checks every ModelNew of level1/ as KernelBench does, and times it next to PyTorch, in one run on one GPU.

    python check.py                     # all problems: eager, channels_last, torch.compile, jitconv
    python check.py --quick             # without torch.compile, fewer launches
    python check.py --problems 80,82 --json result.json

The reference is the same model with torch.nn's layers (jitconv.torch.revert of a copy), built under the same seed, on
the same inputs. Three verdicts for each problem, because KernelBench compares two TF32 results with each other and its
tolerance at HEAD is smaller than TF32's own error: allclose with 1e-2 (version 0.1), allclose with 1e-4 (HEAD), and
the error against fp64 next to the bound that holds for any TF32 result. PyTorch's own error stands beside it.
"""

import argparse
import copy
import importlib.util
import json
import math
import pathlib
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from types import ModuleType

import jitconv.torch
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

LEVEL1 = pathlib.Path(__file__).parent / "level1"
SEED = 42  # KernelBench's
TF32_OPERANDS = 2.0**-10 + 2.0**-22  # two operands of 11 significant bits, and the product of their errors


@dataclass
class Result:
    """What one problem gave. Errors are the largest |y - y64| over the bound; no TF32 result exceeds 1."""

    problem: int
    name: str
    tolerance_1e2: bool = True
    tolerance_1e4: bool = True
    difference: float = 0.0
    error: float = 0.0
    pytorch_error: float = 0.0
    ms: dict[str, float] = field(default_factory=dict)

    def speedup(self) -> float:
        """Eager PyTorch's time over jitconv's."""
        return self.ms["eager"] / self.ms["jitconv"]


def load(path: pathlib.Path) -> ModuleType:
    """Import one file of level1/, whose name is no identifier."""
    spec = importlib.util.spec_from_file_location(f"level1_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(module: ModuleType, seed: int) -> tuple[nn.Module, nn.Module, list[torch.Tensor]]:
    """The reference, the jitconv model with equal weights, and inputs, all on the GPU."""
    torch.manual_seed(seed)
    model = module.ModelNew(*module.get_init_inputs()).cuda()
    reference = jitconv.torch.revert(copy.deepcopy(model))
    torch.manual_seed(seed)
    with torch.device("cuda"):  # tensors of gigabytes take the CPU's generator long
        inputs = module.get_inputs()
    return reference, model, inputs


class Together(nn.Module):
    """Models side by side, so that one call prepares them all."""

    def __init__(self, models: list[nn.Module]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [model(x) for model, x in zip(self.models, inputs, strict=True)]


def compile_all(paths: list[pathlib.Path]) -> None:
    """Compile all kernels at once, from models and inputs that take no memory."""
    modules = [load(path) for path in paths]
    with FakeTensorMode(), torch.device("cuda"):
        together = Together([module.ModelNew(*module.get_init_inputs()) for module in modules])
        inputs = [x for module in modules for x in module.get_inputs()]
        prepared = jitconv.torch.prepare(together, *inputs, backward=False)
    print(f"{len(prepared.kernels)} kernels in {prepared.seconds:.1f} s")


def magnitudes(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The sums of the magnitudes of all products, to which errors of a sum are proportional. fp64."""
    absolute = copy.deepcopy(model).double()
    with torch.no_grad():
        for parameter in absolute.parameters():
            parameter.abs_()
    y: torch.Tensor = absolute(x.double().abs())
    return y


def sum_length(model: nn.Module) -> int:
    """The most products that one output of any layer adds."""
    layers = [layer for layer in model.modules() if hasattr(layer, "kernel_size")]
    return max(math.prod(layer.weight.shape[2:]) * layer.in_channels // layer.groups for layer in layers)


def error_over_bound(y: torch.Tensor, exact: torch.Tensor, magnitude: torch.Tensor, length: int, layers: int) -> float:
    """The largest error of y in units of the bound for TF32 operands and truncating sums of `length` terms."""
    bound = layers * (TF32_OPERANDS + (length + 2) * 2.0**-22) * magnitude + 2.0**-126
    return float(((y.double() - exact).abs() / bound).max())


def check(result: Result, reference: nn.Module, model: nn.Module, inputs: list[torch.Tensor]) -> None:
    """Compare the whole output with PyTorch's, and the first image's with fp64."""
    (x,) = inputs
    layers = sum(1 for layer in model.modules() if hasattr(layer, "kernel_size"))
    with torch.no_grad():
        y, expected = model(x), reference(x)
        if y.shape != expected.shape:
            raise AssertionError(f"problem {result.problem}: shape {tuple(y.shape)}, expected {tuple(expected.shape)}")
        for a, b in zip(y, expected, strict=True):  # image by image: temporaries of 8 GiB outputs stay small
            result.tolerance_1e2 &= torch.allclose(a, b, rtol=1e-2, atol=1e-2)
            result.tolerance_1e4 &= torch.allclose(a, b, rtol=1e-4, atol=1e-4)
            result.difference = max(result.difference, float((a - b).abs().max()))
        first = x[:1]
        exact = copy.deepcopy(reference).double()(first.double())
        magnitude = magnitudes(reference, first)
        length = sum_length(model)
        result.error = max(result.error, error_over_bound(y[:1], exact, magnitude, length, layers))
        result.pytorch_error = max(
            result.pytorch_error, error_over_bound(expected[:1], exact, magnitude, length, layers)
        )


def median_ms(runs: dict[str, Callable[[], object]], launches: int) -> dict[str, float]:
    """Medians of alternating launches, so that clocks and temperature treat all alike."""
    for run in runs.values():
        for _ in range(3):
            run()
    events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []
    for _ in range(launches):
        for name, run in runs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            events.append((name, begin, end))
    torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for name, begin, end in events:
        times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(values) for name, values in times.items()}


def time_all(
    reference: nn.Module, model: nn.Module, inputs: list[torch.Tensor], launches: int, compiled: bool
) -> dict[str, float]:
    """Ms per forward call of eager PyTorch, its channels_last, torch.compile and jitconv."""
    (x,) = inputs
    runs: dict[str, Callable[[], object]] = {"eager": lambda: reference(x), "jitconv": lambda: model(x)}
    if x.dim() == 4:
        last = copy.deepcopy(reference).to(memory_format=torch.channels_last)
        x_last = x.contiguous(memory_format=torch.channels_last)
        runs["channels_last"] = lambda: last(x_last)
    if compiled:
        torch._dynamo.reset()
        inductor = torch.compile(reference)
        runs["compile"] = lambda: inductor(x)
    with torch.no_grad():
        return median_ms(runs, launches)


def row(cells: list[str]) -> str:
    """One line of the table."""
    widths = (4, 5, 5, 8, 7, 10, 9, 14, 9, 9, 9)
    return " ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def report(result: Result) -> str:
    """The line of one problem."""
    variants = ("eager", "channels_last", "compile", "jitconv")
    ms = [f"{result.ms[key]:.3f}" if key in result.ms else "-" for key in variants]
    verdicts = ["ok" if ok else "no" for ok in (result.tolerance_1e2, result.tolerance_1e4)]
    errors = [f"{result.error:.3f}", f"{result.pytorch_error:.3f}"]
    apart = f"{result.difference:.1e}"
    return row([str(result.problem), *verdicts, apart, *errors, *ms, f"{result.speedup():.2f}x"])


def run_problem(path: pathlib.Path, arguments: argparse.Namespace) -> Result:
    """Check and time one file."""
    module = load(path)
    number, _, name = path.stem.partition("_")
    result = Result(int(number), name)
    for trial in range(arguments.trials):
        reference, model, inputs = build(module, SEED + trial)
        check(result, reference, model, inputs)
    result.ms = time_all(reference, model, inputs, arguments.launches, not arguments.quick)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="", help="numbers, separated by commas; default all")
    parser.add_argument("--quick", action="store_true", help="no torch.compile, 1 trial, 10 launches")
    parser.add_argument("--trials", type=int, help="checks with different seeds (default 5, as KernelBench)")
    parser.add_argument("--launches", type=int, help="of every variant (default 100, as KernelBench)")
    parser.add_argument("--json", help="write the results to this file")
    arguments = parser.parse_args()
    arguments.trials = arguments.trials or (1 if arguments.quick else 5)
    arguments.launches = arguments.launches or (10 if arguments.quick else 100)
    if not torch.cuda.is_available():
        print("check.py: needs a GPU", file=sys.stderr)
        return 5
    wanted = {int(number) for number in arguments.problems.split(",") if number}
    paths = sorted(path for path in LEVEL1.glob("*.py") if not wanted or int(path.stem.split("_")[0]) in wanted)
    fp32 = "TF32" if torch.backends.cudnn.allow_tf32 else "fp32"
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, fp32 tensors, {fp32} allowed, ms per call;")
    print("apart: the largest difference of the two; error: the largest against fp64 (first image) over TF32's bound")
    compile_all(paths)
    verdicts = ["1e-2", "1e-4", "apart", "error", "PyTorch's"]
    print(row(["", *verdicts, "eager", "channels_last", "compile", "jitconv", "speedup"]))
    results = []
    for path in paths:
        results.append(run_problem(path, arguments))
        print(report(results[-1]), flush=True)
        torch.cuda.empty_cache()
    mean = statistics.geometric_mean(result.speedup() for result in results)
    slow = [result.problem for result in results if result.speedup() < 1.0]
    print(f"geometric mean over eager {mean:.2f}x, slower than eager: {slow or 'none'}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps([asdict(result) for result in results], indent=1))
    return 0 if all(result.tolerance_1e2 and result.error <= 1 for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
