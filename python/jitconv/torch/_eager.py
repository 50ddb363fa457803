"""What functions and layers call: the kernels in plain eager mode, the operators everywhere else.

A call of a Python operator costs several microseconds in the dispatcher. So `convolve` calls the operator only where
something would see it: a transform, a mode, a trace, a profiler.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from jitconv.torch import _activation, _policy, _record
from jitconv.torch._autograd import backward_operator, forward_operator
from jitconv.torch._convolution import Convolution, Settings
from jitconv.torch._ops import autocast, uses_kernels
from jitconv.torch._shapes import check_operands, images


class _Eager(torch.autograd.Function):
    """The convolution with gradients, without the dispatcher.

    Under autocast w and b are cast in here, which spares autograd two nodes each way, and their gradients come in their
    own type without having been rounded to the cast one.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution) -> torch.Tensor:
        ctx.convolution = c
        used, bias = w, b
        if w.dtype != x.dtype:
            used = w.to(x.dtype)
        if b is not None and b.dtype != x.dtype:
            bias = b.to(x.dtype)
        activation = c.settings.activation
        if activation == "none":
            y = c.forward(x, used, bias, activation=False, pack=False)
            ctx.save_for_backward(x, w, used)
        elif _activation.saves_result(activation):
            y = c.forward(x, used, bias, activation=True, pack=False)
            ctx.save_for_backward(x, w, used, y)
        else:
            z = c.forward(x, used, bias, activation=False, pack=False)
            y = _activation.apply(z, c.settings)
            ctx.save_for_backward(x, w, used, z)
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        x, w, used, *rest = ctx.saved_tensors
        c: Convolution = ctx.convolution
        saved = rest[0] if rest else None
        mask = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # create_graph=True
            operands = (images(dy), images(x), images(w.to(x.dtype)), None if saved is None else images(saved))
            gradients = backward_operator(*operands, c.settings, mask)
            dx, dw, db = (g if asked else None for g, asked in zip(gradients, mask, strict=True))
            return (
                None if dx is None else dx.view_as(x),
                None if dw is None else dw.view_as(w).to(w.dtype),
                None if db is None else db.to(w.dtype),
                None,
            )
        dy = dy.resolve_neg()
        if w.dtype == x.dtype:
            return (*c.backward(dy, x, used, saved, mask), None)
        return (*c.backward(dy, x, used, saved, mask, dtype=torch.float32), None)  # autograd casts to another type


# What Function.apply ends in. It looks for transforms before, as _is_plain does.
_apply = super(torch.autograd.Function, _Eager).apply

_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_traced = torch._C._get_tracing_state
_profiled = torch._C._autograd._profiler_enabled
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_plain(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> bool:
    """Say whether nothing would see the operator if it were called, and no tensor waits to be negated."""
    return (
        type(x) in _PLAIN
        and type(w) in _PLAIN
        and (b is None or type(b) in _PLAIN)
        and not (x.is_neg() or w.is_neg() or (b is not None and b.is_neg()))
        and _dispatch_modes() == 0
        and _function_modes() == 0
        and _transforms() is None
        and forward_ad._current_level < 0
        and _traced() is None
        and not _profiled()
    )


def _by_operator(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, settings: Settings) -> torch.Tensor:
    if x.dim() == 3:
        return _by_operator(images(x), images(w), b, settings).squeeze(2)
    if settings.activation == "none" or _activation.saves_result(settings.activation) or _grad_is_off(x, w, b):
        return forward_operator(x, w, b, settings)
    # z is kept for the gradient, which the operator would have to compute again.
    return _activation.apply(forward_operator(x, w, b, settings._replace(activation="none")), settings)


def convolve(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, c: Convolution) -> torch.Tensor:
    """Return a convolution of images or sequences.

    Parameters
    ----------
    x : N, C, H, W or N, C, L
    w : K, C/groups, R, S; transposed C, K/groups, R, S; without R for sequences
    b : K, or None
    """
    settings = c.settings
    recorder = _record.active
    if recorder is not None and not torch.compiler.is_compiling():
        c = recorder.convolution(settings)
    elif torch.compiler.is_compiling() or not _is_plain(x, w, b) or not uses_kernels(x):
        return _by_operator(x, w, b, settings)
    elif _policy.decides(settings.policy):
        c = _policy.choosing(c)
    device = x.device.type
    recorded = not _grad_is_off(x, w, b)
    if torch.is_autocast_enabled(device):
        x = autocast(x, device)
        if x.dtype == torch.float64 or not recorded:
            w, b = autocast(w, device), None if b is None else autocast(b, device)
    elif w.dtype != x.dtype or (b is not None and b.dtype != x.dtype):
        check_operands(images(x), images(w), b, settings.transposed, settings.groups)  # raises
    if recorded:
        apply = _apply if recorder is None else _Eager.apply
        return apply(x, w, b, c)  # type: ignore[no-any-return, no-untyped-call]
    return c.forward(x, w, b, activation=True, pack=not torch.is_grad_enabled())


def _grad_is_off(*tensors: torch.Tensor | None) -> bool:
    return not torch.is_grad_enabled() or not any(t is not None and t.requires_grad for t in tensors)
