"""What this process compiled for PyTorch, when and why; stats() shows it, and each compilation is one line of the log.

The log is `logging.getLogger("jitconv.torch")`, at level INFO.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TypeVar

import torch

import jitconv
from jitconv.spec import Spec
from jitconv.torch._table import Table

log = logging.getLogger("jitconv.torch")

_asked_by: ContextVar[str] = ContextVar("jitconv_asked_by", default="a call")


@dataclass(frozen=True)
class Compiled:
    """One kernel that a plan took up, whether it was compiled or found."""

    spec: str
    origin: str
    """``"compiler"``, ``"disk"`` or ``"memory"``."""
    seconds: float
    asked_by: str
    """``"a call"``, ``"prepare()"``, ``"the background"`` or ``"policy='auto'"``."""
    reason: str


@dataclass(frozen=True)
class Stats:
    """The state of `stats()`. `str()` is a table of what was compiled."""

    compiled: tuple[Compiled, ...]
    served_by_pytorch: dict[str, int]
    """Calls that PyTorch computed, by reason."""
    library: dict[str, int]
    """The library's counters, see ``jitconv.statistics()``."""

    def __str__(self) -> str:
        rows = tuple((f"{c.seconds:.2f}", c.origin, c.asked_by, c.reason, c.spec) for c in self.compiled)
        total = sum(c.seconds for c in self.compiled)
        by_origin = Counter(c.origin for c in self.compiled)
        notes = [f"{len(rows)} kernels in {total:.2f} s: " + ", ".join(f"{n} {o}" for o, n in by_origin.items())]
        notes += [f"{count} calls computed by PyTorch: {reason}" for reason, count in self.served_by_pytorch.items()]
        return str(Table(("seconds", "origin", "asked by", "reason", "spec"), rows, notes=tuple(notes)))


_lock = threading.Lock()
_compiled: list[Compiled] = []
_served_by_pytorch: Counter[str] = Counter()
_last: dict[tuple[object, ...], Spec] = {}


def stats(*, reset: bool = False) -> Stats:
    """Say what was compiled and why, and what PyTorch computed in jitconv's place.

    Parameters
    ----------
    reset : bool
        Whether to begin anew after this.
    """
    with _lock:
        result = Stats(tuple(_compiled), dict(_served_by_pytorch), jitconv.statistics())
        if reset:
            _compiled.clear()
            _served_by_pytorch.clear()
    return result


def count_served_by_pytorch(reason: str) -> None:
    """Count a call that PyTorch computes in jitconv's place."""
    with _lock:
        first = reason not in _served_by_pytorch
        _served_by_pytorch[reason] += 1
    if first:
        log.info("PyTorch computes a convolution: %s", reason)


@contextmanager
def asked_by(who: str) -> Iterator[None]:
    """Name what compiles inside a ``with`` block."""
    token = _asked_by.set(who)
    try:
        yield
    finally:
        _asked_by.reset(token)


def _reason(spec: Spec, origin: str) -> str:
    """Return what is new: the fields in which the spec differs from the last one of the same layer and operation."""
    layer = (spec.operation, spec.weight, spec.stride, spec.padding, spec.dilation, spec.groups)
    with _lock:
        before = _last.get(layer)
        _last[layer] = spec
    if before is None:
        return "first of its layer"
    changed = [
        f"{field.name} {_short(getattr(before, field.name))} -> {_short(getattr(spec, field.name))}"
        for field in fields(spec)
        if getattr(before, field.name) != getattr(spec, field.name)
    ]
    return ", ".join(changed) or ("nothing new" if origin == "memory" else "dropped from memory")


def _short(value: object) -> str:
    return "x".join(str(v) for v in value) if isinstance(value, tuple) else str(value)


def record(spec: Spec, origin: str, seconds: float) -> None:
    """Note that a plan took up the kernel of a spec."""
    entry = Compiled(str(spec), origin, seconds, _asked_by.get(), _reason(spec, origin))
    with _lock:
        _compiled.append(entry)
    log.info("%s in %.2f s, asked by %s (%s): %s", origin, seconds, entry.asked_by, entry.reason, entry.spec)


Result = TypeVar("Result")


def watched(compile_for: Callable[[Spec, torch.device], Result]) -> Callable[[Spec, torch.device], Result]:
    """Decorate the function that compiles a plan's kernel, so that `stats()` and the log know of it."""

    @functools.wraps(compile_for)
    def wrapper(spec: Spec, device: torch.device) -> Result:
        before = jitconv.statistics()
        begin = time.perf_counter()
        result = compile_for(spec, device)
        seconds = time.perf_counter() - begin
        after = jitconv.statistics()
        # Other threads may compile at the same time; the counters then say "compiler" of both.
        if after["compilations"] > before["compilations"]:
            origin = "compiler"
        else:
            origin = "disk" if after["disk_hits"] > before["disk_hits"] else "memory"
        record(spec, origin, seconds)
        return result

    return wrapper
