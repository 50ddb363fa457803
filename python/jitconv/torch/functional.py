"""PyTorch's convolution functions with ``activation=`` and ``math=``, computed by jitconv.

The arguments are those of `torch.nn.functional`. What differs stands in the documentation of `conv2d`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.compiler import is_compiling
from torch.overrides import is_tensor_like

from jitconv._arguments import Ints, integer, integers, number, padded_sides
from jitconv.spec import activation_name, math_name
from jitconv.torch._convolution import Convolution, Settings, convolution
from jitconv.torch._eager import convolve

__all__ = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"]


def settings_of(
    dimensions: int,
    kernel: Sequence[int],
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    transposed: bool = False,
    output_padding: Ints = 0,
    activation: str | None = None,
    slope: float = 0.01,
    clamp_min: float = 0.0,
    clamp_max: float = 6.0,
    math: str | None = None,
    policy: str = "always",
) -> Settings:
    """Return the settings of a convolution of one or two dimensions, given by PyTorch's arguments."""
    strides = integers(stride, dimensions, "stride")
    dilations = integers(dilation, dimensions, "dilation")
    extra = integers(output_padding, dimensions, "output_padding")
    sides = padded_sides(padding, strides, dilations, kernel)
    for name, values, least in (("stride", strides, 1), ("dilation", dilations, 1), ("padding", sides, 0)):
        if any(value < least for value in values):
            raise ValueError(f"{name} is {values}, must be at least {least}")
    if transposed and any(not 0 <= e < max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise ValueError(f"output_padding is {extra}, must be smaller than stride {strides} or dilation {dilations}")
    if dimensions == 1:
        strides, dilations, extra, sides = (1, *strides), (1, *dilations), (0, *extra), (0, 0, *sides)
    return Settings(
        stride=strides,
        padding=sides,
        dilation=dilations,
        transposed=transposed,
        output_padding=extra,
        groups=integer(groups, "groups"),
        activation=activation_name(activation),
        slope=number(slope, "slope"),
        clamp_min=number(clamp_min, "clamp_min"),
        clamp_max=number(clamp_max, "clamp_max"),
        math=math_name(math),
        policy=policy,
    )


@functools.lru_cache(maxsize=4096, typed=True)  # True is no 1 here
def _cached_convolution(*arguments: Any) -> Convolution:
    return convolution(settings_of(*arguments))


def convolution_of(*arguments: Any) -> Convolution:
    """Return the static part of a convolution, given by the arguments of `settings_of`."""
    if is_compiling():  # a graph holds the settings; it has no use for plans
        return Convolution(settings_of(*arguments))
    try:
        return _cached_convolution(*arguments)
    except TypeError:  # a list, which has no hash
        return convolution(settings_of(*arguments))


def convolve_batched(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution, dimensions: int
) -> torch.Tensor:
    """Return a convolution of an input with or without a batch, of one or two spatial dimensions."""
    if not is_compiling():
        y = c.call(x, w, b, dimensions)
        if y is not None:
            return y
        operands: tuple[Any, ...] = (x, w, b)
        for name, operand in zip(("input", "weight", "bias"), operands, strict=True):
            if isinstance(operand, fx.Proxy):
                arguments = (*operands, dimensions, tuple(c.settings))
                node: Any = operand.tracer.create_proxy("call_function", convolve_by_settings, arguments, {})
                return node  # type: ignore[no-any-return]
            if not is_tensor_like(operand) and (operand is not None or name != "bias"):
                raise TypeError(f"{name} is a {type(operand).__name__}, must be a tensor")
    _check_weight(w, dimensions)
    if x.dim() == dimensions + 2:
        return convolve(x, w, b, c)
    if x.dim() != dimensions + 1:
        raise ValueError(
            f"input has {x.dim()} dimensions, must have {dimensions + 2}, or {dimensions + 1} without a batch; its "
            f"shape is {tuple(x.shape)}"
        )
    return convolve_batched(x.unsqueeze(0), w, b, c, dimensions).squeeze(0)


def convolve_by_settings(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, dimensions: int, settings: tuple[Any, ...]
) -> torch.Tensor:
    """Return what `convolve_batched` does. Graphs of `torch.fx` call it: they hold the settings as plain values."""
    return convolve_batched(x, w, b, convolution(Settings(*settings)), dimensions)


def _check_weight(weight: torch.Tensor, dimensions: int) -> None:
    if weight.dim() != dimensions + 2:
        raise ValueError(f"weight has {weight.dim()} dimensions, must have {dimensions + 2}")


def _kernel_size(weight: torch.Tensor, dimensions: int, padding: Ints | str) -> Sequence[int]:
    """Return what `settings_of` needs to know of the filter: its extents if the padding depends on them."""
    if not isinstance(padding, str):
        return ()
    _check_weight(weight, dimensions)
    return weight.shape[2:]


def conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    activation: str | None = None,
    slope: float = 0.01,
    clamp_min: float = 0.0,
    clamp_max: float = 6.0,
    math: str | None = None,
    policy: str = "always",
) -> torch.Tensor:
    """Convolve images, as `torch.nn.functional.conv2d`, and apply an activation in the same kernel.

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W); float32, float16 or bfloat16
        Contiguous or channels_last without a copy; with any other strides it is copied first.
    weight : (K, C/groups, R, S), of input's type
    bias : (K,), of input's type, or None
    stride, padding, dilation, groups
        As in PyTorch; ``padding`` may be ``"same"`` or ``"valid"``.
    activation
        None, ``"relu"``, ``"leaky_relu"``, ``"gelu"``, ``"gelu_tanh"``, ``"silu"``, ``"sigmoid"``, ``"tanh"``,
        ``"hardswish"`` or ``"clamp"``.
    slope
        Of ``"leaky_relu"``.
    clamp_min, clamp_max
        Of ``"clamp"``.
    math
        For float32: ``"fp32"``, ``"tf32"``, ``"ieee"`` or ``"fp16x3"`` (docs/accuracy.md). The last is ``"fp32"``,
        faster on Hopper, but for an error of 2^-38 of the largest magnitudes of both operands for each product.
        None follows ``torch.backends.cudnn.conv.fp32_precision``.
    policy
        ``"always"``: jitconv. ``"auto"``: whichever of jitconv and PyTorch was measured to be faster.

    Returns
    -------
    torch.Tensor
        (N, K, P, Q) or (K, P, Q), of input's type; channels_last if input or weight is.

    Raises
    ------
    TypeError, ValueError, jitconv.SpecError
        If the arguments do not fit together.
    jitconv.UnsupportedError
        For other types on a GPU.
    jitconv.torch.ColdKernelError
        If a kernel would have to be compiled while a CUDA graph is being captured.
    """
    kernel = _kernel_size(weight, 2, padding)
    c = convolution_of(2, kernel, stride, padding, dilation, groups, False, 0, activation, slope, clamp_min,
                 clamp_max, math, policy)  # fmt: skip
    return convolve_batched(input, weight, bias, c, 2)


