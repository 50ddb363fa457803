"""explain(): for every layer and direction of a model the kernel, why it was chosen, and its time beside PyTorch's."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

import jitconv
from jitconv.spec import Spec
from jitconv.torch import _aten, _ops
from jitconv.torch._convolution import convolution
from jitconv.torch._explain_page import page
from jitconv.torch._original import original
from jitconv.torch._prepare import compile_all, unwrapped
from jitconv.torch._record import Operation, record
from jitconv.torch._shapes import as_of, images, strides_beside
from jitconv.torch._table import Table
from jitconv.torch._timing import median_ms

_TENSOR_CORE_FAMILIES = ("pointwise", "wgmma", "wgmma_rows", "wgrad_wgmma")
_UNITS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}


@dataclass(frozen=True)
class Row:
    """One operation of one layer. Times are in ms, and None where nothing was measured or modelled."""

    layer: str
    direction: str
    family: str
    why: str
    floor_ms: float | None
    """What the memory and arithmetic rates of the GPU allow at best."""
    expected_ms: float | None
    """What the cost model says of the chosen plan; only its order among candidates matters."""
    jitconv_ms: float | None
    pytorch_ms: float | None
    spec: str

    @property
    def speedup(self) -> float | None:
        """PyTorch's time over jitconv's."""
        return self.pytorch_ms / self.jitconv_ms if self.jitconv_ms and self.pytorch_ms else None


@dataclass(frozen=True)
class Explanation:
    """What `explain` returns: a table by `print()`, JSON by `to_json()`, a page with bars by `to_html()`."""

    rows: tuple[Row, ...]
    device: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        cells = tuple(
            (r.layer, r.direction, r.family, *(_ms(t) for t in (r.floor_ms, r.expected_ms, r.jitconv_ms, r.pytorch_ms)),
             "-" if r.speedup is None else f"{r.speedup:.2f}x", r.why)
            for r in self.rows
        )  # fmt: skip
        columns = ("layer", "direction", "kernel", "floor ms", "expected", "jitconv", "PyTorch", "speedup", "why")
        return str(Table(columns, cells, title=self.device, notes=self._remarks()))

    def _remarks(self) -> tuple[str, ...]:
        return (*self._totals(), *self.notes)

    def _totals(self) -> tuple[str, ...]:
        measured = [(r.jitconv_ms, r.pytorch_ms) for r in self.rows if r.jitconv_ms and r.pytorch_ms]
        if not measured:
            return ()
        mine, theirs = (sum(times) for times in zip(*measured, strict=True))
        faster = sum(min(pair) for pair in measured)
        slow = [f"{r.layer} {r.direction}" for r in self.rows if r.speedup is not None and r.speedup < 1]
        return (
            f"all: jitconv {mine:.3f} ms, PyTorch {theirs:.3f} ms, the faster of both each time {faster:.3f} ms",
            f"slower than PyTorch: {', '.join(slow) or 'none'}",
        )

    def to_json(self) -> str:
        """Return the rows as JSON."""
        return json.dumps(
            {"device": self.device, "rows": [asdict(row) for row in self.rows], "notes": self.notes}, indent=1
        )

    def to_html(self) -> str:
        """Return a page with a bar for each time; it needs no other file."""
        bars = [
            (f"{r.layer} {r.direction}", r.family, r.why, r.floor_ms, r.jitconv_ms, r.pytorch_ms) for r in self.rows
        ]
        return page(self.device, bars, self._remarks())

    def save(self, path: str | Path) -> None:
        """Write JSON, HTML or the table, as the name of the file ends in .json, .html or otherwise."""
        path = Path(path)
        make: dict[str, Callable[[], str]] = {".json": self.to_json, ".html": self.to_html}
        path.write_text(make.get(path.suffix, self.__str__)(), encoding="utf-8")


def explain(
    model: nn.Module, *inputs: Any, backward: bool = True, measure: bool = True, **keywords: Any
) -> Explanation:
    """Say for every jitconv layer and direction which kernel computes it, why, and how fast it is.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or a model with jitconv's layers. It is run once on fake tensors and stays as it is.
    *inputs, **keywords
        What it is called with.
    backward : bool
        Whether to look at the gradients, too.
    measure : bool
        Whether to time each operation on random data, beside PyTorch's; on a GPU only.

    Returns
    -------
    Explanation
        One row for each operation, in the order of the calls.
    """
    begin = time.perf_counter()
    recorded = record(unwrapped(model), inputs, keywords, backward=backward)
    operations = [o for o in recorded if _ops.uses_kernels(o.x)]
    prepared = compile_all(operations, 0, False, begin)
    specs = list(dict.fromkeys(str(o.spec) for o in operations))
    kernels = {}
    for spec in specs:
        device = next(o.x.device for o in operations if str(o.spec) == spec)
        kernels[spec] = jitconv.compile(spec, None if device.type == "cuda" else "host")
    times: dict[tuple[Any, ...], dict[str, float]] = {}
    rows = []
    for operation in operations:
        key = (str(operation.spec), operation.direction, operation.bias, operation.activation)
        if measure and operation.x.is_cuda and key not in times:
            times[key] = _times(operation, packed=not backward)
        rows.append(_row(operation, kernels[key[0]], times.get(key, {})))
    del prepared
    place = _place(recorded[0].x if recorded else _first_tensor(model, inputs))
    versions = f"PyTorch {torch.__version__}, jitconv {jitconv.__version__}"
    return Explanation(tuple(rows), f"{place}, {versions}", _notes(recorded, operations))


def _first_tensor(model: nn.Module, inputs: Sequence[Any]) -> torch.Tensor:
    leaves = (*pytree.tree_leaves(inputs), *model.parameters())
    return next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor)), torch.empty(0))


def _place(x: torch.Tensor) -> str:
    """Return what computes convolutions of a tensor's device."""
    if x.is_cuda:
        return torch.cuda.get_device_name(x.device)
    return "host execution on the CPU" if _ops.uses_kernels(x) else "PyTorch on the CPU"


