"""prepare(), which compiles every kernel of a model at once, before its first step."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

import jitconv
from jitconv.torch import _background, _share, _stats
from jitconv.torch._ops import uses_kernels
from jitconv.torch._record import Operation, record
from jitconv.torch._table import Table

Progress = Callable[[int, int, int, str], object]


@dataclass(frozen=True)
class Prepared:
    """What `prepare()` did. It holds the kernels, which stay loaded as long as it lives."""

    operations: tuple[Operation, ...]
    origins: dict[str, str]
    """Where each kernel came from, by the spec's line: ``"compiler"``, ``"disk"`` or ``"memory"``."""
    seconds: float
    kernels: tuple[jitconv.Kernel, ...]

    def __str__(self) -> str:
        rows = tuple((o.layer, o.direction, self.origins[str(o.spec)], _shape(o)) for o in self.operations)
        counts = Counter(self.origins.values())
        said = ", ".join(f"{count} from {origin}" for origin, count in sorted(counts.items())) or "none"
        note = f"{len(self.origins)} kernels in {self.seconds:.2f} s: {said}"
        if not self.operations:
            note += "; no convolution on a GPU is jitconv's: jitconv.torch.convert(model) makes the model's so"
        return str(Table(("layer", "direction", "origin", "shape"), rows, notes=(note,)))


def _shape(operation: Operation) -> str:
    x, w = ("x".join(str(extent) for extent in tensor.shape) for tensor in (operation.x, operation.w))
    return f"{x} by {w}, {operation.spec.input_layout} {operation.spec.dtype} {operation.spec.math}"


def prepare(
    model: nn.Module,
    *example_inputs: Any,
    backward: bool = True,
    threads: int = 0,
    progress: bool | Progress | None = None,
    **example_keywords: Any,
) -> Prepared:
    """Compile all kernels that a step of a model needs, in parallel; the first step then compiles nothing.

    The model runs once on fake tensors, which cost neither memory nor GPU time and change nothing of it: not even
    BatchNorm's statistics. Call it as the steps will be: under the same `torch.autocast`, in `train()` or `eval()`,
    with inputs of the same shapes, types, memory formats and `requires_grad`.

    Parameters
    ----------
    model : torch.nn.Module
        With jitconv's layers or functions. Wrappers of DataParallel, DDP and `torch.compile` are looked through.
    *example_inputs, **example_keywords
        What the model is called with; fake tensors do as well.
    backward : bool
        Whether to prepare the gradients, too.
    threads : int
        How many kernels are compiled at a time; 0 for as many as there are cores.
    progress : bool or callable, optional
        A bar on stderr, by default if that is a terminal; or a function of done, total, index and origin.

    Returns
    -------
    Prepared
        The operations and kernels. `print()` shows a table.

    Raises
    ------
    jitconv.Error
        If a kernel cannot be compiled. All others are compiled nevertheless.
    ValueError
        If the model's code depends on the values of tensors, so that it cannot run on fake ones, or a lazy layer does
        not have its parameters yet. Run one real step.

    Notes
    -----
    Under `torch.distributed` the processes of one machine share the work: each compiles a part of the kernels and takes
    the others from the disk cache, if that is written (`JITCONV_CACHE`). A process that does not come is waited for as
    long as compiling its part would take, at least 10 s, and not at all where the own part was in the cache already.

    What a compiled model's graph does differently from eager code, such as a gradient through an
    activation that is not fused, is compiled at its first call.
    """
    begin = time.perf_counter()
    model = unwrapped(model)
    operations = [o for o in record(model, example_inputs, example_keywords, backward=backward) if uses_kernels(o.x)]
    return compile_all(operations, threads, progress, begin, _share.local_group())


def compile_all(
    operations: list[Operation],
    threads: int,
    progress: bool | Progress | None,
    begin: float,
    group: _share.LocalGroup | None = None,
) -> Prepared:
    """Compile the kernels of operations, each spec once, for the devices of their tensors; `group` shares the work."""
    by_device: dict[torch.device, list[str]] = {}
    for operation in operations:
        lines, line = by_device.setdefault(operation.x.device, []), str(operation.spec)
        if line not in lines:
            lines.append(line)
    show = _bar(progress)
    origins: dict[str, str] = {}
    kernels: list[jitconv.Kernel] = []
    for device, lines in by_device.items():
        compile_some = partial(_compile_some, device, threads, _Notes(operations, lines, origins, show))
        made = compile_some(lines) if group is None else group.compile(lines, compile_some, origins)
        for line, kernel in zip(lines, made, strict=True):
            _background.provide(line, device, kernel)
        kernels += made
    return Prepared(tuple(operations), origins, time.perf_counter() - begin, tuple(kernels))


def _compile_some(device: torch.device, threads: int, notes: _Notes, lines: list[str]) -> list[jitconv.Kernel]:
    """Return the kernels of some of the specs of a device."""
    if device.type != "cuda":
        return jitconv.prepare(lines, "host", threads, notes.of(lines))
    with torch.cuda.device(device):
        torch.cuda.current_stream(device)  # makes the device's context
        return jitconv.prepare(lines, None, threads, notes.of(lines))


class _Notes:
    """Takes note of kernels as they are finished."""

    def __init__(self, operations: list[Operation], lines: list[str], origins: dict[str, str], show: Progress) -> None:
        self._specs = {str(operation.spec): operation.spec for operation in operations}
        self._indices = {line: index for index, line in enumerate(lines)}
        self._origins, self._show = origins, show
        self._done = 0
        self._last = time.perf_counter()

    def of(self, lines: list[str]) -> Progress:
        """Return what takes note of a part of the kernels."""
        return lambda done, total, index, origin: self._note(lines[index], origin)

    def _note(self, line: str, origin: str) -> None:
        """Note one kernel, and the time since the one before: several are compiled at a time."""
        now = time.perf_counter()
        self._origins[line] = origin
        if origin != "failed":
            with _stats.asked_by("prepare()"):
                _stats.record(self._specs[line], origin, now - self._last)
        self._last = now
        self._done += 1
        self._show(self._done, len(self._indices), self._indices[line], origin)


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the module inside DataParallel, DDP and torch.compile."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _bar(progress: bool | Progress | None) -> Progress:
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr.isatty()
    return _Bar() if progress else lambda *_: None


class _Bar:
    """A line on stderr that is written over."""

    WIDTH = 30

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._compiled = 0

    def __call__(self, done: int, total: int, index: int, origin: str) -> None:
        """Show that one more kernel is there."""
        del index
        self._compiled += origin == "compiler"
        filled = self.WIDTH * done // total
        bar = "#" * filled + "." * (self.WIDTH - filled)
        seconds = time.perf_counter() - self._begin
        end = "\n" if done == total else ""
        print(
            f"\rjitconv [{bar}] {done}/{total} kernels, {self._compiled} compiled, {seconds:.1f} s",
            end=end,
            file=sys.stderr,
            flush=True,
        )
