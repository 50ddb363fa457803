#!/usr/bin/env python3
"""Times whole networks converted to jitconv next to PyTorch: one run, one GPU, inference and training.

    python bench/networks/compare.py --quick                    # a minute: eager, channels_last and jitconv
    python bench/networks/compare.py --json networks.json       # also torch.compile, auto, bf16, a warm cache
    python bench/networks/compare.py --networks resnet50,edsr --variants eager,jitconv --explain

Architectures are in vision.py and dense.py, with random weights and random inputs. All variants start from the same
weights and see the same inputs, and their steps take turns. `jitconv_fused` is converted with the flags that fold
BatchNorm, in inference, and activations into convolutions. `compiled` is eager's model by torch.compile in its default
mode, and the suffix `_compiled` a conversion's; `max_autotune` and `reduce_overhead` are eager's in these modes, of
which the first needs minutes for a large network. Reported are the median time of a step; that of the host to enqueue
it, which bounds the step where a network has many small layers; that of the step in a CUDA graph, where the host does
nothing; the peak of the memory that the variant allocates; the time from the conversion to the end of the first step,
with and without what earlier processes have left on disk; and the losses of the first training steps, which must follow
each other. fp32 runs with TF32 allowed, as PyTorch's convolutions do by default; matrix products are allowed TF32 as
well. bf16 is torch.autocast.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass

sys.path.insert(0, str(pathlib.Path(__file__).parent))

try:
    import jitconv.torch
    import torch
except ImportError as error:
    sys.exit(f"compare.py: needs PyTorch and jitconv's Python package: {error}")
from dense import EDSR, DeepLabV3, Speech, UNet
from torch import Tensor, nn
from torch.nn import functional
from vision import ConvNeXtT, EfficientNetB0, ResNet50

NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "resnet50": (ResNet50, (32, 3, 224, 224)),
    "convnext_t": (ConvNeXtT, (32, 3, 224, 224)),
    "efficientnet_b0": (EfficientNetB0, (32, 3, 224, 224)),
    "unet": (UNet, (4, 4, 64, 64)),
    "deeplabv3": (DeepLabV3, (4, 3, 512, 512)),
    "edsr": (EDSR, (16, 3, 96, 96)),
    "speech": (Speech, (8, 80, 64)),
}
OWN_GRAPHS = {"max_autotune": "max-autotune", "reduce_overhead": "reduce-overhead"}  # modes that replay CUDA graphs
VARIANTS = (
    "eager", "channels_last", "compiled", *OWN_GRAPHS, "jitconv", "jitconv_channels_last", "jitconv_fused", "auto",
    "auto_channels_last", "auto_compiled", "auto_channels_last_compiled",
)  # fmt: skip
QUICK = ("eager", "channels_last", "jitconv")
MODES = ("inference", "training")
PRECISIONS = ("tf32", "bf16")
LOSSES = 5


@dataclass
class Measurement:
    """One network in one variant, mode and precision. Times in ms but for first_step_s."""

    network: str
    variant: str
    mode: str
    precision: str
    ms: float
    host_ms: float
    graph_ms: float | None
    peak_mib: float | None
    first_step_s: float
    losses: list[float]
    warm_first_step_s: float | None = None


class Case:
    """A variant of a network, ready to be stepped. Building it is what the time to the first step begins with."""

    def __init__(self, original: nn.Module, x: Tensor, target: Tensor, variant: str, mode: str, precision: str) -> None:
        gc.collect()
        held = torch.cuda.memory_allocated()
        begin = time.perf_counter()
        model, self.mode, self.precision = copy.deepcopy(original), mode, precision
        if "channels_last" in variant and x.dim() == 4:
            model = model.to(memory_format=torch.channels_last)
            x = x.contiguous(memory_format=torch.channels_last)
        model.train(mode == "training")
        if variant == "jitconv_fused":
            model = fused(model)
        elif variant.startswith(("jitconv", "auto")):
            jitconv.torch.convert(model, policy="auto" if variant.startswith("auto") else "always")
        self.x = x
        if variant.startswith("jitconv"):
            with self.autocast():
                jitconv.torch.prepare(model, x, backward=mode == "training", progress=False)
        self.step_model: Callable[[Tensor], Tensor] = model
        if variant in OWN_GRAPHS or variant.endswith("compiled"):
            self.step_model = torch.compile(model, mode=OWN_GRAPHS.get(variant))
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        self.target = target
        losses = [self.step()]
        torch.cuda.synchronize()
        self.first_step_s = time.perf_counter() - begin
        losses += [self.step() for _ in range(LOSSES - 1)]
        self.losses = [float(loss) for loss in losses if loss is not None]
        gc.collect()
        self.kept = torch.cuda.memory_allocated() - held  # by weights, gradients and what is made of them

    def autocast(self) -> torch.autocast | nullcontext[None]:
        """The context of the precision."""
        return torch.autocast("cuda", torch.bfloat16) if self.precision == "bf16" else nullcontext()

    def step(self) -> Tensor | None:
        """One forward call, or one training step, whose loss is returned."""
        if self.mode == "inference":
            with torch.no_grad(), self.autocast():
                self.step_model(self.x)
            return None
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = functional.mse_loss(self.step_model(self.x).float(), self.target)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def fused(model: nn.Module) -> nn.Module:
    """Convert a model with its activations and, in inference, its BatchNorms; by torch.fx if it can be traced."""
    flags = {"inplace": False, "fuse_batchnorm": not model.training, "fuse_activation": True}
    try:
        return jitconv.torch.convert(model, graph=True, **flags)
    except ValueError:
        return jitconv.torch.convert(model, **flags)


def measure(
    name: str, original: nn.Module, x: Tensor, target: Tensor, mode: str, precision: str, arguments: argparse.Namespace
) -> Iterator[Measurement]:
    """Build one case for each variant, run its first steps, and take the medians of others, for which they take turns.

    All have the same number of steps behind them then, and none finds the GPU hotter than the others do.
    """
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    variants = arguments.variants.split(",")
    cases = {variant: Case(original, x, target, variant, mode, precision) for variant in variants}
    peaks: dict[str, float | None] = {}
    for variant, case in cases.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        case.step()
        torch.cuda.synchronize()
        peaks[variant] = (torch.cuda.max_memory_allocated() - before + case.kept) / 2**20
    times = timed({variant: case.step for variant, case in cases.items()}, arguments.steps)
    graphs = {v: graphed(case.step) for v, case in cases.items() if v not in OWN_GRAPHS and arguments.steps > 0}
    replays = timed({variant: graph.replay for variant, graph in graphs.items()}, arguments.steps)
    for variant in OWN_GRAPHS:
        peaks[variant] = None  # whose memory was taken before
    for variant, case in cases.items():
        ms, host_ms = times[variant]
        yield Measurement(
            name, variant, mode, precision, ms, host_ms, replays[variant][0] if variant in replays else None,
            peaks[variant], case.first_step_s, case.losses,
        )  # fmt: skip


def timed(steps: dict[str, Callable[[], object]], count: int) -> dict[str, tuple[float, float]]:
    """Return the medians of each step's times: on the GPU's clock, and of the host, which begins with an empty queue."""
    times: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in steps}
    host: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(count):
        for name, step in steps.items():
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            start = time.perf_counter()
            step()
            host[name].append((time.perf_counter() - start) * 1e3)
            end.record()
            times[name].append((begin, end))
    torch.cuda.synchronize()
    if count == 0:
        return dict.fromkeys(steps, (0.0, 0.0))
    return {
        name: (statistics.median(begin.elapsed_time(end) for begin, end in times[name]), statistics.median(host[name]))
        for name in steps
    }


def graphed(step: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Capture a step that has run before."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def measure_network(name: str, arguments: argparse.Namespace) -> Iterator[Measurement]:
    """Yield all variants, modes and precisions of one network."""
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    original = make().cuda()
    x = torch.randn(shape, device="cuda")
    with torch.no_grad():
        target = torch.randn_like(copy.deepcopy(original).eval()(x).float())
    for mode in arguments.modes.split(","):
        for precision in arguments.precisions.split(","):
            yield from measure(name, original, x, target, mode, precision, arguments)
    if arguments.explain:
        converted = jitconv.torch.convert(original, inplace=False)
        print(jitconv.torch.explain(converted, x))


def header() -> str:
    """Return the names of the columns. `x` is eager's time over this one's; `loss` how far it is from eager's."""
    return (
        f"{'network':16} {'mode':9} {'type':4} {'variant':21} {'ms':>9} {'x eager':>8} {'host ms':>8} {'graph ms':>9} "
        f"{'x graph':>8} {'MiB':>8} {'first s':>8} "
        f"{'warm s':>7} {'loss':>9}"
    )


