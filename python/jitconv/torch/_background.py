"""Kernels that are compiled in the background while PyTorch serves their shapes: async_compile()."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import torch

from jitconv import _native
from jitconv.spec import Spec
from jitconv.torch import _stats

if TYPE_CHECKING:
    from jitconv import Kernel

CompileFor: TypeAlias = "Callable[[Spec, torch.device], Kernel]"


class StillCompilingError(Exception):
    """A kernel is not there yet; whoever asked computes in another way."""


#: Whether missing kernels are compiled in the background.
enabled = False

_lock = threading.Lock()
_plans: dict[tuple[str, torch.device], Future[Kernel]] = {}
_executor: ThreadPoolExecutor | None = None


def set_async_compile(wanted: bool) -> None:
    """Set whether a call whose kernel is missing waits for it, for the whole process.

    Parameters
    ----------
    wanted : bool
        True: the kernel is compiled by a thread in the background, and PyTorch computes calls of this shape until it is
        there; `stats()` counts them. False, as at the start: the call waits. What is being compiled goes on.
    """
    global enabled  # noqa: PLW0603
    enabled = wanted
    _native.decline_calls(wanted)  # `_policy` then decides


@contextmanager
def async_compile(wanted: bool = True) -> Iterator[None]:
    """Compile in the background inside a ``with`` block (see `set_async_compile`)."""
    before = enabled
    set_async_compile(wanted)
    try:
        yield
    finally:
        set_async_compile(before)


def wait() -> None:
    """Wait until nothing is compiled in the background."""
    with _lock:
        futures = list(_plans.values())
    for future in futures:
        future.exception()


def provide(spec: str, device: torch.device, kernel: Kernel) -> None:
    """Say that a kernel is there, so that its first call is not PyTorch's."""
    future: Future[Kernel] = Future()
    future.set_result(kernel)
    with _lock:
        _plans[spec, device] = future


def allowed(compile_for: CompileFor) -> CompileFor:
    """Decorate the function that compiles a plan's kernel: it raises `StillCompilingError` instead of waiting.

    The error of a kernel that cannot be compiled is raised by the call that finds it. While a CUDA graph is captured,
    what `prepare()` or the background has compiled is taken, and nothing is begun.
    """

    @functools.wraps(compile_for)
    def wrapper(spec: Spec, device: torch.device) -> Kernel:
        capturing = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        if not enabled and not capturing:
            return compile_for(spec, device)
        key = (str(spec), device)
        with _lock:
            future = _plans.get(key)
            if future is None and not capturing:
                future = _plans[key] = _pool().submit(_compile, compile_for, spec, device)
        if future is None or (capturing and not future.done()):
            return compile_for(spec, device)  # which raises
        if not future.done():
            raise StillCompilingError
        return future.result()

    return wrapper


def _compile(compile_for: CompileFor, spec: Spec, device: torch.device) -> Kernel:
    with _stats.asked_by("the background"):
        return compile_for(spec, device)


def _pool() -> ThreadPoolExecutor:
    global _executor  # noqa: PLW0603
    if _executor is None:
        _executor = ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2), thread_name_prefix="jitconv")
    return _executor
