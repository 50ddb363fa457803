"""PyTorch's own convolution with jitconv's arguments and strides, for CPU tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from jitconv.torch import _activation
from jitconv.torch._convolution import Convolution, Settings
from jitconv.torch._shapes import check_operands, images, output_channels, strides_beside


def forward(c: Convolution, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    """Return the convolution with its activation, by PyTorch, with the strides that jitconv's result has."""
    check_operands(images(x), images(w), b, c.settings.transposed, c.settings.groups)
    return forward_of_checked(c, x, w, b)


def forward_of_checked(c: Convolution, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    """Return what `forward` does, of operands that fit together."""
    y = _activation.apply(_linear(c.settings, x, w, b), c.settings)
    if x.is_contiguous() and w.is_contiguous() and y.is_contiguous():
        return y  # what the rest would find, in a tenth of the time
    strides = strides_beside(images(y).shape, x, w)
    if y.stride() == strides:
        return y
    return torch.empty_strided(y.shape, strides, dtype=y.dtype, device=y.device).copy_(y)


def _linear(s: Settings, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    x, arguments = _symmetric(s, x)
    if w.dtype == x.dtype and (b is None or b.dtype == x.dtype):
        return torch.convolution(x, w, b, *arguments)
    return _under_autocast(x, w, b, *arguments)


def _under_autocast(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> torch.Tensor:  # fmt: skip
    """Return a convolution by one of the functions whose operands autocast casts on every device."""
    sequences = x.dim() == 3
    if transposed:
        upsample = functional.conv_transpose1d if sequences else functional.conv_transpose2d
        return upsample(x, w, b, stride, padding, output_padding, groups, dilation)
    convolve = functional.conv1d if sequences else functional.conv2d
    return convolve(x, w, b, stride, padding, dilation, groups)


def _symmetric(s: Settings, x: torch.Tensor) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """Return x and the arguments of PyTorch's convolution of as many dimensions.

    It has one padding for both sides: what is more is padded now.
    """
    x, padding = _padded(s, x)
    first = 4 - x.dim()  # a sequence has no vertical arguments
    return x, (s.stride[first:], padding[first:], s.dilation[first:], s.transposed, s.output_padding[first:], s.groups)


def _padded(s: Settings, x: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
    top, bottom, left, right = s.padding
    if top == bottom and left == right:
        return x, (top, left)
    if s.transposed:
        raise ValueError(f"padding is {s.padding}: a transposed convolution has the same on both sides")
    return functional.pad(x, (left, right, top, bottom)[: 2 * x.dim() - 4]), (0, 0)


def backward(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """Return dx, dw and db by PyTorch."""
    s = c.settings
    if saved is not None:
        dy = _activation.gradient(dy, saved, s)
    padded, arguments = _symmetric(s, x)
    filters = output_channels(w.shape, s.transposed, s.groups)
    dx, dw, db = torch.ops.aten.convolution_backward.default(dy, padded, w, [filters], *arguments, mask)
    if mask[0]:
        dx = _without_padding(s, dx, x)
        strides = strides_beside(images(x).shape, x, w)
        if dx.stride() != strides:
            dx = torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device).copy_(dx)
    return dx if mask[0] else None, dw.contiguous() if mask[1] else None, db if mask[2] else None


def _without_padding(s: Settings, padded: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    if padded.shape == x.shape:
        return padded
    top, left = s.padding[0], s.padding[2]
    rows = padded if x.dim() == 3 else padded[:, :, top : top + x.shape[2]]
    return rows[..., left : left + x.shape[-1]]