def line(r: Measurement, all_of_them: list[Measurement]) -> str:
    """Return the line of one case, beside eager PyTorch's of the same network, mode and precision."""
    same = (r.network, r.mode, r.precision)
    base = next((b for b in all_of_them if b.variant == "eager" and (b.network, b.mode, b.precision) == same), None)
    ratio = f"{base.ms / r.ms:.2f}x" if base and r.ms else "-"
    apart = "-"
    if base and r.losses:
        apart = f"{max(abs(a - b) / abs(b) for a, b in zip(r.losses, base.losses, strict=True)):.1e}"
    graph, graph_ratio = "-" if r.graph_ms is None else f"{r.graph_ms:.3f}", "-"
    if base and base.graph_ms and r.graph_ms:
        graph_ratio = f"{base.graph_ms / r.graph_ms:.2f}x"
    peak = "-" if r.peak_mib is None else f"{r.peak_mib:.0f}"
    warm = "-" if r.warm_first_step_s is None else f"{r.warm_first_step_s:.2f}"
    return (
        f"{r.network:16} {r.mode:9} {r.precision:4} {r.variant:21} {r.ms:9.3f} {ratio:>8} {r.host_ms:8.3f} {graph:>9} "
        f"{graph_ratio:>8} {peak:>8} {r.first_step_s:8.2f} {warm:>7} {apart:>9}"
    )