def conv1d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    activation: str | None = None,
    slope: float = 0.01,
    clamp_min: float = 0.0,
    clamp_max: float = 6.0,
    math: str | None = None,
    policy: str = "always",
) -> torch.Tensor:
    """Convolve sequences, as `torch.nn.functional.conv1d`: images of one row.

    Parameters
    ----------
    input : (N, C, L) or (C, L)
    weight : (K, C/groups, S)
    bias : (K,) or None

    The others are those of `conv2d`.

    Returns
    -------
    torch.Tensor
        (N, K, Q) or (K, Q).
    """
    kernel = _kernel_size(weight, 1, padding)
    c = convolution_of(1, kernel, stride, padding, dilation, groups, False, 0, activation, slope, clamp_min,
                 clamp_max, math, policy)  # fmt: skip
    return convolve_batched(input, weight, bias, c, 1)


def conv_transpose2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    activation: str | None = None,
    slope: float = 0.01,
    clamp_min: float = 0.0,
    clamp_max: float = 6.0,
    math: str | None = None,
    policy: str = "always",
) -> torch.Tensor:
    """Convolve images transposed, as `torch.nn.functional.conv_transpose2d`.

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W)
    weight : (C, K/groups, R, S)
    bias : (K,) or None

    The others are those of `conv2d`.

    Returns
    -------
    torch.Tensor
        (N, K, P, Q) or (K, P, Q).
    """
    c = convolution_of(2, (), stride, padding, dilation, groups, True, output_padding, activation, slope,
                 clamp_min, clamp_max, math, policy)  # fmt: skip
    return convolve_batched(input, weight, bias, c, 2)


def conv_transpose1d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    activation: str | None = None,
    slope: float = 0.01,
    clamp_min: float = 0.0,
    clamp_max: float = 6.0,
    math: str | None = None,
    policy: str = "always",
) -> torch.Tensor:
    """Convolve sequences transposed, as `torch.nn.functional.conv_transpose1d`.

    Parameters
    ----------
    input : (N, C, L) or (C, L)
    weight : (C, K/groups, S)
    bias : (K,) or None

    The others are those of `conv2d`.

    Returns
    -------
    torch.Tensor
        (N, K, Q) or (K, Q).
    """
    c = convolution_of(1, (), stride, padding, dilation, groups, True, output_padding, activation, slope,
                 clamp_min, clamp_max, math, policy)  # fmt: skip
    return convolve_batched(input, weight, bias, c, 1)