def _notes(recorded: Sequence[Operation], operations: Sequence[Operation]) -> tuple[str, ...]:
    if not recorded:
        return ("no jitconv layers: convert the model first",)
    if not operations:
        return ('jitconv computes no CPU tensors: move the model to a GPU, or set_cpu_policy("host")',)
    return ()


def _row(operation: Operation, kernel: jitconv.Kernel, times: dict[str, float]) -> Row:
    lines = [line.split(": ", 1) for line in kernel.explain.splitlines() if ": " in line]
    family = next((text for topic, text in lines if topic == "family"), "")
    modelled = [f"{topic} {text}" for topic, text in lines if text.startswith("modelled at")]
    said = ("modelled at", "not possible")
    other = [f"{topic}: {text}" for topic, text in lines if topic != "family" and not text.startswith(said)]
    expected = re.search(rf", {family} at ([0-9.]+) ?(s|ms|us|ns)\b", " ".join(modelled))
    return Row(
        layer=operation.layer,
        direction=operation.direction,
        family=family,
        why="; ".join(modelled + other) or "the only family that can",
        floor_ms=_floor_ms(operation, family),
        expected_ms=float(expected[1]) * _UNITS[expected[2]] if expected else None,
        jitconv_ms=times.get("jitconv"),
        pytorch_ms=times.get("pytorch"),
        spec=str(operation.spec),
    )


def _times(operation: Operation, *, packed: bool) -> dict[str, float]:
    """Time an operation on random tensors as the recorded ones."""
    c = convolution(operation.settings)
    x, w = (_random_like(t) for t in (operation.x, operation.w))
    y_shape = c.result_shape(images(x), images(w))
    b = torch.randn(y_shape[1], dtype=x.dtype, device=x.device) if operation.bias else None
    with torch.no_grad(), original():
        if operation.direction == "forward":
            on = operation.activation or operation.settings.activation == "none"
            linear = convolution(operation.settings._replace(activation="none"))
            runs: dict[str, Callable[[], object]] = {
                "jitconv": lambda: c.forward(x, w, b, activation=on, pack=packed),
                "pytorch": lambda: _aten.forward(c if on else linear, x, w, b),
            }
            return median_ms(runs, device=x.device)
        strides = strides_beside(y_shape, x, w)
        dy = torch.empty_strided(as_of(x, y_shape), strides, dtype=x.dtype, device=x.device).normal_()
        saved = torch.randn_like(dy) if operation.activation else None
        is_dw = operation.direction == "dw"
        mask = (not is_dw, is_dw, is_dw and operation.bias)
        if saved is None:  # an activation's derivative was applied before
            c = convolution(operation.settings._replace(activation="none"))
        runs = {
            "jitconv": lambda: c.backward(dy, x, w, saved, mask),
            "pytorch": lambda: _aten.backward(c, dy, x, w, saved, mask),
        }
        return median_ms(runs, device=x.device)


def _random_like(t: torch.Tensor) -> torch.Tensor:
    """Return random values with a recorded tensor's shape, type, device and strides."""
    result = torch.empty_strided(tuple(t.shape), tuple(t.stride()), dtype=t.dtype, device=t.device)
    return result.normal_() if 0 not in t.stride() else torch.randn(tuple(t.shape), dtype=t.dtype, device=t.device)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _floor_ms(operation: Operation, family: str) -> float | None:
    """Return the larger of bytes over the memory rate and FLOP over the rate of what the family computes with."""
    if not operation.x.is_cuda:
        return None
    rates = _rates(torch.cuda.get_device_properties(operation.x.device), operation.spec.dtype, family)
    if rates is None:
        return None
    flop, moved = work(operation.spec)
    return max(flop / rates[1], moved / rates[0]) * 1e3


def work(spec: Spec) -> tuple[float, float]:
    """Return the FLOP of a convolution or its gradient, and the bytes of its operands and result."""
    n, k, p, q = jitconv.output_shape(str(spec))
    size = 4 if spec.dtype == "f32" else 2
    flop = 2.0 * n * k * p * q * math.prod(spec.weight[1:])
    return flop, float(size) * (math.prod(spec.input) + math.prod(spec.weight) + n * k * p * q)


def _rates(properties: Any, dtype: str, family: str) -> tuple[float, float] | None:
    """Return bytes and FLOP per second, as tools/roofline.cpp has them; None if PyTorch does not say the clocks."""
    if "H200" in properties.name and properties.multi_processor_count == 132:
        memory, fma, tf32 = 4.23e12, 66.9e12, 389e12
    else:
        clock, bus = getattr(properties, "memory_clock_rate", 0), getattr(properties, "memory_bus_width", 0)
        cycles = getattr(properties, "clock_rate", 0) * 1e3 * properties.multi_processor_count
        if not clock or not bus or not cycles:
            return None
        capability = (properties.major, properties.minor)
        memory, fma = 2e3 * clock * bus / 8, cycles * 2 * (64 if capability in ((7, 5), (8, 0)) else 128)
        tf32 = cycles * 2048 if capability == (9, 0) else fma
    if family not in _TENSOR_CORE_FAMILIES:
        return memory, fma
    return memory, tf32 if dtype == "f32" else 2 * tf32
