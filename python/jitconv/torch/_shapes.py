"""Shapes and memory formats, as PyTorch's convolutions have them. For real tensors and for symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_CHANNELS_LAST_ORDER = (1, 3, 2, 0)


def is_channels_last(x: torch.Tensor) -> bool:
    """Say whether PyTorch takes a tensor of four dimensions for channels_last (``suggest_memory_format`` in C++)."""
    stride, shape = x.stride(), x.shape
    if stride[1] == 0:
        return False
    smallest = 0
    for dimension in _CHANNELS_LAST_ORDER:
        if shape[dimension] == 0 or stride[dimension] < smallest:
            return False
        # N111 and 1C11 say nothing about the order, and count as contiguous.
        if dimension == 0 and smallest == stride[1]:
            return False
        smallest = stride[dimension]
        if shape[dimension] > 1:
            smallest *= shape[dimension]
    return True


def memory_format(x: torch.Tensor, w: torch.Tensor) -> torch.memory_format:
    """Return the memory format of a convolution's result: channels_last if one of its tensors is.

    A sequence that is not contiguous is none of PyTorch's, which copies it first.
    """
    x_counts = x.dim() == 4 or x.is_contiguous()
    if (x_counts and is_channels_last(images(x))) or is_channels_last(images(w)):
        return torch.channels_last
    return torch.contiguous_format


def own_format(t: torch.Tensor, memory: torch.memory_format) -> torch.memory_format:
    """Return the memory format in which images are dense: `memory` if they are in both or in neither."""
    other = torch.contiguous_format if memory == torch.channels_last else torch.channels_last
    lies_as_other = not t.is_contiguous(memory_format=memory) and t.is_contiguous(memory_format=other)
    return other if lies_as_other else memory


def dense_strides(shape: Sequence[int], memory: torch.memory_format) -> tuple[int, int, int, int]:
    """Return the strides of a dense tensor of four dimensions."""
    n, c, h, w = shape
    del n
    if memory == torch.channels_last:
        c1, w1 = max(c, 1), max(w, 1)
        return (max(h, 1) * w1 * c1, 1, w1 * c1, c1)
    c1, h1, w1 = max(c, 1), max(h, 1), max(w, 1)
    return (c1 * h1 * w1, h1 * w1, w1, 1)


def images(t: torch.Tensor) -> torch.Tensor:
    """Return sequences, tensors of three dimensions, as images of one row; images as they are."""
    return t if t.dim() == 4 else t.unsqueeze(2)


def densifier(
    t: torch.Tensor | None, dtype: torch.dtype, memory: torch.memory_format = torch.contiguous_format
) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Return what makes tensors of the extents and type of `t`, images or a bias, dense tensors of a type.

    None if `t` is that, or None.
    """
    if t is None or (t.dtype == dtype and t.is_contiguous(memory_format=memory)):
        return None
    if t.dim() == 1:
        return lambda other: other.to(dtype).contiguous()
    return lambda other: images(other).to(dtype).contiguous(memory_format=memory)


def as_of(t: torch.Tensor, values: Sequence[int]) -> tuple[int, ...]:
    """Return extents or strides of images as those of what t has: images, or sequences, which have no rows."""
    return tuple(values) if t.dim() == 4 else (values[0], values[1], values[3])


def strides_beside(shape: Sequence[int], x: torch.Tensor, w: torch.Tensor) -> tuple[int, ...]:
    """Return the strides that a result of `shape`, extents of images, has beside x and w: of as many axes as x."""
    return as_of(x, dense_strides(shape, memory_format(x, w)))


def output_channels(w: Sequence[int], transposed: bool, groups: int) -> int:
    """Return K, the channels of the result, from the extents of the weight."""
    return w[1] * groups if transposed else w[0]


def output_shape(
    x: Sequence[int],
    w: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> tuple[int, int, int, int]:
    """Return N, K, P, Q of a convolution's result.

    Parameters
    ----------
    x, w
        Extents of the input (N, C, H, W) and of the weight: K, C/groups, R, S; transposed C, K/groups, R, S.
    stride, dilation, output_padding
        Vertical and horizontal.
    padding
        Top, bottom, left, right.
    """
    extents = []
    for axis in (0, 1):
        pads = padding[2 * axis] + padding[2 * axis + 1]
        reach = dilation[axis] * (w[2 + axis] - 1)
        if transposed:
            extents.append((x[2 + axis] - 1) * stride[axis] - pads + reach + output_padding[axis] + 1)
        else:
            extents.append((x[2 + axis] + pads - reach - 1) // stride[axis] + 1)
    return (x[0], output_channels(w, transposed, groups), extents[0], extents[1])


def check_operands(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, transposed: bool, groups: int) -> None:
    """Raise if the tensors of a convolution do not fit together.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        For types, numbers of dimensions and channels, and devices, in this order.
    """
    name = "conv_transpose" if transposed else "conv"
    if w.dtype != x.dtype or (b is not None and b.dtype != x.dtype):
        bias = "" if b is None else f", bias {b.dtype}"
        raise TypeError(f"{name}: input is {x.dtype}, weight {w.dtype}{bias}; all must have one type")
    if x.dim() != 4 or w.dim() != 4:
        raise ValueError(f"{name}: input has {x.dim()} dimensions and weight {w.dim()}, both must have 4")
    if w.device != x.device or (b is not None and b.device != x.device):
        raise RuntimeError(f"{name}: input is on {x.device} and weight or bias on another device, such as {w.device}")
    if groups < 1:
        raise ValueError(f"{name}: groups is {groups}, must be at least 1")
    channels = w.shape[0] if transposed else w.shape[1] * groups
    if x.shape[1] != channels:
        raise ValueError(
            f"{name}: input has {x.shape[1]} channels, must have {channels} for a weight of shape {tuple(w.shape)} "
            f"and {groups} groups"
        )
    if w.shape[0] % groups != 0:
        raise ValueError(f"{name}: groups is {groups}, must divide weight's first extent, {w.shape[0]}")
    filters = output_channels(w.shape, transposed, groups)
    if b is not None and (b.dim() != 1 or b.shape[0] != filters):
        raise ValueError(f"{name}: bias has shape {tuple(b.shape)}, must be ({filters},)")
