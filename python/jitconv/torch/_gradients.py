"""The launches of a convolution's gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch

from jitconv.torch import _activation
from jitconv.torch._plan import Plan, alignment_of, compile_for, is_elsewhere, stream_of
from jitconv.torch._scratch import scratch
from jitconv.torch._shapes import (
    as_of,
    check_operands,
    dense_strides,
    images,
    memory_format,
    output_channels,
    strides_beside,
)

if TYPE_CHECKING:
    from jitconv.torch._convolution import Convolution

Mask: TypeAlias = tuple[bool, bool, bool]
Results: TypeAlias = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]


@dataclass
class Gradients:
    """What a call of `backward` needs to know of tensors of one shape."""

    data: Plan | None
    weight: Plan | None
    memory: torch.memory_format
    dx_strides: tuple[int, ...]
    dw_strides: tuple[int, ...]
    x_dense: bool
    w_dense: bool
    dy_dense: bool
    saved_dense: bool
    bias_in_kernel: bool
    dtype: torch.dtype
    workspace: int


def backward(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Mask,
    dtype: torch.dtype,
) -> Results:
    """Launch the gradients that are asked for.

    Parameters
    ----------
    c
        The convolution.
    dy : N, K, P, Q or N, K, Q; any strides
        The gradient of its result.
    x, w
        Its operands.
    saved : N, K, P, Q
        What the activation's derivative is computed from (`_activation.saves_result`); None without an activation.
    mask
        Whether dx, dw and db are wanted.
    dtype
        The type of dw and db: that of w, or float32.

    Returns
    -------
    tuple
        dx, in channels_last if x or w is; dw, contiguous; db. None where the mask says so.
    """
    device = x.get_device()
    if is_elsewhere(device):
        with torch.cuda.device(device):
            return backward(c, dy, x, w, saved, mask, dtype)
    transposed = c.settings.transposed
    if saved is not None and not reads_saved(transposed, mask):
        dy, saved = _activation.gradient(dy, saved, c.settings), None
    pointers = x.data_ptr() | w.data_ptr() | dy.data_ptr()
    if saved is not None:
        pointers |= saved.data_ptr()
    key = (
        x.shape,
        x.stride(),
        x.dtype,
        device,
        w.shape,
        w.stride(),
        w.dtype,
        w.get_device(),
        dy.shape,
        dy.stride(),
        dy.dtype,
        dy.get_device(),
        None if saved is None else saved.stride(),
        pointers & 15,
        c.math(x.dtype),
        mask,
        dtype,
    )
    found = c.gradients.get(key)
    if found is None:
        _check(c, images(dy), images(x), images(w))
        if x.shape[0] == 0:
            return zeros(c, x, w, mask, dtype)
        found = c.gradients[key] = _find(c, dy, x, w, saved, mask, dtype, alignment_of(pointers))
    return _launch(c, found, dy, x, w, saved, mask, stream_of(device))


def reads_saved(transposed: bool, mask: Mask) -> bool:
    """Say whether kernels multiply dy by an activation's derivative. Of a transposed convolution PyTorch does."""
    return not transposed and (mask[0] or mask[1])


def _check(c: Convolution, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> None:
    check_operands(x, w, None, c.settings.transposed, c.settings.groups)
    shape = c.result_shape(x, w)
    if tuple(dy.shape) != shape or dy.dtype != x.dtype or dy.device != x.device:
        raise ValueError(
            f"dy is {dy.dtype} of shape {tuple(dy.shape)} on {dy.device}, must be {x.dtype} of shape {shape} on "
            f"{x.device}"
        )


def zeros(c: Convolution, x: torch.Tensor, w: torch.Tensor, mask: Mask, dtype: torch.dtype) -> Results:
    """Return the gradients of a convolution without images, in the shapes and strides of any."""
    filters = output_channels(w.shape, c.settings.transposed, c.settings.groups)
    strides = strides_beside(images(x).shape, x, w)
    return (
        x.new_empty_strided(x.shape, strides) if mask[0] else None,
        w.new_zeros(w.shape, dtype=dtype) if mask[1] else None,
        w.new_zeros(filters, dtype=dtype) if mask[2] else None,
    )


def _find(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Mask,
    dtype: torch.dtype,
    alignment: int,
) -> Gradients:
    kind = x
    dy, x, w, saved = images(dy), images(x), images(w), None if saved is None else images(saved)
    memory = memory_format(x, w)
    bias_in_kernel = mask[1] and mask[2] and not c.settings.transposed
    data = weight = None
    if mask[0]:
        data = compile_for(c.dx_spec(x, w, alignment, derivative=saved is not None), x.device)
    if mask[1]:
        spec = c.dw_spec(x, w, alignment, derivative=saved is not None, bias=bias_in_kernel, dtype=dtype)
        weight = compile_for(spec, x.device)
    return Gradients(
        data=data,
        weight=weight,
        memory=memory,
        dx_strides=as_of(kind, dense_strides(x.shape, memory)),
        dw_strides=as_of(kind, dense_strides(w.shape, torch.contiguous_format)),
        x_dense=x.is_contiguous(memory_format=memory),
        w_dense=w.is_contiguous(),
        dy_dense=dy.is_contiguous(memory_format=memory),
        saved_dense=saved is None or saved.is_contiguous(memory_format=memory),
        bias_in_kernel=bias_in_kernel,
        dtype=dtype,
        workspace=max(0 if plan is None else plan.workspace for plan in (data, weight)),
    )


def _launch(
    c: Convolution,
    g: Gradients,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Mask,
    stream: int | None,
) -> Results:
    transposed = c.settings.transposed
    if not g.dy_dense:
        dy = images(dy).contiguous(memory_format=g.memory)
    if saved is not None and not g.saved_dense:
        saved = images(saved).contiguous(memory_format=g.memory)
    saved_pointer = None if saved is None else saved.data_ptr()
    workspace = scratch(g.workspace, x)  # of both launches, which follow each other on the stream
    workspace_pointer = None if workspace is None else workspace.data_ptr()
    dx = dw = db = None
    if g.data is not None:
        if not g.w_dense:
            w = w.contiguous()
        dx = x.new_empty_strided(x.shape, g.dx_strides)
        if transposed:
            g.data.launch(stream, dy.data_ptr(), w.data_ptr(), None, None, dx.data_ptr(), workspace_pointer, None, None,
                          None, None, None, None)  # fmt: skip
        else:
            g.data.launch(stream, None, w.data_ptr(), None, None, None, workspace_pointer, None, dy.data_ptr(),
                          dx.data_ptr(), None, None, saved_pointer)  # fmt: skip
    if g.weight is not None:
        if not g.x_dense:
            x = images(x).contiguous(memory_format=g.memory)
        dw = w.new_empty_strided(w.shape, g.dw_strides) if g.dtype == w.dtype else w.new_empty(w.shape, dtype=g.dtype)
        if g.bias_in_kernel:
            db = dw.new_empty_strided(w.shape[:1], (1,))
        # Of the convolution whose data gradient a transposed one is, x is the gradient dy, and dy is the input x.
        input, gradient = (dy, x) if transposed else (x, dy)
        g.weight.launch(stream, input.data_ptr(), None, None, None, None,
                        workspace_pointer, None, gradient.data_ptr(), None,
                        dw.data_ptr(), None if db is None else db.data_ptr(), saved_pointer)  # fmt: skip
    if mask[2] and db is None:
        dy = images(dy)
        if saved is not None:
            dy = _activation.gradient(dy, images(saved), c.settings)
        db = dy.sum((0, 2, 3), dtype=g.dtype)
    return dx, dw, db
