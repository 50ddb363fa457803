"""What the extension module has to know to launch a convolution's gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import torch

from jitconv.torch import _activation
from jitconv.torch._plan import alignment_of, compile_for, is_elsewhere
from jitconv.torch._shapes import (
    as_of,
    check_operands,
    dense_strides,
    densifier,
    images,
    memory_format,
    output_channels,
    strides_beside,
)

if TYPE_CHECKING:
    from jitconv.torch._convolution import Convolution, Settings

Mask: TypeAlias = tuple[bool, bool, bool]
Results: TypeAlias = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]


def first(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Mask,
    wide: bool,
) -> Results:
    """Launch the gradients whose shapes are new, on another device, or not the kernels' alone.

    The parameters are those of `Convolution.backward`; ``wide`` says that dw and db are float32, and x is not.
    """
    device = x.get_device()
    if is_elsewhere(device):
        with torch.cuda.device(device):
            return c.gradient_calls.run(dy, x, w, saved, mask, wide) or first(c, dy, x, w, saved, mask, wide)
    if saved is not None and not reads_saved(c.settings, mask):
        dy, saved = _activation.gradient(dy, saved, c.settings), None
    found = c.gradient_calls.run(dy, x, w, saved, mask, wide)
    if found is not None:
        return found
    _check(c, images(dy), images(x), images(w), None if saved is None else images(saved))
    if x.shape[0] == 0:
        return zeros(c, x, w, mask, torch.float32 if wide else x.dtype)
    _add(c, dy, x, w, saved, mask, wide)
    found = c.gradient_calls.run(dy, x, w, saved, mask, wide)
    return first(c, dy, x, w, saved, mask, wide) if found is None else found  # None: PyTorch's settings have changed


def reads_saved(settings: Settings, mask: Mask) -> bool:
    """Say whether kernels multiply dy by an activation's derivative.

    PyTorch does of a transposed convolution, and of a leaky ReLU whose result hides the sign.
    """
    return not settings.transposed and not _activation.hides_sign(settings) and (mask[0] or mask[1])


def _check(c: Convolution, dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, saved: torch.Tensor | None) -> None:
    check_operands(x, w, None, c.settings.transposed, c.settings.groups)
    shape = c.result_shape(x, w)
    for name, t in (("dy", dy), ("saved", saved)):
        if t is not None and (tuple(t.shape) != shape or t.dtype != x.dtype or t.device != x.device):
            raise ValueError(
                f"{name} is {t.dtype} of shape {tuple(t.shape)} on {t.device}, must be {x.dtype} of shape {shape} on "
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


def _add(
    c: Convolution,
    dy: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    saved: torch.Tensor | None,
    mask: Mask,
    wide: bool,
) -> None:
    """Compile for tensors of these extents, and make them known to `Convolution.gradient_calls`."""
    alignment, dtype = alignment_of((dy, x, w, saved)), torch.float32 if wide else x.dtype
    dy4, x4, w4, saved4 = images(dy), images(x), images(w), None if saved is None else images(saved)
    memory = memory_format(x, w)
    of_dy = c.format_read(dy4, memory)
    bias_in_kernel = mask[1] and mask[2] and not c.settings.transposed
    data = weight = None
    if mask[0]:
        data = compile_for(c.dx_spec(dy, x, w, alignment, derivative=saved is not None), x.device)
    if mask[1]:
        spec = c.dw_spec(dy, x, w, alignment, derivative=saved is not None, bias=bias_in_kernel, dtype=dtype)
        weight = compile_for(spec, x.device)

    def bias_gradient(dy: torch.Tensor, saved: torch.Tensor | None) -> torch.Tensor:
        dy = images(dy)
        if saved is not None:
            dy = _activation.gradient(dy, images(saved), c.settings)
        return dy.sum((0, 2, 3), dtype=dtype)

    c.gradient_calls.add(
        dy, x, w, saved, mask, wide,
        data=data,
        weight=weight,
        dx_strides=as_of(x, dense_strides(x4.shape, memory)),
        dw_strides=as_of(x, dense_strides(w4.shape, torch.contiguous_format)),
        db_shape=(w.shape[0],) if bias_in_kernel else None,
        like=w.new_empty(0, dtype=dtype) if wide else None,
        dense_dy=densifier(dy4, x.dtype, of_dy),
        dense_x=densifier(x4, x.dtype, c.format_read(x4, memory)),
        dense_w=densifier(w4, x.dtype),
        dense_saved=densifier(saved4, x.dtype, of_dy),
        bias_gradient=bias_gradient if mask[2] and not bias_in_kernel else None,
    )  # fmt: skip
