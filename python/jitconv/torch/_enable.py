"""enable() puts jitconv in the place of PyTorch's convolution on CUDA, for code that nobody wants to edit.

It overrides ``aten::convolution`` and ``aten::convolution_backward`` below autograd and autocast, which stay PyTorch's:
the formulas of gradients, also of second ones, and the casts are those of any program. The kernels that were there
before are captured and compute whatever jitconv does not.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch

import jitconv
from jitconv.torch import _policy, _stats
from jitconv.torch._convolution import Convolution, Settings, convolution
from jitconv.torch._original import is_wanted
from jitconv.torch._plan import DTYPES, ColdKernelError, on_default_stream
from jitconv.torch._shapes import images, memory_format

_OPERATORS = ("convolution", "convolution_backward")
# What jitconv says of arguments that it cannot take, before anything is launched. PyTorch computes them, or raises what
# it would have raised.
_REFUSALS = (ValueError, TypeError, jitconv.CompileError, ColdKernelError)
_lock = threading.Lock()
_active: list[Enabled]


class Enabled:
    """What `enable` returns. As a context manager it disables at the end of its block."""

    def __init__(self, policy: str, math: str | None, device: str) -> None:
        self.policy, self.math, self.device = policy, math, device

    def __enter__(self) -> Enabled:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disable()

    def disable(self) -> None:
        """Undo this call of `enable`; an earlier one that is still active holds again."""
        with _lock:
            if self in _active:
                _active.remove(self)
            _install(_active[-1] if _active else None)


_active = []
_library: torch.library.Library | None = None


def enable(*, policy: str = "always", math: str | None = None, device: str = "cuda") -> Enabled:
    """Let jitconv compute PyTorch's convolutions, in all threads, until `disable`.

    Parameters
    ----------
    policy : str
        ``"always"``, or ``"auto"``: the faster of the two, measured once per shape and direction.
    math : str, optional
        The math mode; without it PyTorch's settings are followed.
    device : str
        ``"cuda"``. ``"cpu"`` is for tests of the override without a GPU: host execution, which is very slow.

    Returns
    -------
    Enabled
        Usable as ``with jitconv.torch.enable():``.

    Raises
    ------
    ValueError
        If an argument is none of these.

    Notes
    -----
    Types other than float32, float16 and bfloat16, three spatial dimensions, what jitconv refuses and what it cannot
    compile are PyTorch's as before, also the errors of arguments that do not fit together; `stats()` counts them by
    reason. So is a shape that is new in a CUDA graph's capture.

    `torch.compile` traces ``aten::convolution`` without looking below it, and its generated code calls the operator, so
    the override holds there as well, also when it is enabled later. Where Inductor replaces the convolution by a Triton
    kernel of its own, as ``mode="max-autotune"`` may, nothing is left to override; convert the model instead.
    """
    _policy_is_known(policy)
    if device not in ("cuda", "cpu"):
        raise ValueError(f"device is {device!r}, must be 'cuda' or 'cpu'")
    convolution(Settings(math=math, policy=policy))  # checks both
    with _lock:
        result = Enabled(policy, math, device)
        _active.append(result)
        _install(result)
    return result


def disable() -> None:
    """Give all convolutions back to PyTorch, however often `enable` was called."""
    with _lock:
        _active.clear()
        _install(None)


def _policy_is_known(policy: str) -> None:
    if policy not in ("always", "auto"):
        raise ValueError(f"policy is {policy!r}, must be 'always' or 'auto'")


def _install(enabled: Enabled | None) -> None:
    """Register the kernels of one call of enable(), or none."""
    global _library  # noqa: PLW0603
    if _library is not None:
        _library._destroy()
        _library = None
    if enabled is None:
        return
    key = enabled.device.upper()
    before = [torch.library.get_kernel(f"aten::{name}", key) for name in _OPERATORS]
    _library = torch.library.Library("aten", "IMPL")
    for name, make, kernel in zip(_OPERATORS, (_forward, _backward), before, strict=True):
        override = make(enabled, kernel.call_boxed)
        with warnings.catch_warnings():  # that a kernel is overridden is what was asked for
            warnings.filterwarnings("ignore", "Warning only once for all operators")
            _library.impl(name, override, key, with_keyset=True)


@functools.lru_cache(maxsize=1024)
def _convolution_of(
    enabled: Enabled,
    dimensions: int,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> Convolution:
    """Return jitconv's convolution of aten's arguments.

    Raises
    ------
    ValueError
        If the arguments are none that jitconv has.
    """
    # aten takes one number for all dimensions.
    stride, padding, dilation, output_padding = (
        value * dimensions if len(value) == 1 else value for value in (stride, padding, dilation, output_padding)
    )
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        if len(value) != dimensions or min(value) < least:
            raise ValueError(f"{name} is {value}, must be {dimensions} integers of at least {least}")
    if dimensions == 1:
        stride, padding, dilation, output_padding = (1, *stride), (0, *padding), (1, *dilation), (0, *output_padding)
    (p, q) = padding
    return convolution(
        Settings(
            stride=stride,
            padding=(p, p, q, q),
            dilation=dilation,
            transposed=transposed,
            output_padding=output_padding,
            groups=groups,
            math=enabled.math,
            policy=enabled.policy,
        )
    )


def _reason_to_decline(x: torch.Tensor, w: torch.Tensor, other: torch.Tensor | None) -> str | None:
    """Why PyTorch computes a call; None if jitconv can."""
    if is_wanted():
        return ""
    if x.dtype not in DTYPES:
        return f"{str(x.dtype).removeprefix('torch.')} tensors"
    if x.dim() not in (3, 4):
        return "three spatial dimensions" if x.dim() == 5 else f"tensors of {x.dim()} dimensions"
    if w.dim() != x.dim():
        return "an input and a weight of different dimensions"
    if any(t is not None and (t.dtype != x.dtype or t.device != x.device) for t in (w, other)):
        return "tensors of different types or devices"
    return "an empty tensor" if x.numel() == 0 else None


def _forward(enabled: Enabled, fallback: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(keyset: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, *arguments: Any) -> Any:
        reason = _reason_to_decline(x, w, b)
        if reason is None:
            try:
                c = _convolution_of(enabled, x.dim() - 2, *_hashable(arguments))
                pack = not torch.is_grad_enabled() and on_default_stream(x.get_device())
                if _policy.decides(enabled.policy):
                    c = _policy.choosing(c)
                return c.forward(x, w, b, activation=False, pack=pack)
            except _REFUSALS as error:
                reason = _said(error)
        if reason:
            _stats.count_served_by_pytorch(reason)
        return fallback(keyset, x, w, b, *arguments)

    return kernel


def _backward(enabled: Enabled, fallback: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(
        keyset: Any, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, bias_sizes: Any, *arguments: Any
    ) -> Any:
        *settings, mask = arguments
        reason = _reason_to_decline(x, w, dy)
        if reason is None:
            try:
                c = _convolution_of(enabled, x.dim() - 2, *_hashable(settings))
                if _policy.decides(enabled.policy):
                    c = _policy.choosing(c)
                dx, dw, db = c.backward(dy, x, w, None, tuple(mask))
                if dw is not None:  # aten's has the memory format of the result
                    dw = images(dw).contiguous(memory_format=memory_format(x, w)).view(w.shape)
                return dx, dw, db
            except _REFUSALS as error:
                reason = _said(error)
        if reason:
            _stats.count_served_by_pytorch(reason)
        return fallback(keyset, dy, x, w, bias_sizes, *arguments)

    return kernel


def _hashable(arguments: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(argument) if isinstance(argument, list) else argument for argument in arguments)


def _said(error: Exception) -> str:
    if isinstance(error, ColdKernelError):
        return "a CUDA graph is being captured and the kernel is missing"
    first = str(error).split("\n", 1)[0]
    return f"a kernel cannot be compiled: {first}" if isinstance(error, jitconv.CompileError) else first