def in_processes(names: list[str], arguments: argparse.Namespace) -> list[Measurement]:
    """Measure each network in a process of its own with an empty cache, then its first steps again with a full one.

    Nothing is measured again of what leaves nothing on disk.
    """
    variants = arguments.variants.split(",")
    kept = ",".join(v for v in variants if v not in ("eager", "channels_last"))
    results: list[Measurement] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "JITCONV_CACHE_DIR": f"{folder}/cache"}
            environment.pop("JITCONV_CACHE", None)
            measured = _child(name, arguments, arguments.variants, arguments.steps, folder, environment)
            again = _child(name, arguments, kept, 0, folder, environment) if kept else []
        warm = {(r.variant, r.mode, r.precision): r.first_step_s for r in again}
        for cold in measured:
            cold.warm_first_step_s = warm.get((cold.variant, cold.mode, cold.precision))
        results += measured
    return results


def _child(
    name: str, arguments: argparse.Namespace, variants: str, steps: int, folder: str, environment: dict[str, str]
) -> list[Measurement]:
    path = pathlib.Path(folder, f"{steps}.json")
    command = [sys.executable, __file__, "--one-process", f"--networks={name}", f"--steps={steps}", f"--json={path}"]
    command += [f"--variants={variants}", f"--modes={arguments.modes}", f"--precisions={arguments.precisions}"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return [Measurement(**row) for row in json.loads(path.read_text())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--variants", help=f"of {','.join(VARIANTS)}")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--precisions", help=f"of {','.join(PRECISIONS)}")
    parser.add_argument("--steps", type=int, help="timed steps of each case")
    parser.add_argument("--quick", action="store_true", help="fewer steps, tf32, no torch.compile, one process")
    parser.add_argument("--one-process", action="store_true", help="no second process for the warm first step")
    parser.add_argument("--explain", action="store_true", help="with one process: every layer beside PyTorch's")
    parser.add_argument("--budget", type=float, help="begin no further network after so many seconds")
    parser.add_argument("--json", help="write the measurements to this file")
    arguments = parser.parse_args()
    arguments.variants = arguments.variants or ",".join(QUICK if arguments.quick else VARIANTS)
    arguments.precisions = arguments.precisions or ("tf32" if arguments.quick else ",".join(PRECISIONS))
    if arguments.steps is None:
        arguments.steps = 8 if arguments.quick else 30
    if not torch.cuda.is_available():
        print("compare.py: needs a GPU", file=sys.stderr)
        return 5
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    names = arguments.networks.split(",")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cudnn.benchmark on")
    print(header())
    results: list[Measurement] = []
    if arguments.quick or arguments.one_process or arguments.explain:
        begin = time.perf_counter()
        for name in names:
            if arguments.budget is not None and time.perf_counter() - begin > arguments.budget:
                print(f"not measured, out of time: {name}")
                continue
            for measured in measure_network(name, arguments):
                results.append(measured)
                print(line(measured, results), flush=True)
    else:
        results = in_processes(names, arguments)
        print("\n".join(line(measured, results) for measured in results))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps([asdict(result) for result in results], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
